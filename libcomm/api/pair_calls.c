/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks, on the host and in order with a stream of a device. */

#include "libcomm/api/pair_calls.h"

#include "libcomm/call/call.h"
#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/pair_recording.h"

static const char *name_of(const lcomm_pair_call *call) {
  return call->is_send ? "send" : "receive";
}

/* ------------------------------------------------------------------ checks */

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

static lcomm_status check_host(lcomm_comm *comm, lcomm_pair_call *call) {
  uint64_t element = lcomm_dtype_size(call->data.dtype);
  locate(comm, call);
  if (lcomm_memory_is_on_device(call->data.location)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the buffer is on device %d; give it together with a "
                        "stream, to lcomm_%s_on_stream",
                        name_of(call), (unsigned long long)call->data.count,
                        call->data.location.device, name_of(call));
  }
  if (((uintptr_t)call->data.data & (element - 1)) != 0) { /* sizes of types are powers of 2 */
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the address of the buffer is no multiple of the %llu "
                        "bytes of a %s",
                        name_of(call), (unsigned long long)call->data.count,
                        (unsigned long long)element, lcomm_dtype_name(call->data.dtype));
  }
  return LCOMM_OK;
}

static lcomm_status check(lcomm_comm *comm, lcomm_pair_call *call) {
  LCOMM_TRY(lcomm_control_receive(comm));
  LCOMM_TRY(check_data(comm, call));
  if (call->data.count == 0) {
    return LCOMM_OK;
  }
  return call->is_streamed ? check_device(comm, call) : check_host(comm, call);
}

static lcomm_status enter(lcomm_comm *comm, const char *name) {
  return comm ? lcomm_enter(comm)
              : lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given", name);
}

/* ------------------------------------------------------------ on the host */

/* In a group nobody waits for it before the end of that. */
static lcomm_status make_entered(lcomm_comm *comm, lcomm_pair_call *call) {
  bool moved = false;
  lcomm_pair_message *message = NULL;
  LCOMM_TRY(check(comm, call));
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
  LCOMM_TRY(enter(comm, name_of(call)));
  lcomm_status status = make_entered(comm, call);
  lcomm_exit(comm);
  return status;
}

static lcomm_status start_entered(lcomm_comm *comm, lcomm_pair_call *call, lcomm_request *request) {
  bool moved = false;
  lcomm_pair_message *message = NULL;
  LCOMM_TRY(check(comm, call));
  if (!request) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: no request was given", name_of(call));
  }
  call->is_kept = true;
  LCOMM_TRY(lcomm_pair_begin(comm, call, &message));
  *request = (lcomm_request){.internal = message, .state = LCOMM_REQUEST_PAIR};
  (void)lcomm_operations_move(comm, &moved); /* a failure is the request's to report */
  return LCOMM_OK;
}

lcomm_status lcomm_pair_call_start(lcomm_comm *comm, lcomm_pair_call *call,
                                   lcomm_request *request) {
  LCOMM_TRY(enter(comm, name_of(call)));
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

static lcomm_pair_call receive_of(void *data, uint64_t count, lcomm_dtype dtype, int peer) {
  return (lcomm_pair_call){.data = {.data = data, .count = count, .dtype = dtype}, .peer = peer};
}

lcomm_status lcomm_send(lcomm_comm *comm, const void *data, uint64_t count, lcomm_dtype dtype,
                        int peer) {
  lcomm_pair_call call = lcomm_pair_call_send(data, count, dtype, peer);
  return lcomm_pair_call_make(comm, &call);
}

lcomm_status lcomm_recv(lcomm_comm *comm, void *data, uint64_t count, lcomm_dtype dtype, int peer) {
  lcomm_pair_call call = receive_of(data, count, dtype, peer);
  return lcomm_pair_call_make(comm, &call);
}

lcomm_status lcomm_isend(lcomm_comm *comm, const void *data, uint64_t count, lcomm_dtype dtype,
                         int peer, lcomm_request *request) {
  lcomm_pair_call call = lcomm_pair_call_send(data, count, dtype, peer);
  return lcomm_pair_call_start(comm, &call, request);
}

lcomm_status lcomm_irecv(lcomm_comm *comm, void *data, uint64_t count, lcomm_dtype dtype, int peer,
                         lcomm_request *request) {
  lcomm_pair_call call = receive_of(data, count, dtype, peer);
  return lcomm_pair_call_start(comm, &call, request);
}

/* -------------------------------------------------------------- on a stream */

/* A capture may be over when a group ends. */
static lcomm_status check_captured(lcomm_comm *comm, const lcomm_pair_call *calls, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t now = 0;
    LCOMM_TRY(lcomm_call_find_capture(comm, name_of(&calls[i]), calls[i].stream, &now));
    if (now != calls[i].capture) {
      return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                          "lcomm_group_end: the stream of a %s was captured into a graph from "
                          "another moment on, or to another one, than its group; end the group "
                          "before the capture, and begin it behind that",
                          name_of(&calls[i]));
    }
  }
  return LCOMM_OK;
}

