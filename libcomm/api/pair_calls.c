/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks, in order with a stream of a device. */

#include "libcomm/engine/pair.h"

#include "libcomm/call/call.h"
#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/pair_internal.h"

static const char *name_of(const lcomm_pair_call *call) {
  return call->is_send ? "send" : "receive";
}

static lcomm_status check_data(lcomm_comm *comm, const lcomm_pair_call *call) {
  const lcomm_buffer *data = &call->data;
  uint64_t element = lcomm_dtype_size(data->dtype), size = 0;
  if (element == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: %d is no data type", name_of(call),
                        (int)data->dtype);
  }
  if (call->peer < 0 || call->peer >= comm->size) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: %d is not a rank of 0 to %d", name_of(call),
                        call->peer, comm->size - 1);
  }
  if (__builtin_mul_overflow(data->count, element, &size) || size > LCOMM_VECTOR_SIZE_MAX) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu %s elements: more than fits into memory", name_of(call),
                        (unsigned long long)data->count, lcomm_dtype_name(data->dtype));
  }
  if (!data->data && data->count > 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s of %llu elements: the buffer is NULL",
                        name_of(call), (unsigned long long)data->count);
  }
  return LCOMM_OK;
}

static lcomm_status check_device(lcomm_comm *comm, lcomm_pair_call *call) {
  unsigned depth = lcomm_turn_give(comm);
  call->data.location = lcomm_memory_location_of(call->data.data, call->data.count);
  lcomm_turn_take(comm, depth);
  int device = call->data.location.device;
  int before = comm->pairs ? comm->pairs->ordinal : LCOMM_DEVICE_NONE;
  if (!lcomm_memory_is_on_device(call->data.location)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements on a stream: the buffer is in host memory, which no "
                        "stream is about; give one of a device",
                        name_of(call), (unsigned long long)call->data.count);
  }
  if (before != LCOMM_DEVICE_NONE && before != device) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s: the buffer is on device %d, those of earlier sends and receives were "
                        "on device %d; a communicator has its messages on one device",
                        name_of(call), device, before);
  }
  return LCOMM_OK;
}

static lcomm_status make_entered(lcomm_comm *comm, lcomm_pair_call *call) {
  LCOMM_TRY(lcomm_control_receive(comm));
  LCOMM_TRY(check_data(comm, call));
  LCOMM_TRY(call->data.count > 0 ? check_device(comm, call) : LCOMM_OK);
  if (!lcomm_proxy_start(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_UNSUPPORTED,
                        "%s: no thread may move messages: MPI was not initialised with "
                        "MPI_THREAD_MULTIPLE, or the system gives no thread",
                        name_of(call));
  }
  lcomm_device_turn_enter(comm);
  lcomm_status status = lcomm_pair_begin(comm, call);
  lcomm_device_turn_leave(comm);
  return status;
}

static lcomm_status make(lcomm_comm *comm, lcomm_pair_call *call) {
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given", name_of(call));
  }
  LCOMM_TRY(lcomm_check_process(comm));
  LCOMM_TRY(
      lcomm_call_refuse_capture(comm, name_of(call), call->stream, "the host takes part in it"));
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = make_entered(comm, call);
  lcomm_exit(comm);
  return status;
}

lcomm_status lcomm_send_on_stream(lcomm_comm *comm, const void *data, uint64_t count,
                                  lcomm_dtype dtype, int peer, void *stream) {
  lcomm_pair_call call = {
      .is_send = true,
      .data = {.data = (void *)(uintptr_t)data, .count = count, .dtype = dtype}, /* only read */
      .peer = peer,
      .stream = stream};
  return make(comm, &call);
}

lcomm_status lcomm_receive_on_stream(lcomm_comm *comm, void *data, uint64_t count,
                                     lcomm_dtype dtype, int peer, void *stream) {
  lcomm_pair_call call = {
      .data = {.data = data, .count = count, .dtype = dtype}, .peer = peer, .stream = stream};
  return make(comm, &call);
}
