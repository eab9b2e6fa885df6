/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The requests of non-blocking calls: generalized requests of MPI, which all functions that wait or
 * test accept. */

#include <stdlib.h>

#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_queue.h"
#include "libcomm/interpose/mpi/interpose_wait.h"

/* The tag of a failed request's status, until a waiting function has removed it. */
enum { FAILED_TAG = MPI_UNDEFINED - 1 };

typedef struct held_request {
  lcomm_interpose_call call; /* for the error handler, while the communicator exists */
  MPI_Request request;
  MPI_Count size_bytes;
  bool failed;
  bool delivered; /* the error handler was called: see code */
  bool done;
  bool freed;                         /* by the program, before it was done */
  int code;                           /* that the program gets */
  struct held_request *next;          /* in a list of `all`, or released */
  struct held_request *older, *newer; /* not released */
} held_request;

static struct {
  pthread_mutex_t lock; /* also makes what the queue's thread wrote visible to a waiting thread */
  held_request *spare, *undelivered; /* failures that the program has not got */
  held_request *newest;              /* of those that are not released */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Failed requests that MPI has released in a function that this thread is in. */
static _Thread_local held_request *released;

static held_request *take_spare(void) {
  pthread_mutex_lock(&all.lock);
  held_request *it = all.spare;
  all.spare = it ? it->next : NULL;
  pthread_mutex_unlock(&all.lock);
  return it ? it : malloc(sizeof *it);
}

/* True: the request was in the list of undelivered failures. The caller delivers it. */
static bool take_undelivered(const held_request *wanted) {
  for (held_request **link = &all.undelivered; *link; link = &(*link)->next) {
    if (*link == wanted) {
      *link = wanted->next;
      return true;
    }
  }
  return false;
}

/* This and the next two need the lock. */
static void link_held(held_request *it) {
  it->older = all.newest;
  if (it->older) {
    it->older->newer = it;
  }
  all.newest = it;
}

static void unlink_held(held_request *it) {
  if (it->newer) {
    it->newer->older = it->older;
  } else {
    all.newest = it->older;
  }
  if (it->older) {
    it->older->newer = it->newer;
  }
}

static held_request *find_held(MPI_Request request) {
  held_request *it = all.newest;
  while (it && it->request != request) {
    it = it->older;
  }
  return it;
}

/* ------------------------------------------------------- what MPI calls back */

/* Runs in the thread that waits. Only the communicator's error handler decides about a failure; MPI
 * would call the world's as well. */
static int query(void *state, MPI_Status *status) {
  held_request *it = state;
  pthread_mutex_lock(&all.lock);
  bool failed = it->failed;
  bool undelivered = lcomm_interpose_query_may_fail && take_undelivered(it);
  int code = it->code;
  pthread_mutex_unlock(&all.lock);
  PMPI_Status_set_elements_x(status, MPI_BYTE, failed ? 0 : it->size_bytes);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  if (!failed) {
    return MPI_SUCCESS;
  }
  if (!lcomm_interpose_query_may_fail) {
    status->MPI_TAG = FAILED_TAG;
    return MPI_SUCCESS;
  }
  if (undelivered) {
    it->code = code = lcomm_interpose_call_fail(&it->call, it->call.status);
  }
  if (code != MPI_SUCCESS) {
    lcomm_interpose_error_guard_arm();
  }
  return code;
}

static void recycle(held_request *it) {
  lcomm_interpose_comm *at = it->call.at;
  pthread_mutex_lock(&all.lock);
  it->next = all.spare;
  all.spare = it;
  pthread_mutex_unlock(&all.lock);
  lcomm_interpose_comm_release(at);
}

/* Where the query function has said nothing of a failure, the waiting function delivers it next. */
static int release(void *state) {
  held_request *it = state;
  pthread_mutex_lock(&all.lock);
  unlink_held(it);
  bool undelivered = take_undelivered(it);
  bool later = it->failed && !lcomm_interpose_query_may_fail;
  pthread_mutex_unlock(&all.lock);
  if (!later) { /* if undelivered, the program has not asked for the failure */
    recycle(it);
    return MPI_SUCCESS;
  }
  it->delivered = !undelivered;
  it->next = released;
  released = it;
  atomic_fetch_add(&lcomm_interpose_undelivered, 1);
  return MPI_SUCCESS;
}

/* A collective call cannot be cancelled. */
static int cancel(void *state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

/* ------------------------------------------------------------------ the queue */

static void on_done(void *context, lcomm_status status) {
  held_request *it = context;
  MPI_Request request = it->request; /* another call may reuse `it` once MPI knows */
  pthread_mutex_lock(&all.lock);
  bool freed = it->freed;
  it->done = true;
  it->failed = status != LCOMM_OK;
  it->call.status = status;
  if (it->failed) {
    it->next = all.undelivered;
    all.undelivered = it;
  }
  pthread_mutex_unlock(&all.lock);
  PMPI_Grequest_complete(request);
  if (freed) {
    PMPI_Request_free(&request);
    lcomm_interpose_requests_ignore();
  }
}

/* Where the backing is not created yet there is nothing to abort, and the other ranks wait for it.
 */
static void abort_all(const lcomm_interpose_call *call, const char *why) {
  lcomm_comm *backing = call->comm ? call->comm : call->at->context.backing.comm;
  if (backing) {
    lcomm_abort(backing, why);
  }
}

/* The other ranks make the call, so they must learn that this one does not. */
static int refuse(const lcomm_interpose_call *call) {
  abort_all(call, "a rank has no memory for a request");
  int code = lcomm_interpose_call_fail(call, LCOMM_ERR_MEMORY);
  lcomm_interpose_call_done(call);
  return code;
}

int lcomm_interpose_enqueue(const lcomm_interpose_call *call, MPI_Request *request) {
  held_request *it = take_spare();
  if (!it) {
    return refuse(call);
  }
  lcomm_interpose_comm_retain(call->at); /* until the program has the result */
  *it = (held_request){.call = *call,
                       .size_bytes = (MPI_Count)(call->count * lcomm_dtype_size(call->dtype)),
                       .code = MPI_ERR_OTHER};
  if (PMPI_Grequest_start(query, release, cancel, it, &it->request) != MPI_SUCCESS) {
    free(it);
    lcomm_interpose_comm_release(call->at);
    return refuse(call);
  }
  pthread_mutex_lock(&all.lock);
  link_held(it);
  pthread_mutex_unlock(&all.lock);
  *request = it->request;
  if (!lcomm_interpose_queue_put(call, on_done, it)) {
    abort_all(call, "a rank has no memory or no thread for a call that does not block");
    on_done(it, LCOMM_ERR_MEMORY);
    lcomm_interpose_call_done(call);
  }
  return MPI_SUCCESS;
}

/* --------------------------------------------- failures that MPI has not seen */

static held_request *take_released(void) {
  held_request *it = released;
  if (it) {
    released = it->next;
    atomic_fetch_sub(&lcomm_interpose_undelivered, 1);
  }
  return it;
}

int lcomm_interpose_requests_deliver(void) {
  int code = MPI_SUCCESS;
  for (held_request *it = take_released(); it; it = take_released()) {
    code = it->delivered ? it->code : lcomm_interpose_call_fail(&it->call, it->call.status);
    recycle(it);
  }
  return code;
}

void lcomm_interpose_requests_ignore(void) {
  for (held_request *it = take_released(); it; it = take_released()) {
    recycle(it);
  }
}

bool lcomm_interpose_request_free_when_done(MPI_Request request, bool *done) {
  pthread_mutex_lock(&all.lock);
  held_request *it = find_held(request);
  bool later = it && !it->done;
  *done = it && it->done;
  if (later) {
    it->freed = true;
  }
  pthread_mutex_unlock(&all.lock);
  return later;
}

bool lcomm_interpose_request_failed(MPI_Status *status) {
  bool failed = status->MPI_TAG == FAILED_TAG && status->MPI_SOURCE == MPI_UNDEFINED;
  status->MPI_TAG = failed ? MPI_UNDEFINED : status->MPI_TAG;
  return failed;
}

/* ------------------------------------------------------------------ the end */

static held_request *next_undelivered(const lcomm_interpose_comm *at) {
  pthread_mutex_lock(&all.lock);
  held_request **link = &all.undelivered;
  while (*link && at && (*link)->call.at != at) {
    link = &(*link)->next;
  }
  held_request *it = *link;
  if (it) {
    *link = it->next;
  }
  pthread_mutex_unlock(&all.lock);
  return it;
}

void lcomm_interpose_requests_detach(const lcomm_interpose_comm *at) {
  for (held_request *it = next_undelivered(at); it; it = next_undelivered(at)) {
    int code = lcomm_interpose_call_fail(&it->call, it->call.status);
    pthread_mutex_lock(&all.lock);
    it->code = code;
    pthread_mutex_unlock(&all.lock);
  }
}

void lcomm_interpose_requests_free(void) {
  while (all.spare) {
    held_request *next = all.spare->next;
    free(all.spare);
    all.spare = next;
  }
}