/* Those that are captured begin before any of them waits for its data. */
static lcomm_status begin_on_stream(lcomm_comm *comm, const lcomm_pair_call *calls, size_t count) {
  lcomm_status status = check_captured(comm, calls, count);
  lcomm_device_turn_enter(comm);
  for (size_t i = 0; i < count && status == LCOMM_OK; i++) {
    status = calls[i].capture != 0 ? lcomm_pair_record(comm, &calls[i])
                                   : lcomm_pair_begin(comm, &calls[i], NULL);
  }
  lcomm_status ended = lcomm_pair_records_end(comm);
  lcomm_device_turn_leave(comm);
  return status == LCOMM_OK ? ended : status;
}

static lcomm_status check_capture(lcomm_comm *comm, const lcomm_pair_call *call) {
  return call->capture == 0 || lcomm_pair_can_record(comm, call)
             ? LCOMM_OK
             : lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                            "%s on a stream that is captured into a graph: %d were captured for "
                            "rank %d before, and a communicator can have no more; make another one",
                            name_of(call), (int)LCOMM_PAIR_CAPTURED_MAX, call->peer);
}

static lcomm_status make_streamed(lcomm_comm *comm, lcomm_pair_call *call) {
  LCOMM_TRY(check(comm, call));
  if (!lcomm_proxy_start(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_UNSUPPORTED,
                        "%s: no thread may move messages: MPI was not initialised with "
                        "MPI_THREAD_MULTIPLE, or the system gives no thread",
                        name_of(call));
  }
  LCOMM_TRY(check_capture(comm, call));
  if (call->capture != 0 && call->data.count == 0) {
    return LCOMM_OK; /* of nothing */
  }
  if (call->is_send || !lcomm_pair_group_is_open(comm)) {
    return begin_on_stream(comm, call, 1);
  }
  return lcomm_pair_group_put_off(comm, call) == LCOMM_OK
             ? LCOMM_OK
             : lcomm_refuse(comm, LCOMM_ERR_MEMORY, "receive: out of memory for a group");
}

lcomm_status lcomm_pair_call_on_stream(lcomm_comm *comm, lcomm_pair_call *call, void *stream) {
  call->is_streamed = true;
  call->stream = stream;
  if (!comm) {
    return enter(comm, name_of(call));
  }
  LCOMM_TRY(lcomm_check_process(comm));
  LCOMM_TRY(lcomm_call_find_capture(comm, name_of(call), stream, &call->capture));
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = make_streamed(comm, call);
  lcomm_exit(comm);
  return status;
}

lcomm_status lcomm_send_on_stream(lcomm_comm *comm, const void *data, uint64_t count,
                                  lcomm_dtype dtype, int peer, void *stream) {
  lcomm_pair_call call = lcomm_pair_call_send(data, count, dtype, peer);
  return lcomm_pair_call_on_stream(comm, &call, stream);
}

lcomm_status lcomm_receive_on_stream(lcomm_comm *comm, void *data, uint64_t count,
                                     lcomm_dtype dtype, int peer, void *stream) {
  lcomm_pair_call call = receive_of(data, count, dtype, peer);
  return lcomm_pair_call_on_stream(comm, &call, stream);
}

/* ------------------------------------------------------------------- groups */

lcomm_status lcomm_group_begin(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_group_begin"));
  lcomm_status status = lcomm_control_receive(comm);
  if (status == LCOMM_OK && lcomm_pair_group_begin(comm) != LCOMM_OK) {
    status = lcomm_refuse(comm, LCOMM_ERR_MEMORY, "lcomm_group_begin: out of memory");
  }
  lcomm_exit(comm);
  return status;
}

static lcomm_status end_entered(lcomm_comm *comm) {
  if (!lcomm_pair_group_is_open(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_group_end: no group was begun; call lcomm_group_begin before");
  }
  return lcomm_pair_group_end(comm, begin_on_stream);
}

lcomm_status lcomm_group_end(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_group_end"));
  lcomm_status status = end_entered(comm);
  lcomm_exit(comm);
  return status;
}
