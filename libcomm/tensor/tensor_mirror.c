/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/tensor_mirror.h"

#include <pthread.h>
#include <stdlib.h>

#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"

/* Of all tensors of a communicator. */
struct lcomm_tensor_mirrors {
  int device;
  void *stream;         /* in which all copies are made, */
  pthread_mutex_t lock; /* by one thread at a time */
};

typedef struct lcomm_tensor_mirrors mirrors;

static size_t size_of(const lcomm_tensor *tensor) {
  return tensor->count * lcomm_dtype_size(tensor->dtype);
}

/* --------------------------------------------------------------------- life */

static mirrors *make(int device) {
  mirrors *made = calloc(1, sizeof *made);
  if (!made) {
    return NULL;
  }
  made->device = device;
  if (lcomm_device_stream_of(device, &made->stream) != 0) {
    free(made);
    return NULL;
  }
  pthread_mutex_init(&made->lock, NULL);
  return made;
}

static bool make_all(lcomm_tensor_set *set, lcomm_tensor *tensor) {
  int device = set->place.given.device;
  set->place.mirrors = set->place.mirrors ? set->place.mirrors : make(device);
  if (!set->place.mirrors) {
    return false;
  }
  tensor->mirror =
      lcomm_device_memory_of(device, size_of(tensor), lcomm_device_get(NULL)->memory.pinned_get);
  return tensor->mirror != NULL;
}

bool lcomm_tensor_mirror_make(lcomm_comm *comm, lcomm_tensor *tensor) {
  lcomm_tensor_set *set = comm->tensors;
  bool needs_one = lcomm_memory_is_on_device(set->place.given) &&
                   !lcomm_memory_is_on_device(set->location) && tensor->count > 0;
  if (!needs_one) {
    return true;
  }
  unsigned depth = lcomm_turn_give(comm);
  bool whole = make_all(set, tensor);
  lcomm_turn_take(comm, depth);
  return whole;
}

void lcomm_tensor_mirror_free(lcomm_tensor *tensor) {
  if (tensor->mirror) {
    (void)lcomm_device_get(NULL)->memory.pinned_free(tensor->mirror);
    tensor->mirror = NULL;
  }
}

void lcomm_tensor_mirrors_free(lcomm_comm *comm) {
  lcomm_tensor_set *set = comm->tensors;
  mirrors *it = set->place.mirrors;
  if (!it) {
    return;
  }
  for (size_t i = 0; i < set->count; i++) {
    lcomm_tensor_mirror_free(set->list[i]);
  }
  (void)lcomm_device_get(NULL)->stream.destroy(it->stream);
  pthread_mutex_destroy(&it->lock);
  free(it);
  set->place.mirrors = NULL;
}

/* ------------------------------------------------------------------- copies */

/* After what the program's stream has to do with it; both by one thread at a time, and without the
 * communicator's turn: what that stream waits for may be messages. */
static int copy_in(lcomm_tensor *tensor) {
  mirrors *it = tensor->comm->tensors->place.mirrors;
  int error = 0;
  pthread_mutex_lock(&it->lock);
  if (atomic_exchange(&tensor->on_stream, false)) {
    error = lcomm_device_get(NULL)->stream.wait(it->stream, tensor->event);
  }
  if (!error) {
    error = lcomm_device_copy_now(it->device, tensor->mirror, tensor->data, size_of(tensor),
                                  it->stream);
  }
  pthread_mutex_unlock(&it->lock);
  return error;
}

static int copy_out(lcomm_tensor *tensor) {
  mirrors *it = tensor->comm->tensors->place.mirrors;
  pthread_mutex_lock(&it->lock);
  int error =
      lcomm_device_copy_now(it->device, tensor->data, tensor->mirror, size_of(tensor), it->stream);
  pthread_mutex_unlock(&it->lock);
  return error;
}

static lcomm_status fail(lcomm_tensor *tensor, int error) {
  return lcomm_fail(tensor->comm, LCOMM_ERR_SYSTEM,
                    "tensor %s of %llu elements cannot be copied between device %d and the host: "
                    "%s",
                    tensor->name, (unsigned long long)tensor->count,
                    tensor->comm->tensors->place.mirrors->device,
                    lcomm_device_get(NULL)->explain(error));
}

lcomm_status lcomm_tensor_mirror_bring(lcomm_tensor *tensor) {
  int error = tensor->mirror ? copy_in(tensor) : 0;
  if (error == 0) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_enter(tensor->comm));
  lcomm_status status = fail(tensor, error);
  lcomm_exit(tensor->comm);
  return status;
}

lcomm_status lcomm_tensor_mirror_return(lcomm_tensor *tensor) {
  lcomm_comm *comm = tensor->comm;
  if (!tensor->mirror || !tensor->planned || atomic_load(&tensor->returned)) {
    return LCOMM_OK;
  }
  unsigned depth = lcomm_turn_give(comm);
  int error = copy_out(tensor);
  lcomm_turn_take(comm, depth);
  return error == 0 ? LCOMM_OK : fail(tensor, error);
}

lcomm_status lcomm_tensor_mirrors_return(lcomm_comm *comm) {
  for (size_t i = 0; comm->tensors->place.mirrors && i < comm->tensors->count; i++) {
    LCOMM_TRY(lcomm_tensor_mirror_return(comm->tensors->list[i]));
  }
  return LCOMM_OK;
}
