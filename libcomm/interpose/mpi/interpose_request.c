/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The requests of non-blocking calls: generalized requests of MPI, which all functions that wait or
 * test accept. */

#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_held.h"
#include "libcomm/interpose/mpi/interpose_queue.h"
#include "libcomm/interpose/mpi/interpose_staging.h"
#include "libcomm/interpose/mpi/interpose_wait.h"

/* The tag of a failed request's status, until a waiting function has removed it. */
enum { FAILED_TAG = MPI_UNDEFINED - 1 };

/* Requests that MPI has released in a function that this thread is in, and that have failed or were
 * staged. */
static _Thread_local lcomm_interpose_held *released;

/* ------------------------------------------------------- what MPI calls back */

/* In a thread of the program: the result of a call that was staged goes to its device. */
static void stage_out(lcomm_interpose_held *it) {
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  bool failed = it->failed;
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
  lcomm_status status = failed ? LCOMM_OK : lcomm_interpose_stage_out(it->call.staging);
  if (status != LCOMM_OK) {
    pthread_mutex_lock(&lcomm_interpose_held_lock);
    lcomm_interpose_held_fail(it, status);
    pthread_mutex_unlock(&lcomm_interpose_held_lock);
  }
}

/* Runs in the thread that waits. Only the communicator's error handler decides about a failure; MPI
 * would call the world's as well. */
static int query(void *state, MPI_Status *status) {
  lcomm_interpose_held *it = state;
  if (it->call.staging && lcomm_interpose_query_may_fail) {
    stage_out(it);
  }
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  bool failed = it->failed;
  bool undelivered = lcomm_interpose_query_may_fail && lcomm_interpose_held_take_failure(it);
  int code = it->code;
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
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

/* Where the query function has said nothing of a failure, and copied no result, the waiting
 * function does so next. */
static int release(void *state) {
  lcomm_interpose_held *it = state;
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  lcomm_interpose_held_unlink(it);
  bool undelivered = lcomm_interpose_held_take_failure(it);
  bool later = (it->failed || it->call.staging) && !lcomm_interpose_query_may_fail;
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
  if (!later) { /* if undelivered, the program has not asked for the failure */
    lcomm_interpose_held_recycle(it);
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
  lcomm_interpose_held *it = context;
  MPI_Request request = it->request; /* another call may reuse `it` once MPI knows */
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  bool freed = it->freed;
  it->done = true;
  it->call.status = status;
  if (status != LCOMM_OK) {
    lcomm_interpose_held_fail(it, status);
  }
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
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
static int refuse(lcomm_interpose_call *call) {
  abort_all(call, "a rank has no memory for a request");
  int code = lcomm_interpose_call_fail(call, LCOMM_ERR_MEMORY);
  lcomm_interpose_call_collect(call);
  lcomm_interpose_call_done(call);
  if (call->staging) {
    lcomm_interpose_staging_release(call->staging, LCOMM_ERR_MEMORY);
  }
  return code;
}

int lcomm_interpose_enqueue(lcomm_interpose_call *call, MPI_Request *request) {
  lcomm_interpose_held *it = lcomm_interpose_held_make(call);
  if (!it) {
    return refuse(call);
  }
  if (PMPI_Grequest_start(query, release, cancel, it, &it->request) != MPI_SUCCESS) {
    it->call.staging = NULL;
    lcomm_interpose_held_recycle(it);
    return refuse(call);
  }
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  lcomm_interpose_held_link(it);
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
  *request = it->request;
  if (!lcomm_interpose_queue_put(call, on_done, it)) {
    abort_all(call, "a rank has no memory or no thread for a call that does not block");
    lcomm_interpose_call_collect(call);
    on_done(it, LCOMM_ERR_MEMORY);
    lcomm_interpose_call_done(call);
  }
  return MPI_SUCCESS;
}

/* --------------------------------------------- failures that MPI has not seen */

static lcomm_interpose_held *take_released(void) {
  lcomm_interpose_held *it = released;
  if (it) {
    released = it->next;
    atomic_fetch_sub(&lcomm_interpose_undelivered, 1);
  }
  return it;
}

/* A failure, or the result of a call that was staged. */
static int deliver(lcomm_interpose_held *it) {
  if (!it->failed && it->call.staging) {
    it->call.status = lcomm_interpose_stage_out(it->call.staging);
    it->failed = it->call.status != LCOMM_OK;
    it->delivered = false;
  }
  if (it->failed && !it->delivered) {
    it->code = lcomm_interpose_call_fail(&it->call, it->call.status);
  }
  return it->failed ? it->code : MPI_SUCCESS;
}

int lcomm_interpose_requests_deliver(void) {
  int code = MPI_SUCCESS;
  for (lcomm_interpose_held *it = take_released(); it; it = take_released()) {
    code = deliver(it) == MPI_SUCCESS ? code : it->code;
    lcomm_interpose_held_recycle(it);
  }
  return code;
}

void lcomm_interpose_requests_ignore(void) {
  for (lcomm_interpose_held *it = take_released(); it; it = take_released()) {
    lcomm_interpose_held_recycle(it);
  }
}

bool lcomm_interpose_request_free_when_done(MPI_Request request, bool *done) {
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  lcomm_interpose_held *it = lcomm_interpose_held_find(request);
  bool later = it && !it->done;
  *done = it && it->done;
  if (later) {
    it->freed = true;
  }
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
  return later;
}

bool lcomm_interpose_request_failed(MPI_Status *status) {
  bool failed = status->MPI_TAG == FAILED_TAG && status->MPI_SOURCE == MPI_UNDEFINED;
  status->MPI_TAG = failed ? MPI_UNDEFINED : status->MPI_TAG;
  return failed;
}

/* ------------------------------------------------------------------ the end */

static lcomm_interpose_held *next_failure(const lcomm_interpose_comm *at) {
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  lcomm_interpose_held *it = lcomm_interpose_held_next_failure(at);
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
  return it;
}

void lcomm_interpose_requests_detach(const lcomm_interpose_comm *at) {
  for (lcomm_interpose_held *it = next_failure(at); it; it = next_failure(at)) {
    int code = lcomm_interpose_call_fail(&it->call, it->call.status);
    pthread_mutex_lock(&lcomm_interpose_held_lock);
    it->code = code;
    pthread_mutex_unlock(&lcomm_interpose_held_lock);
  }
}
