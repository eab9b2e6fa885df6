/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/residual_staging.h"

#include <stdlib.h>

#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/tensor/residual_quorum.h"

struct lcomm_residual_staging {
  int device;
  void *memory; /* pinned, of all elements */
  void *stream; /* for calls without one */
  /* Of the call in flight, */
  void *receive; /* where its result goes; NULL: it is in memory of the host */
  void *in;      /* the stream that it is in order with */
};

typedef struct lcomm_residual_staging staging;

/* ----------------------------------------------------------------- CUDA's part */

/* Without the communicator's turn: what the stream waits for may be messages. */
static lcomm_status copy(const lcomm_residual *residual, void *to, const void *from) {
  lcomm_comm *comm = residual->ef.comm;
  const staging *it = residual->staging;
  const size_t size = residual->ef.request.count * sizeof(float);
  unsigned depth = lcomm_turn_give(comm);
  int error = lcomm_device_copy_now(it->device, to, from, size, it->in);
  lcomm_turn_take(comm, depth);
  return error == 0 ? LCOMM_OK
                    : lcomm_fail(comm, LCOMM_ERR_SYSTEM,
                                 "residual %llu: %llu elements cannot be copied between device %d "
                                 "and the host: %s",
                                 (unsigned long long)residual->number,
                                 (unsigned long long)residual->ef.request.count, it->device,
                                 lcomm_device_get(NULL)->explain(error));
}

/* --------------------------------------------------------------------- life */

static void free_all(staging *it) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  if (it->stream) {
    (void)table->stream.destroy(it->stream);
  }
  if (it->memory) {
    (void)table->memory.pinned_free(it->memory);
  }
  free(it);
}

static staging *make(int device, size_t size) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  staging *made = calloc(1, sizeof *made);
  if (!made) {
    return NULL;
  }
  made->device = device;
  made->memory = lcomm_device_memory_of(device, size, table->memory.pinned_get);
  if (!made->memory || lcomm_device_stream_of(device, &made->stream) != 0) {
    free_all(made);
    return NULL;
  }
  return made;
}

void lcomm_residual_staging_free(lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  if (residual->staging) {
    unsigned depth = lcomm_turn_give(comm);
    free_all(residual->staging);
    lcomm_turn_take(comm, depth);
    residual->staging = NULL;
  }
}

/* Made once, and again for buffers on another device. */
static lcomm_status prepare(lcomm_residual *residual, int device) {
  lcomm_comm *comm = residual->ef.comm;
  if (residual->staging && residual->staging->device == device) {
    return LCOMM_OK;
  }
  lcomm_residual_staging_free(residual);
  unsigned depth = lcomm_turn_give(comm);
  staging *made = make(device, residual->ef.request.count * sizeof(float));
  lcomm_turn_take(comm, depth);
  residual->staging = made;
  return made ? LCOMM_OK
              : lcomm_fail(comm, LCOMM_ERR_MEMORY,
                           "out of pinned memory for %llu elements of a residual",
                           (unsigned long long)residual->ef.request.count);
}

/* -------------------------------------------------------------------- calls */

lcomm_status lcomm_residual_to_host(void *owner, lcomm_call *call) {
  lcomm_residual *residual = owner;
  if (!lcomm_residual_has_quorum(residual)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_residual_check_idle(residual, lcomm_residual_call_name(residual, call)));
  LCOMM_TRY(prepare(residual, call->request.location.device));
  staging *it = residual->staging;
  it->in = call->on_stream ? call->stream : it->stream;
  LCOMM_TRY(copy(residual, it->memory, call->send.data));
  it->receive = call->receive.data;
  call->send.data = call->receive.data = it->memory;
  call->send.location = call->receive.location = call->request.location =
      (lcomm_memory_location){.kind = LCOMM_MEMORY_HOST};
  call->on_stream = false;
  return LCOMM_OK;
}

void lcomm_residual_staging_begin(lcomm_residual *residual, const lcomm_call *call) {
  staging *it = residual->staging;
  if (it && call->receive.data != it->memory) {
    it->receive = NULL;
  }
}

lcomm_status lcomm_residual_from_host(lcomm_residual *residual) {
  staging *it = residual->staging;
  if (!it || !it->receive) {
    return LCOMM_OK;
  }
  void *receive = it->receive;
  it->receive = NULL;
  return copy(residual, receive, it->memory);
}
