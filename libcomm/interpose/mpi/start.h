/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_START_H
#define LCOMM_INTERPOSE_MPI_START_H

/* The interposer opens when MPI has started, and shuts before MPI ends. */

#include "libcomm/interpose/mpi/interpose.h"

/* The thread level to ask MPI for: that of the program, or MPI_THREAD_MULTIPLE where calls may
 * be taken: non-blocking ones are completed by a thread. */
int lcomm_interpose_level_to_ask(int wanted);

/* What the program that wanted a level is told when MPI granted another. */
int lcomm_interpose_level_to_tell(int wanted, int granted);

/* MPI has started; what MPI_Init returns: not MPI_SUCCESS only with LCOMM_INTERPOSE=require.
 * Nothing happens without a policy, else collective over the ranks that have one. */
int lcomm_interpose_open(void);

/* Before MPI ends; once. */
void lcomm_interpose_shut(void);

/* The level that the program was told; -1: MPI did not start through the interposer. */
int lcomm_interpose_level(void);

#endif
