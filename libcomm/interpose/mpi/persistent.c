/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Persistent requests: made, started, freed. */

#include "libcomm/interpose/mpi/persistent.h"

#include "libcomm/interpose/mpi/blocking.h"
#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/note.h"
#include "libcomm/interpose/mpi/queue.h"
#include "libcomm/interpose/mpi/report.h"

/* ------------------------------------------------------------------- making */

/* Is it libcomm's, and with a residual of its own? By what is equal on all ranks. */
static bool choose(lcomm_interpose_call *call, lcomm_selection *choice, const char **why) {
  const lcomm_interpose_comm *at = call->at;
  if (at->off || at->stays_mpi || (at->facts.uses_names && !at->name_agreed)) {
    *why = "switched off, or without an agreed name, when the request was made";
    return false;
  }
  *choice = lcomm_preview_query(at->preview, call->kind, call->count, call->dtype, call->op, why);
  return *choice != LCOMM_SELECT_NONE &&
         (*choice != LCOMM_SELECT_EF || call->dtype == LCOMM_FLOAT32);
}

/* A request that is taken is noted at each start. */
static bool is_taken(MPI_Comm comm, MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call,
                     lcomm_selection *choice, const char **why) {
  *why = "a type, an operation or a communicator that libcomm does not have";
  bool known = lcomm_interpose_dtype(type, &call->dtype) && lcomm_interpose_op(op, &call->op);
  call->at = lcomm_interpose_find(comm);
  bool chosen = known && call->at && choose(call, choice, why);
  int mode = atomic_load(&lcomm_interpose_mode_now);
  if (mode == LCOMM_INTERPOSE_BLOCKING) {
    *choice = LCOMM_SELECT_NONE;
    *why = lcomm_interpose_not_blocking;
  }
  bool taken = chosen && mode == LCOMM_INTERPOSE_OPEN;
  if (lcomm_interpose_noting && !taken) {
    lcomm_interpose_note_call(comm, type, op, call, *choice, chosen, *why);
  }
  return taken;
}

static int hand_out(lcomm_interpose_place *place, const lcomm_interpose_call *call,
                    MPI_Request *request) {
  int code =
      PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, place->tag, lcomm_interpose_places_self(), request);
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  if (code == MPI_SUCCESS) {
    place->call.send = call->send;
    place->call.receive = call->receive;
    place->request = *request;
  } else {
    lcomm_interpose_place_leave(place);
  }
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
  return code == MPI_SUCCESS ? code : lcomm_interpose_fail(&place->call, LCOMM_ERR_MEMORY);
}

bool lcomm_interpose_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                    MPI_Request *request, int *code) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  lcomm_selection choice = LCOMM_SELECT_NONE;
  const char *why = "";
  lcomm_interpose_place *place = NULL;
  if (!lcomm_interpose_is_shut() && count > 0 && request &&
      lcomm_interpose_buffers_differ(sendbuf, recvbuf) &&
      is_taken(comm, type, op, &call, &choice, &why)) {
    place = lcomm_interpose_place_take(&call, choice == LCOMM_SELECT_EF);
  }
  if (!place) {
    return false;
  }
  call.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
  call.receive = recvbuf;
  place->type = type;
  place->op = op;
  place->choice = choice;
  place->why = why;
  *code = hand_out(place, &call, request);
  return true;
}

/* ------------------------------------------------------------------ starting */

/* Functions that wait hear of a failure in completion.c, those of Fortran do not: where the
 * error handler would end the job there, it does so here. */
static void fail_at_once(const lcomm_interpose_place *place, lcomm_status status) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (place->own.comm == MPI_COMM_NULL) {
    return; /* it was freed */
  }
  PMPI_Comm_get_errhandler(place->own.comm, &handler);
  bool fatal = handler == MPI_ERRORS_ARE_FATAL;
  PMPI_Errhandler_free(&handler);
  if (fatal) {
    lcomm_interpose_fail(&place->call, status);
  }
}

/* In the queue's thread. The message ends the receive that MPI_Start posted; from then on the
 * program may do anything with the request. */
static void is_over(void *context, lcomm_status status) {
  lcomm_interpose_place *place = context;
  if (status != LCOMM_OK) {
    fail_at_once(place, status);
  }
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  bool failed = status != LCOMM_OK && place->untold == LCOMM_OK;
  int tag = place->tag;
  atomic_fetch_add(&lcomm_interpose_untold, failed);
  place->untold = failed ? status : place->untold;
  place->active = false;
  if (!place->parent) {
    lcomm_interpose_place_end(place);
  }
  if (place->request == MPI_REQUEST_NULL) {
    lcomm_interpose_place_leave(place); /* the program has freed it meanwhile */
  }
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
  PMPI_Send(NULL, 0, MPI_BYTE, 0, tag, lcomm_interpose_places_self());
}

static int start(lcomm_interpose_place *place, MPI_Request *request) {
  if (!place->own.home.comm) { /* its communicator was freed */
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_COMM);
    return MPI_ERR_COMM;
  }
  int code = lcomm_interpose_tell(*request);
  code = code == MPI_SUCCESS ? PMPI_Start(request) : code;
  if (code != MPI_SUCCESS) {
    return code;
  }
  if (lcomm_interpose_noting) {
    lcomm_interpose_note_call(place->own.comm, place->type, place->op, &place->call, place->choice,
                              true, place->why);
  }
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  place->active = true;
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
  lcomm_interpose_use(&place->own);
  atomic_fetch_add(&place->own.pending, 1);
  if (!lcomm_interpose_queue_put(&place->call, is_over, place)) {
    lcomm_abort(place->own.home.comm, "a rank has no memory or no thread for a persistent call");
    is_over(place, LCOMM_ERR_MEMORY);
    lcomm_interpose_done(&place->call);
  }
  return MPI_SUCCESS;
}

static lcomm_interpose_place *find(const MPI_Request *request) {
  if (!lcomm_interpose_places_exist() || !request) {
    return NULL;
  }
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  lcomm_interpose_place *place = lcomm_interpose_place_of(*request);
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
  return place;
}

static int start_any(MPI_Request *request) {
  lcomm_interpose_place *place = find(request);
  return place ? start(place, request) : PMPI_Start(request);
}

LCOMM_INTERPOSE_API int MPI_Start(MPI_Request *request) {
  return start_any(request);
}

LCOMM_INTERPOSE_API int MPI_Startall(int count, MPI_Request requests[]) {
  if (!lcomm_interpose_places_exist() || count < 0 || !requests) {
    return PMPI_Startall(count, requests);
  }
  int code = MPI_SUCCESS;
  for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
    code = start_any(&requests[i]);
  }
  return code;
}

/* ------------------------------------------------------------------- freeing */

/* MPI keeps an active receive until its message has come. */
LCOMM_INTERPOSE_API int MPI_Request_free(MPI_Request *request) {
  lcomm_interpose_place *place = find(request);
  if (!place) {
    return PMPI_Request_free(request);
  }
  int told = lcomm_interpose_tell(*request);
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  place->request = MPI_REQUEST_NULL;
  if (!place->active) {
    lcomm_interpose_place_leave(place);
  }
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
  int code = PMPI_Request_free(request);
  return told != MPI_SUCCESS ? told : code;
}
