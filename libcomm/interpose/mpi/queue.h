/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_QUEUE_H
#define LCOMM_INTERPOSE_MPI_QUEUE_H

/* The thread that makes calls which do not block. It begins and ends the calls of
 * each communicator in the order in which they were given, and never waits for
 * one communicator: ranks may use theirs in different orders. It starts with the first call
 * and sleeps when there is none.
 */

#include "libcomm/interpose/mpi/interpose.h"

/* What happens when a call is over; in the queue's thread, without a lock. The call is
 * no longer pending after it. */
typedef void (*lcomm_interpose_end)(void *context, lcomm_status status);

/* Give a call that was taken to the thread. Any thread; returns at once. False
 * when memory is short or there can be no thread: nothing was done then. */
bool lcomm_interpose_queue_put(const lcomm_interpose_call *call, lcomm_interpose_end end,
                               void *context);

/* The communicator (NULL: any) is about to be freed: failures on it that the program has not
 * asked for yet are told now, while its error handler is there. request.c */
void lcomm_interpose_requests_forget(const lcomm_interpose_comm *at);

/* Memory of requests that is kept for the next ones. request.c */
void lcomm_interpose_requests_free(void);

#endif
