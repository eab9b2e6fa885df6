/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks: what is asked of them, and those on the host. */

#include "libcomm/api/pair_calls.h"

#include "libcomm/call/call.h"
#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/pair_recording.h"

const char *lcomm_pair_call_name(const lcomm_pair_call *call) {
  return call->is_send ? "send" : "receive";
}

/* ------------------------------------------------------------------ checks */

static lcomm_status check_data(lcomm_comm *comm, const lcomm_pair_call *call) {
  const lcomm_buffer *data = &call->data;
  uint64_t element = lcomm_dtype_size(data->dtype), size = 0;
  if (element == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: %d is no data type",
                        lcomm_pair_call_name(call), (int)data->dtype);
  }
  if (call->peer < 0 || call->peer >= comm->size) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: %d is not a rank of 0 to %d",
                        lcomm_pair_call_name(call), call->peer, comm->size - 1);
  }
  if (__builtin_mul_overflow(data->count, element, &size) || size > LCOMM_VECTOR_SIZE_MAX) {
    return lcomm_refuse(
        comm, LCOMM_ERR_ARGUMENT, "%s of %llu %s elements: more than fits into memory",
        lcomm_pair_call_name(call), (unsigned long long)data->count, lcomm_dtype_name(data->dtype));
  }
  if (!data->data && data->count > 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s of %llu elements: the buffer is NULL",
                        lcomm_pair_call_name(call), (unsigned long long)data->count);
  }
  return LCOMM_OK;
}

static void locate(lcomm_comm *comm, lcomm_pair_call *call) {
  unsigned depth = lcomm_device_in_use() ? lcomm_turn_give(comm) : 0;
  call->data.location = lcomm_memory_location_of(call->data.data, call->data.count);
  lcomm_turn_take(comm, depth);
}

static lcomm_status check_device(lcomm_comm *comm, lcomm_pair_call *call) {
  locate(comm, call);
  int device = call->data.location.device;
  int before = comm->pairs ? comm->pairs->ordinal : LCOMM_DEVICE_NONE;
  if (!lcomm_memory_is_on_device(call->data.location)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements on a stream: the buffer is in host memory, which no "
                        "stream is about; give one of a device, or leave the stream out",
                        lcomm_pair_call_name(call), (unsigned long long)call->data.count);
  }
  if (before != LCOMM_DEVICE_NONE && before != device) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s: the buffer is on device %d, those of earlier sends and receives were "
                        "on device %d; a communicator has its messages on one device",
                        lcomm_pair_call_name(call), device, before);
  }
  return LCOMM_OK;
}

static lcomm_status check_host(lcomm_comm *comm, lcomm_pair_call *call) {
  uint64_t element = lcomm_dtype_size(call->data.dtype);
  locate(comm, call);
  if (lcomm_memory_is_on_device(call->data.location)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the buffer is on device %d; give it together with a "
                        "stream, to lcomm_%s_on_stream",
                        lcomm_pair_call_name(call), (unsigned long long)call->data.count,
                        call->data.location.device, lcomm_pair_call_name(call));
  }
  if (((uintptr_t)call->data.data & (element - 1)) != 0) { /* sizes of types are powers of 2 */
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the address of the buffer is no multiple of the %llu "
                        "bytes of a %s",
                        lcomm_pair_call_name(call), (unsigned long long)call->data.count,
                        (unsigned long long)element, lcomm_dtype_name(call->data.dtype));
  }
  return LCOMM_OK;
}

lcomm_status lcomm_pair_call_check(lcomm_comm *comm, lcomm_pair_call *call) {
  LCOMM_TRY(lcomm_control_receive(comm));
  LCOMM_TRY(check_data(comm, call));
  if (call->data.count == 0) {
    return LCOMM_OK;
  }
  return call->is_streamed ? check_device(comm, call) : check_host(comm, call);
}

lcomm_status lcomm_pair_call_enter(lcomm_comm *comm, const lcomm_pair_call *call) {
  return comm ? lcomm_enter(comm)
              : lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given",
                                   lcomm_pair_call_name(call));
}

