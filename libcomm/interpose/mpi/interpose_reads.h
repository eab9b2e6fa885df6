/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_READS_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_READS_H

/* Payloads that peers of the host have left on their devices, for a call over memory of the host:
 * to read one is a call of CUDA, which the queue's thread does not make. So the program's threads
 * do it while they wait or test. Where none of them comes for a while, because it waits in another
 * function of MPI say, a thread of its own does it, or the ranks would stand still. */

#include "libcomm/interpose/mpi/interpose.h"

/* The queue's thread has moved the calls of a communicator, with at->lock. comm: of the oldest one
 * in flight; NULL: there is none. */
void lcomm_interpose_reads_look(lcomm_interpose_comm *at, lcomm_comm *comm);

/* In a thread of the program: read what is awaited. Cheap where nothing is. */
void lcomm_interpose_reads_do(void);

/* May a read come to be awaited while this thread waits? Cheap. */
bool lcomm_interpose_reads_may_come(void);

#endif
