/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Requests of calls that do not block, as the program holds them: generalized
 * requests of MPI, which work in all functions that wait or test. */

#include <stdlib.h>

#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/echo.h"
#include "libcomm/interpose/mpi/queue.h"

typedef struct held {
  lcomm_interpose_call call; /* of a failure, while its communicator is there */
  MPI_Request request;
  MPI_Count size_bytes;
  bool failed, told;
  int code;          /* that the program is told */
  struct held *next; /* spare, or failed and not told */
} held;

static struct {
  pthread_mutex_t lock; /* also carries what the thread wrote to who waits */
  held *spare, *untold;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static held *take_spare(void) {
  pthread_mutex_lock(&all.lock);
  held *it = all.spare;
  all.spare = it ? it->next : NULL;
  pthread_mutex_unlock(&all.lock);
  return it ? it : malloc(sizeof *it);
}

/* Off the list of those that nobody was told of? Whoever takes one off tells it. */
static bool take_untold(const held *wanted) {
  for (held **link = &all.untold; *link; link = &(*link)->next) {
    if (*link == wanted) {
      *link = wanted->next;
      return true;
    }
  }
  return false;
}

/* ------------------------------------------------------- what MPI calls back */

/* In the thread that waits. The communicator's error handler decides about a failure, and only
 * it: MPI would ask that of the world as well. */
static int query(void *state, MPI_Status *status) {
  held *it = state;
  pthread_mutex_lock(&all.lock);
  bool failed = it->failed, mine = take_untold(it);
  int code = it->code;
  pthread_mutex_unlock(&all.lock);
  PMPI_Status_set_elements_x(status, MPI_BYTE, failed ? 0 : it->size_bytes);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  if (!failed) {
    return MPI_SUCCESS;
  }
  if (mine) {
    it->code = code = lcomm_interpose_fail(&it->call, it->call.status);
  }
  if (code != MPI_SUCCESS) {
    lcomm_interpose_echo_expect();
  }
  return code;
}

static int release(void *state) {
  held *it = state;
  pthread_mutex_lock(&all.lock);
  (void)take_untold(it); /* the program did not want to know */
  lcomm_interpose_comm *at = it->call.at;
  it->next = all.spare;
  all.spare = it;
  pthread_mutex_unlock(&all.lock);
  lcomm_interpose_unuse(at);
  return MPI_SUCCESS;
}

/* A collective call cannot be cancelled. */
static int cancel(void *state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

/* ------------------------------------------------------------------ the queue */

static void is_over(void *context, lcomm_status status) {
  held *it = context;
  MPI_Request request = it->request; /* `it` is the next call's as soon as MPI knows */
  pthread_mutex_lock(&all.lock);
  it->failed = status != LCOMM_OK;
  it->call.status = status;
  if (it->failed) {
    it->next = all.untold;
    all.untold = it;
  }
  pthread_mutex_unlock(&all.lock);
  PMPI_Grequest_complete(request);
}

/* Where the communicator is in the making, there is none to abort: the others wait for it. */
static void abort_all(const lcomm_interpose_call *call, const char *why) {
  lcomm_comm *home = call->home ? call->home : call->at->home.comm;
  if (home) {
    lcomm_abort(home, why);
  }
}

/* The other ranks make the call: they must hear that this one does not. */
static int refuse(const lcomm_interpose_call *call) {
  abort_all(call, "a rank has no memory for a request");
  int code = lcomm_interpose_fail(call, LCOMM_ERR_MEMORY);
  lcomm_interpose_done(call);
  return code;
}

int lcomm_interpose_enqueue(const lcomm_interpose_call *call, MPI_Request *request) {
  held *it = take_spare();
  if (!it) {
    return refuse(call);
  }
  lcomm_interpose_use(call->at); /* until the program has heard */
  *it = (held){.call = *call,
               .size_bytes = (MPI_Count)(call->count * lcomm_dtype_size(call->dtype)),
               .code = MPI_ERR_OTHER};
  if (PMPI_Grequest_start(query, release, cancel, it, &it->request) != MPI_SUCCESS) {
    free(it);
    lcomm_interpose_unuse(call->at);
    return refuse(call);
  }
  *request = it->request;
  if (!lcomm_interpose_queue_put(call, is_over, it)) {
    abort_all(call, "a rank has no memory or no thread for a call that does not block");
    is_over(it, LCOMM_ERR_MEMORY);
    lcomm_interpose_done(call);
  }
  return MPI_SUCCESS;
}

/* ------------------------------------------------------------------ the end */

static held *next_untold(const lcomm_interpose_comm *at) {
  pthread_mutex_lock(&all.lock);
  held **link = &all.untold;
  while (*link && at && (*link)->call.at != at) {
    link = &(*link)->next;
  }
  held *it = *link;
  if (it) {
    *link = it->next;
  }
  pthread_mutex_unlock(&all.lock);
  return it;
}

void lcomm_interpose_requests_forget(const lcomm_interpose_comm *at) {
  for (held *it = next_untold(at); it; it = next_untold(at)) {
    int code = lcomm_interpose_fail(&it->call, it->call.status);
    pthread_mutex_lock(&all.lock);
    it->code = code;
    pthread_mutex_unlock(&all.lock);
  }
}

void lcomm_interpose_requests_free(void) {
  while (all.spare) {
    held *next = all.spare->next;
    free(all.spare);
    all.spare = next;
  }
}
