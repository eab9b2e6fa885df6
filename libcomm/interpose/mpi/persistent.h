/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_PERSISTENT_H
#define LCOMM_INTERPOSE_MPI_PERSISTENT_H

/* Persistent all-reduces. MPI lets every rank start its requests in an order of its own
 * (mpi_assert_strict_persistent_collective_ordering is false unless said), so the calls of a
 * communicator are no sequence here: each request runs on a communicator of libcomm
 * that is its own, its place. What a request does is decided once, when it is made,
 * which all ranks do in the same order.
 *
 * The program's request is a receive from itself of nothing, which MPI_Start posts; the
 * message is sent when the sum is there. So all functions that wait or test know it.
 */

#include "libcomm/interpose/mpi/interpose.h"

typedef struct lcomm_interpose_place {
  lcomm_interpose_comm
      own; /* its `home` is the place's alone; NULL when its communicator was freed */
  lcomm_interpose_comm
      *parent; /* the communicator that the request was made on; NULL: it was freed */
  lcomm_interpose_call call;
  MPI_Request request; /* MPI_REQUEST_NULL: nobody's */
  int tag;
  bool active;         /* started and not over */
  bool held;           /* the program has a request, or one that it freed is active */
  lcomm_status untold; /* how the last call failed, until the program was told */
  int code;            /* what it is told then, when its error handler was asked before */
  MPI_Datatype type;   /* and the next three: for the report */
  MPI_Op op;
  lcomm_selection choice;
  const char *why;
  struct lcomm_interpose_place *next;
} lcomm_interpose_place;

/* Guards the list of places, and what the queue's thread writes into one. */
extern pthread_mutex_t lcomm_interpose_places_lock;

/* How many calls failed that the program was not told of. Every call that ends
 * writes it, so who reads it sees what that call has left. */
extern atomic_int lcomm_interpose_untold;

/* A persistent all-reduce, under whatever name this MPI has it. False: it is MPI's, which is
 * then to be asked with the arguments as they were given. True: *code is what it returns. */
bool lcomm_interpose_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                    MPI_Request *request, int *code);

/* A place for a call (kind, count, dtype, op, at): one that is free on all ranks, or a
 * new one. Collective over call->at. NULL: none on any rank. The call is written into it. */
lcomm_interpose_place *lcomm_interpose_place_take(const lcomm_interpose_call *call, bool lasting);

/* Are there any? Costs next to nothing. */
bool lcomm_interpose_places_exist(void);

/* Whose is it? NULL: the program's own. With lcomm_interpose_places_lock. */
lcomm_interpose_place *lcomm_interpose_place_of(MPI_Request request);

/* If the request is of a place whose call failed and nobody was told: tell it, once, and
 * return the code. MPI_SUCCESS otherwise. completion.c */
int lcomm_interpose_tell(MPI_Request request);

/* Nobody holds it and nothing is active. With the lock. */
void lcomm_interpose_place_leave(lcomm_interpose_place *place);

/* The communicator on which places talk to themselves. */
MPI_Comm lcomm_interpose_places_self(void);

/* Its communicator was freed, and nothing is active: what it has goes. With the lock. */
void lcomm_interpose_place_end(lcomm_interpose_place *place);

/* The communicator is about to be freed: its requests can no longer be started; those that
 * are active go on. Local. */
void lcomm_interpose_places_forget(const lcomm_interpose_comm *at);

/* MPI is about to end. */
void lcomm_interpose_places_end(void);

#endif
