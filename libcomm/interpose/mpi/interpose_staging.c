/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/interpose_staging.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/interpose/mpi/interpose_comm.h"

struct lcomm_interpose_staging {
  lcomm_interpose_comm *at;
  void *memory;  /* of the host: what is sent, then the result; in place one for both */
  void *result;  /* in `memory` */
  void *receive; /* the program's */
  size_t result_size;
  bool is_out;                          /* copied to `receive` */
  struct lcomm_interpose_staging *next; /* released */
};

static struct {
  pthread_mutex_t lock;    /* guards the list */
  pthread_mutex_t copying; /* held while a result is copied */
  lcomm_interpose_staging *released;
  atomic_uint released_count; /* a look without the lock */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .copying = PTHREAD_MUTEX_INITIALIZER};

bool lcomm_interpose_is_on_device(const lcomm_interpose_call *call) {
  return lcomm_device_holds(call->send) || lcomm_device_holds(call->receive);
}

/* ---------------------------------------------------------------- begin here */

/* Needs the lock. */
static bool may_begin(lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  lcomm_status status = LCOMM_OK;
  return lcomm_interpose_backing_ready(at, &status) && status == LCOMM_OK &&
         atomic_load(&at->waiting) == 0 && (call->comm || at->context.backing.comm);
}

bool lcomm_interpose_begin_here(lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  lcomm_status before = call->status;
  pthread_mutex_lock(&at->lock);
  call->begun = may_begin(call);
  if (call->begun) {
    call->status = lcomm_interpose_call_begin(call, &call->request);
  }
  if (call->feedback != LCOMM_INTERPOSE_PLAIN && call->status == LCOMM_ERR_STATE) {
    call->begun = false;
    call->status = before;
  }
  pthread_mutex_unlock(&at->lock);
  return call->begun;
}

/* ------------------------------------------------------------------- staging */

static size_t result_size_of(const lcomm_interpose_call *call) {
  return call->count * lcomm_dtype_size(call->dtype);
}

static size_t input_size_of(const lcomm_interpose_call *call) {
  uint64_t parts = call->kind == LCOMM_CALL_REDUCE_SCATTER ? (uint64_t)call->at->size : 1;
  return result_size_of(call) * parts;
}

static void discard(lcomm_interpose_staging *it) {
  free(it->memory);
  free(it);
}

/* In place the result has the place of its part of what is sent. */
static lcomm_interpose_staging *make(const lcomm_interpose_call *call) {
  size_t input_size = input_size_of(call), result_size = result_size_of(call);
  bool in_place = call->send == call->receive;
  lcomm_interpose_staging *it = calloc(1, sizeof *it);
  char *memory = it ? malloc(input_size + (in_place ? 0 : result_size)) : NULL;
  if (!memory) {
    free(it);
    return NULL;
  }
  *it = (lcomm_interpose_staging){.at = call->at,
                                  .memory = memory,
                                  .result = memory + (in_place ? 0 : input_size),
                                  .receive = call->receive,
                                  .result_size = result_size};
  return it;
}

static void keep_error(lcomm_interpose_comm *at, const char *what, const char *why) {
  char text[512];
  snprintf(text, sizeof(text), "rank %d of a communicator of %d ranks %s: %s", at->rank, at->size,
           what, why);
  pthread_mutex_lock(&at->lock);
  lcomm_interpose_context_keep_error(&at->context, text);
  pthread_mutex_unlock(&at->lock);
}

static void stage(lcomm_interpose_call *call) {
  static const char what[] = "cannot copy a buffer of its device to the host";
  lcomm_interpose_staging *it = make(call);
  if (!it) {
    call->status = LCOMM_ERR_MEMORY;
    keep_error(call->at, what, "out of memory");
    return;
  }
  lcomm_status status = lcomm_device_copy(it->memory, call->send, input_size_of(call));
  if (status != LCOMM_OK) {
    call->status = status;
    keep_error(call->at, what, lcomm_last_error(NULL));
    discard(it);
    return;
  }
  call->send = it->memory;
  call->receive = it->result;
  call->staging = it;
}

void lcomm_interpose_begin_later(lcomm_interpose_call *call) {
  if (call->feedback == LCOMM_INTERPOSE_PLAIN) {
    stage(call);
  } else {
    call->is_left = true;
  }
}

static lcomm_status copy_out(lcomm_interpose_staging *it) {
  lcomm_status status = LCOMM_OK;
  pthread_mutex_lock(&all.copying);
  if (!it->is_out) {
    status = lcomm_device_copy(it->receive, it->result, it->result_size);
    it->is_out = true;
  }
  pthread_mutex_unlock(&all.copying);
  return status;
}

lcomm_status lcomm_interpose_stage_out(lcomm_interpose_staging *it) {
  lcomm_status status = copy_out(it);
  if (status != LCOMM_OK) {
    keep_error(it->at, "cannot copy a result to its device", lcomm_last_error(NULL));
  }
  return status;
}

/* -------------------------------------------------------------------- release */

void lcomm_interpose_staging_release(lcomm_interpose_staging *it, lcomm_status status) {
  if (it->is_out || status != LCOMM_OK) {
    discard(it);
    return;
  }
  pthread_mutex_lock(&all.lock);
  it->next = all.released;
  all.released = it;
  pthread_mutex_unlock(&all.lock);
  atomic_fetch_add(&all.released_count, 1);
}

static lcomm_interpose_staging *take_released(void) {
  pthread_mutex_lock(&all.lock);
  lcomm_interpose_staging *taken = all.released;
  all.released = NULL;
  pthread_mutex_unlock(&all.lock);
  return taken;
}

void lcomm_interpose_staging_settle(void) {
  if (atomic_load_explicit(&all.released_count, memory_order_acquire) == 0) {
    return;
  }
  for (lcomm_interpose_staging *it = take_released(), *next = NULL; it; it = next) {
    next = it->next;
    atomic_fetch_sub(&all.released_count, 1);
    if (copy_out(it) != LCOMM_OK) {
      lcomm_interpose_log("the result of a call whose request was freed is lost: %s",
                          lcomm_last_error(NULL));
    }
    discard(it);
  }
}
