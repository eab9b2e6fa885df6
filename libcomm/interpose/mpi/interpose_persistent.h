/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_PERSISTENT_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_PERSISTENT_H

/* Persistent all-reduces. MPI lets each rank start its requests in an order of its own
 * (mpi_assert_strict_persistent_collective_ordering is false by default), so the calls of a
 * communicator have no common order: each request has a slot with a backing communicator of its
 * own. What a request does is decided when it is created, which all ranks do in the same order.
 *
 * The program's request is an empty receive from itself, which MPI_Start posts; the message is
 * sent when the sum is complete. So all functions that wait or test accept it.
 */

#include "libcomm/interpose/mpi/interpose.h"

typedef struct lcomm_interpose_persistent_slot {
  lcomm_interpose_comm own;     /* with the slot's backing, released with the parent */
  lcomm_interpose_comm *parent; /* the communicator of the request; NULL: it was freed */
  lcomm_interpose_call call;
  MPI_Request request; /* MPI_REQUEST_NULL: the program has none */
  MPI_Request freed;   /* that the program has freed while the call was active, else null */
  int tag;
  bool active;              /* started and not done */
  bool held;                /* the program has a request, or a freed one is active */
  lcomm_status undelivered; /* failure of the last call that the program has not got */
  int code;                 /* what the error handler made of it, if it was called before */
  MPI_Datatype type;        /* this and the next three are for the report */
  MPI_Op op;
  lcomm_selection choice;
  const char *why;
  struct lcomm_interpose_persistent_slot *next;
} lcomm_interpose_persistent_slot;

/* -------------------------------------------------- interpose_persistent.c */

/* Create a persistent all-reduce, whatever this MPI calls it. False: MPI is to create it with the
 * same arguments. True: *code is the result. */
bool lcomm_interpose_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                    MPI_Request *request, int *code);

/* Define MPI's function `name`, which creates one. */
#define LCOMM_INTERPOSE_ALLREDUCE_INIT(name, count_type)                                           \
  LCOMM_INTERPOSE_API int name(const void *sendbuf, void *recvbuf, count_type count,               \
                               MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,         \
                               MPI_Request *request) {                                             \
    int code = MPI_SUCCESS;                                                                        \
    return lcomm_interpose_allreduce_init(sendbuf, recvbuf, count, type, op, comm, request, &code) \
               ? code                                                                              \
               : P##name(sendbuf, recvbuf, count, type, op, comm, info, request);                  \
  }

/* Deliver the failure of the slot with this request, once: returns its code. MPI_SUCCESS where
 * there is none. */
int lcomm_interpose_slot_deliver(MPI_Request request);

/* ---------------------------------------------- interpose_persistent_slot.c */

/* Guards the list of slots, and what the queue's thread writes into a slot. */
extern pthread_mutex_t lcomm_interpose_slots_lock;

/* Take a slot that is free on all ranks, or create one, for a call with kind, count, dtype, op and
 * at, which is copied. Collective over call->at. NULL, on all ranks: none. */
lcomm_interpose_persistent_slot *lcomm_interpose_slot_take(const lcomm_interpose_call *call,
                                                           bool with_ef);

/* Are there slots? Cheap. */
bool lcomm_interpose_slots_exist(void);

/* The slot of a request; NULL: it has none. Needs the lock. */
lcomm_interpose_persistent_slot *lcomm_interpose_slot_of(MPI_Request request);

/* The program holds no request of the slot and no call is active. Needs the lock. */
void lcomm_interpose_slot_vacate(lcomm_interpose_persistent_slot *slot);

/* The communicator of the requests' messages. */
MPI_Comm lcomm_interpose_slots_self(void);

/* Release what the slot of a freed communicator has; no call is active. Needs the lock. */
void lcomm_interpose_slot_close(lcomm_interpose_persistent_slot *slot);

/* The program is about to free the communicator: its requests can be started no longer, active
 * calls go on. Local. */
void lcomm_interpose_slots_detach(const lcomm_interpose_comm *at);

/* MPI is about to end. */
void lcomm_interpose_slots_free(void);

#endif
