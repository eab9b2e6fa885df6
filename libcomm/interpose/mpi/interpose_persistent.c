/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Persistent requests: created, started, completed, freed. */

#include "libcomm/interpose/mpi/interpose_persistent.h"

#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/mpi/interpose.h"
#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_queue.h"
#include "libcomm/interpose/mpi/interpose_staging.h"
#include "libcomm/interpose/mpi/interpose_wait.h"

/* ----------------------------------------------------------------- creation */

/* True: libcomm makes the calls. Depends on what is equal on all ranks. */
static bool is_eligible(lcomm_interpose_call *call, lcomm_selection *choice, const char **why) {
  const lcomm_interpose_comm *at = call->at;
  if (at->policy.off || at->context.plain_mpi ||
      (at->policy.facts.uses_names && !at->name_agreed)) {
    *why = "switched off, or without an agreed name, when the request was made";
    return false;
  }
  *choice = lcomm_interpose_query(call, why);
  return *choice != LCOMM_SELECT_NONE &&
         (*choice != LCOMM_SELECT_EF || call->dtype == LCOMM_FLOAT32);
}

/* A request that is taken is recorded at each start. */
static bool is_taken(MPI_Comm comm, MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call,
                     lcomm_selection *choice, const char **why) {
  *why = "a type, an operation or a communicator that libcomm does not have";
  bool known = lcomm_interpose_dtype(type, &call->dtype) && lcomm_interpose_op(op, &call->op);
  call->at = lcomm_interpose_comm_find(comm);
  bool chosen = known && call->at && is_eligible(call, choice, why);
  int mode = atomic_load(&lcomm_interpose_mode_now);
  if (mode == LCOMM_INTERPOSE_BLOCKING) {
    *choice = LCOMM_SELECT_NONE;
    *why = lcomm_interpose_not_blocking;
  }
  bool taken = chosen && mode == LCOMM_INTERPOSE_ON;
  if (lcomm_interpose_recording && !taken) {
    lcomm_interpose_record_call(comm, type, op, call, *choice, chosen, *why);
  }
  return taken;
}

static int create_request(lcomm_interpose_persistent_slot *slot, const lcomm_interpose_call *call,
                          MPI_Request *request) {
  int code = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, slot->tag, lcomm_interpose_slots_self(), request);
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  if (code == MPI_SUCCESS) {
    slot->call.send = call->send;
    slot->call.receive = call->receive;
    slot->request = *request;
  } else {
    lcomm_interpose_slot_vacate(slot);
  }
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
  return code == MPI_SUCCESS ? code : lcomm_interpose_call_fail(&slot->call, LCOMM_ERR_MEMORY);
}

bool lcomm_interpose_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                    MPI_Request *request, int *code) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  lcomm_selection choice = LCOMM_SELECT_NONE;
  const char *why = "";
  lcomm_interpose_persistent_slot *slot = NULL;
  if (!lcomm_interpose_is_off() && count > 0 && request &&
      lcomm_interpose_buffers_differ(sendbuf, recvbuf) &&
      is_taken(comm, type, op, &call, &choice, &why)) {
    slot = lcomm_interpose_slot_take(&call, choice == LCOMM_SELECT_EF);
  }
  if (!slot) {
    return false;
  }
  call.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
  call.receive = recvbuf;
  slot->type = type;
  slot->op = op;
  slot->choice = choice;
  slot->why = why;
  *code = create_request(slot, &call, request);
  return true;
}

/* ----------------------------------------------------------------- failures */

int lcomm_interpose_slot_deliver(MPI_Request request) {
  lcomm_status status = LCOMM_OK;
  int code = MPI_SUCCESS;
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  lcomm_interpose_persistent_slot *slot = lcomm_interpose_slot_of(request);
  if (slot) {
    status = slot->undelivered;
    code = slot->code;
    slot->undelivered = LCOMM_OK;
  }
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
  if (status == LCOMM_OK) {
    return MPI_SUCCESS;
  }
  atomic_fetch_sub(&lcomm_interpose_undelivered, 1);
  return code != MPI_SUCCESS ? code : lcomm_interpose_call_fail(&slot->call, status);
}

/* ------------------------------------------------------------------ starting */

/* Fortran's waiting functions do not deliver failures: where the error handler would end the job
 * there, it ends it here. */
static void fail_if_fatal(const lcomm_interpose_persistent_slot *slot, lcomm_status status) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (slot->own.comm == MPI_COMM_NULL) {
    return; /* freed */
  }
  PMPI_Comm_get_errhandler(slot->own.comm, &handler);
  bool fatal = handler == MPI_ERRORS_ARE_FATAL;
  PMPI_Errhandler_free(&handler);
  if (fatal) {
    lcomm_interpose_call_fail(&slot->call, status);
  }
}