/* ------------------------------------------------------------ on the host */

/* In a group nobody waits for it before the end of that. */
static lcomm_status make_entered(lcomm_comm *comm, lcomm_pair_call *call) {
  bool moved = false;
  lcomm_pair_message *message = NULL;
  LCOMM_TRY(lcomm_pair_call_check(comm, call));
  call->is_grouped = lcomm_pair_group_is_open(comm);
  call->is_kept = !call->is_grouped;
  LCOMM_TRY(lcomm_pair_begin(comm, call, &message));
  if (call->is_grouped) {
    return lcomm_operations_move(comm, &moved);
  }
  lcomm_pair_await(comm, message);
  (void)lcomm_operations_wait(comm, lcomm_pair_over(message)); /* its result is the message's */
  return lcomm_pair_collect(comm, message);
}

lcomm_status lcomm_pair_call_make(lcomm_comm *comm, lcomm_pair_call *call) {
  LCOMM_TRY(lcomm_pair_call_enter(comm, call));
  lcomm_status status = make_entered(comm, call);
  lcomm_exit(comm);
  return status;
}

static lcomm_status start_entered(lcomm_comm *comm, lcomm_pair_call *call, lcomm_request *request) {
  bool moved = false;
  lcomm_pair_message *message = NULL;
  LCOMM_TRY(lcomm_pair_call_check(comm, call));
  if (!request) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: no request was given",
                        lcomm_pair_call_name(call));
  }
  call->is_kept = true;
  LCOMM_TRY(lcomm_pair_begin(comm, call, &message));
  *request = (lcomm_request){.internal = message, .state = LCOMM_REQUEST_PAIR};
  (void)lcomm_operations_move(comm, &moved); /* a failure is the request's to report */
  return LCOMM_OK;
}

lcomm_status lcomm_pair_call_start(lcomm_comm *comm, lcomm_pair_call *call,
                                   lcomm_request *request) {
  LCOMM_TRY(lcomm_pair_call_enter(comm, call));
  lcomm_expect_overlap(comm);
  lcomm_status status = start_entered(comm, call, request);
  lcomm_exit(comm);
  return status;
}

lcomm_pair_call lcomm_pair_call_send(const void *data, uint64_t count, lcomm_dtype dtype,
                                     int peer) {
  return (lcomm_pair_call){.is_send = true,
                           .data = {.data = (void *)(uintptr_t)data, /* only read */
                                    .count = count,
                                    .dtype = dtype},
                           .peer = peer};
}

lcomm_pair_call lcomm_pair_call_receive(void *data, uint64_t count, lcomm_dtype dtype, int peer) {
  return (lcomm_pair_call){.data = {.data = data, .count = count, .dtype = dtype}, .peer = peer};
}

lcomm_status lcomm_send(lcomm_comm *comm, const void *data, uint64_t count, lcomm_dtype dtype,
                        int peer) {
  lcomm_pair_call call = lcomm_pair_call_send(data, count, dtype, peer);
  return lcomm_pair_call_make(comm, &call);
}

lcomm_status lcomm_recv(lcomm_comm *comm, void *data, uint64_t count, lcomm_dtype dtype, int peer) {
  lcomm_pair_call call = lcomm_pair_call_receive(data, count, dtype, peer);
  return lcomm_pair_call_make(comm, &call);
}

lcomm_status lcomm_isend(lcomm_comm *comm, const void *data, uint64_t count, lcomm_dtype dtype,
                         int peer, lcomm_request *request) {
  lcomm_pair_call call = lcomm_pair_call_send(data, count, dtype, peer);
  return lcomm_pair_call_start(comm, &call, request);
}

lcomm_status lcomm_irecv(lcomm_comm *comm, void *data, uint64_t count, lcomm_dtype dtype, int peer,
                         lcomm_request *request) {
  lcomm_pair_call call = lcomm_pair_call_receive(data, count, dtype, peer);
  return lcomm_pair_call_start(comm, &call, request);
}
