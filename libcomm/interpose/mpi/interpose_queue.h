/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_QUEUE_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_QUEUE_H

/* The queue of non-blocking and persistent calls, and the thread that makes them. It begins and
 * ends the calls of each communicator in the order in which they were given, and never waits for
 * one communicator, because ranks may use theirs in different orders. The thread starts with the
 * first call and sleeps when there is none. It is none of the program's, so it calls no CUDA: calls
 * over buffers of a device come begun or staged (interpose_staging.h). */

#include "libcomm/interpose/mpi/interpose.h"

/* A call has ended with `status`. Runs in the queue's thread without a lock; the call is pending
 * until it returns. */
typedef void (*lcomm_interpose_on_done)(void *context, lcomm_status status);

/* Give a call that was taken to the thread. Any thread may; returns at once. False: no memory or no
 * thread, nothing was done. */
bool lcomm_interpose_queue_put(const lcomm_interpose_call *call, lcomm_interpose_on_done on_done,
                               void *context);

/* Is a call pending? Cheap. */
bool lcomm_interpose_queue_is_busy(void);

/* ------------------------------------------------------- interpose_request.c */

/* The communicator (NULL: any) is about to be freed: deliver the failures on it that the program
 * has not asked for, while its error handler exists. */
void lcomm_interpose_requests_detach(const lcomm_interpose_comm *at);

/* Deliver the failures of requests that MPI has released in this thread as if they had succeeded:
 * returns the code. MPI_SUCCESS: there are none. */
int lcomm_interpose_requests_deliver(void);

/* Discard those failures: the program has freed the request. */
void lcomm_interpose_requests_ignore(void);

/* True: the status is of such a request. Removes the mark from it. */
bool lcomm_interpose_request_failed(MPI_Status *status);

/* The program frees a request. True: its call is not done, whose end will free it. Otherwise *done:
 * it is of a call that is done, which MPI learns at about this time. */
bool lcomm_interpose_request_free_when_done(MPI_Request request, bool *done);

/* ---------------------------------------------------- interpose_queue_comm.c */

struct lcomm_interpose_comm_queue;

/* A call in the queue. */
typedef struct lcomm_interpose_entry {
  lcomm_interpose_call call;
  lcomm_interpose_on_done on_done;
  void *context;
  lcomm_status status;
  bool done;
  struct lcomm_interpose_comm_queue *spare; /* an unused queue that comes with the entry, or NULL */
  struct lcomm_interpose_entry *next;
} lcomm_interpose_entry;

/* The calls of one communicator: first those in flight, then those that wait. */
typedef struct lcomm_interpose_comm_queue {
  lcomm_interpose_comm *at;
  lcomm_interpose_entry *first, *last;
  lcomm_interpose_entry *waiting; /* the first that has not begun */
  int in_flight;
  struct lcomm_interpose_comm_queue *next;
} lcomm_interpose_comm_queue;

/* The queues of all communicators, which only the thread uses. There are never more queues than
 * entries, so each new entry brings a spare one. */
typedef struct lcomm_interpose_comm_queues {
  lcomm_interpose_comm_queue *first, *spare;
} lcomm_interpose_comm_queues;

/* Append entries, in order, to the queues of their communicators. */
void lcomm_interpose_comm_queues_append(lcomm_interpose_comm_queues *queues,
                                        lcomm_interpose_entry *given);

/* Begin calls that can begin, and take calls that are done off the queue, oldest first. *moved is
 * set when there were any. False: another thread is inside libcomm with this communicator. */
bool lcomm_interpose_comm_queue_serve(lcomm_interpose_comm_queue *queue, bool *moved,
                                      lcomm_interpose_entry **done);

/* Take an empty queue off the list. */
void lcomm_interpose_comm_queue_drop(lcomm_interpose_comm_queues *queues,
                                     lcomm_interpose_comm_queue **link);

#endif
