/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_START_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_START_H

/* The interposer starts when MPI has started, and stops before MPI ends. */

#include "libcomm/interpose/mpi/interpose.h"

/* The thread level to ask MPI for: MPI_THREAD_MULTIPLE where libcomm may make calls, because a
 * thread makes the non-blocking ones; else that of the program. */
int lcomm_interpose_thread_level_to_ask(int wanted);

/* The level that the program gets, which wanted one and was granted another. */
int lcomm_interpose_thread_level_to_tell(int wanted, int granted);

/* The level that the program got; -1: MPI was not initialised through this library. */
int lcomm_interpose_thread_level(void);

/* MPI has started. Returns the result of MPI_Init, which is not MPI_SUCCESS only with
 * LCOMM_INTERPOSE=require. Does nothing without a policy, else is collective over the ranks that
 * have one. */
int lcomm_interpose_start(void);

/* Before MPI ends; once. */
void lcomm_interpose_stop(void);

#endif
