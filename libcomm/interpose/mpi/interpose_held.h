/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_HELD_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_HELD_H

/* The state of the requests of non-blocking calls, from the call until MPI releases the request. */

#include "libcomm/interpose/mpi/interpose.h"

typedef struct lcomm_interpose_held {
  lcomm_interpose_call call; /* for the error handler, while the communicator exists */
  MPI_Request request;
  MPI_Count size_bytes;
  bool failed;
  bool delivered; /* the error handler was called: see code */
  bool done;
  bool freed;                                 /* by the program, before it was done */
  int code;                                   /* that the program gets */
  struct lcomm_interpose_held *next;          /* in a list of others, or released */
  struct lcomm_interpose_held *older, *newer; /* not released */
} lcomm_interpose_held;

/* Guards what follows, and makes what the queue's thread wrote visible to a waiting thread. */
extern pthread_mutex_t lcomm_interpose_held_lock;

/* A new one, in which all is 0 but call, size_bytes and code; it uses call->at until it is
 * recycled. Takes the lock. NULL: no memory. */
lcomm_interpose_held *lcomm_interpose_held_make(const lcomm_interpose_call *call);

/* Nobody needs it any more. Takes the lock. */
void lcomm_interpose_held_recycle(lcomm_interpose_held *it);

/* Free memory that is kept for further ones. No other thread is here. */
void lcomm_interpose_held_free(void);

/* All others need the lock. Linked: MPI has its request. */
void lcomm_interpose_held_link(lcomm_interpose_held *it);
void lcomm_interpose_held_unlink(lcomm_interpose_held *it);
lcomm_interpose_held *lcomm_interpose_held_find(MPI_Request request); /* NULL: none is linked */

/* The call has failed, and the program is to get to know of it. */
void lcomm_interpose_held_fail(lcomm_interpose_held *it, lcomm_status status);

/* True: it had failed and the program did not know. The caller delivers the failure. */
bool lcomm_interpose_held_take_failure(const lcomm_interpose_held *it);

/* The next one of a communicator (NULL: of any) of which that is so; NULL: there is none. */
lcomm_interpose_held *lcomm_interpose_held_next_failure(const lcomm_interpose_comm *at);

#endif
