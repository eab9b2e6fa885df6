/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Changes of a tensor between steps: its buffer, and whether it takes part. */

#include "libcomm/base/error.h"
#include "libcomm/device/memory_location.h"
#include "libcomm/engine/entry.h"
#include "libcomm/tensor/bucket.h"

static lcomm_status check(lcomm_comm *comm, const lcomm_tensor *tensor, const char *call) {
  LCOMM_TRY(lcomm_tensor_check(comm, tensor, call));
  return (lcomm_status)atomic_load(&comm->errors.status);
}

/* ---------------------------------------------------------------- buffers */

bool lcomm_tensors_overlap(const lcomm_tensor *one, const lcomm_tensor *other) {
  uintptr_t begin = (uintptr_t)one->data, other_begin = (uintptr_t)other->data;
  uint64_t size = one->count * lcomm_dtype_size(one->dtype);
  uint64_t other_size = other->count * lcomm_dtype_size(other->dtype);
  bool overlap =
      begin <= other_begin ? other_begin - begin < size : begin - other_begin < other_size;
  return overlap && size > 0 && other_size > 0;
}

lcomm_status lcomm_tensor_data_set(lcomm_comm *comm, lcomm_tensor *tensor, void *data) {
  char one[LCOMM_MEMORY_LOCATION_NAME_MAX], other[LCOMM_MEMORY_LOCATION_NAME_MAX];
  LCOMM_TRY(check(comm, tensor, "lcomm_tensor_data_set"));
  if (atomic_load(&tensor->ready)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_data_set(%s): the tensor was reported ready, so its buffer "
                        "is libcomm's until lcomm_tensors_wait has returned; set another one "
                        "before lcomm_tensor_ready",
                        tensor->name);
  }
  size_t element = lcomm_dtype_size(tensor->dtype);
  if ((uintptr_t)data % element != 0) {
    return lcomm_refuse(
        comm, LCOMM_ERR_ARGUMENT,
        "lcomm_tensor_data_set(%s): its address is no multiple of the %zu bytes of a %s",
        tensor->name, element, lcomm_dtype_name(tensor->dtype));
  }
  lcomm_memory_location location =
      data ? lcomm_memory_location_of(data, tensor->count) : comm->tensors->place.given;
  if (tensor->count > 0 && !lcomm_memory_is_beside(location, comm->tensors->place.given)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_data_set(%s): the buffer is %s, the tensors of this "
                        "communicator are %s; give it memory of the same place",
                        tensor->name, lcomm_memory_location_name(location, one),
                        lcomm_memory_location_name(comm->tensors->place.given, other));
  }
  if (tensor->data != data) {
    tensor->data = data;
    atomic_store(&comm->tensors->moved, true);
  }
  return LCOMM_OK;
}

/* --------------------------------------------------------------- freezing */

/* Is there a change of the tensor on this rank that the ranks have not agreed on yet? */
static size_t is_pending(const lcomm_tensor *tensor) {
  return tensor->planned == tensor->frozen;
}

static lcomm_status check_between(lcomm_comm *comm, const lcomm_tensor *tensor, const char *call) {
  if (!atomic_load(&comm->deferred.open)) {
    return LCOMM_OK;
  }
  return lcomm_refuse(comm, LCOMM_ERR_STATE,
                      "%s(%s): a step is in flight; call it between the steps", call, tensor->name);
}

static lcomm_status want(lcomm_comm *comm, lcomm_tensor *tensor, bool frozen, const char *call) {
  LCOMM_TRY(check(comm, tensor, call));
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = check_between(comm, tensor, call);
  if (status == LCOMM_OK) {
    comm->tensors->pending -= is_pending(tensor);
    tensor->frozen = frozen;
    comm->tensors->pending += is_pending(tensor);
  }
  lcomm_exit(comm);
  return status;
}

lcomm_status lcomm_tensor_freeze(lcomm_comm *comm, lcomm_tensor *tensor) {
  return want(comm, tensor, true, "lcomm_tensor_freeze");
}

lcomm_status lcomm_tensor_unfreeze(lcomm_comm *comm, lcomm_tensor *tensor) {
  return want(comm, tensor, false, "lcomm_tensor_unfreeze");
}
