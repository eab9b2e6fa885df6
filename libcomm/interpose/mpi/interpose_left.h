/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_LEFT_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_LEFT_H

/* What the queue's thread leaves to the program's threads, because it takes a call of CUDA:
 *
 * - payloads that peers of the host have left on their devices, for a call over memory of the host;
 * - the begin of a call with a residual over buffers of a device, when the call before it with that
 *   residual is over.
 *
 * They do it while they wait or test, or make further calls. Where none of them comes for a while,
 * because it waits in another function of MPI say, a thread of its own does it, or the ranks would
 * stand still. */

#include "libcomm/interpose/mpi/interpose.h"

/* The queue's thread has moved the calls of a communicator, with at->lock.
 * comm  of the oldest one in flight, which may await payloads; NULL: there is none
 * call  the next one, if it is to be begun in this way; else NULL */
void lcomm_interpose_left_look(lcomm_interpose_comm *at, lcomm_comm *comm,
                               lcomm_interpose_call *call);

/* In a thread of the program: do what was left. Cheap where nothing was. */
void lcomm_interpose_left_do(void);

/* May something be left while this thread waits? Cheap. */
bool lcomm_interpose_left_may_come(void);

#endif