/* The message of the receive has been sent, or is about to be. MPICH (4.0.2) does not survive that
 * a persistent receive is freed before its message has come. */
static int complete_and_free(MPI_Request *request) {
  lcomm_interpose_wait(request, MPI_STATUS_IGNORE);
  return PMPI_Request_free(request);
}

/* Runs in the queue's thread. The message completes the receive that MPI_Start has posted; then the
 * program may do anything with the request. */
static void on_done(void *context, lcomm_status status) {
  lcomm_interpose_persistent_slot *slot = context;
  if (status != LCOMM_OK) {
    fail_if_fatal(slot, status);
  }
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  bool failed = status != LCOMM_OK && slot->undelivered == LCOMM_OK;
  int tag = slot->tag;
  MPI_Request freed = slot->freed;
  slot->freed = MPI_REQUEST_NULL;
  atomic_fetch_add(&lcomm_interpose_undelivered, failed);
  slot->undelivered = failed ? status : slot->undelivered;
  slot->active = false;
  if (!slot->parent) {
    lcomm_interpose_slot_close(slot);
  }
  if (slot->request == MPI_REQUEST_NULL) {
    lcomm_interpose_slot_vacate(slot); /* the program has freed the request meanwhile */
  }
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
  PMPI_Send(NULL, 0, MPI_BYTE, 0, tag, lcomm_interpose_slots_self());
  if (freed != MPI_REQUEST_NULL) {
    (void)complete_and_free(&freed);
  }
}

static int start(lcomm_interpose_persistent_slot *slot, MPI_Request *request) {
  if (!slot->own.context.backing.comm) { /* the communicator was freed */
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_COMM);
    return MPI_ERR_COMM;
  }
  int code = lcomm_interpose_slot_deliver(*request);
  code = code == MPI_SUCCESS ? PMPI_Start(request) : code;
  if (code != MPI_SUCCESS) {
    return code;
  }
  if (lcomm_interpose_recording) {
    lcomm_interpose_record_call(slot->own.comm, slot->type, slot->op, &slot->call, slot->choice,
                                true, slot->why);
  }
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  slot->active = true;
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
  lcomm_interpose_comm_retain(&slot->own);
  atomic_fetch_add(&slot->own.pending, 1);
  lcomm_interpose_call call = slot->call;
  if (lcomm_interpose_is_on_device(&call)) { /* no call of the slot is before it */
    (void)lcomm_interpose_begin_here(&call);
  }
  if (!lcomm_interpose_queue_put(&call, on_done, slot)) {
    lcomm_abort(slot->own.context.backing.comm,
                "a rank has no memory or no thread for a persistent call");
    lcomm_interpose_call_collect(&call);
    on_done(slot, LCOMM_ERR_MEMORY);
    lcomm_interpose_call_done(&slot->call);
  }
  return MPI_SUCCESS;
}

static lcomm_interpose_persistent_slot *find(const MPI_Request *request) {
  if (!lcomm_interpose_slots_exist() || !request) {
    return NULL;
  }
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  lcomm_interpose_persistent_slot *slot = lcomm_interpose_slot_of(*request);
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
  return slot;
}

static int start_any(MPI_Request *request) {
  lcomm_interpose_persistent_slot *slot = find(request);
  return slot ? start(slot, request) : PMPI_Start(request);
}

LCOMM_INTERPOSE_API int MPI_Start(MPI_Request *request) {
  return start_any(request);
}

LCOMM_INTERPOSE_API int MPI_Startall(int count, MPI_Request requests[]) {
  if (!lcomm_interpose_slots_exist() || count < 0 || !requests) {
    return PMPI_Startall(count, requests);
  }
  int code = MPI_SUCCESS;
  for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
    code = start_any(&requests[i]);
  }
  return code;
}

/* ------------------------------------------------------------------- freeing */

/* The end of an active call frees its request. */
LCOMM_INTERPOSE_API int MPI_Request_free(MPI_Request *request) {
  lcomm_interpose_persistent_slot *slot = find(request);
  if (!slot) {
    int code = lcomm_interpose_request_free(request);
    lcomm_interpose_requests_ignore();
    return code;
  }
  int delivered = lcomm_interpose_slot_deliver(*request);
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  bool active = slot->active;
  slot->request = MPI_REQUEST_NULL;
  if (active) {
    slot->freed = *request;
    *request = MPI_REQUEST_NULL;
  } else {
    lcomm_interpose_slot_vacate(slot);
  }
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
  int code = active ? MPI_SUCCESS : complete_and_free(request);
  return delivered != MPI_SUCCESS ? delivered : code;
}
