/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks in order with a stream of a device, and groups. */

#include "libcomm/api/pair_calls.h"
#include "libcomm/call/call.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/pair_recording.h"

/* The caller is inside, maybe more than once. */
static lcomm_status find_capture(lcomm_comm *comm, const lcomm_pair_call *call, uint64_t *capture) {
  unsigned depth = lcomm_turn_give(comm);
  lcomm_status status =
      lcomm_call_find_capture(comm, lcomm_pair_call_name(call), call->stream, capture);
  lcomm_turn_take(comm, depth);
  return status;
}

/* A capture may be over when a group ends. */
static lcomm_status check_captured(lcomm_comm *comm, const lcomm_pair_call *calls, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t now = 0;
    LCOMM_TRY(find_capture(comm, &calls[i], &now));
    if (now != calls[i].capture) {
      return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                          "lcomm_group_end: the stream of a %s was captured into a graph from "
                          "another moment on, or to another one, than its group; end the group "
                          "before the capture, and begin it behind that",
                          lcomm_pair_call_name(&calls[i]));
    }
  }
  return LCOMM_OK;
}

/* Those that are captured begin before any of them waits for its data. */
static lcomm_status begin_on_stream(lcomm_comm *comm, const lcomm_pair_call *calls, size_t count) {
  lcomm_status status = LCOMM_OK;
  lcomm_device_turn_enter(comm);
  for (size_t i = 0; i < count && status == LCOMM_OK; i++) {
    status = calls[i].capture != 0 ? lcomm_pair_record(comm, &calls[i])
                                   : lcomm_pair_begin(comm, &calls[i], NULL);
  }
  lcomm_status ended = lcomm_pair_records_end(comm);
  lcomm_device_turn_leave(comm);
  return status == LCOMM_OK ? ended : status;
}

static lcomm_status begin_put_off(lcomm_comm *comm, const lcomm_pair_call *calls, size_t count) {
  LCOMM_TRY(check_captured(comm, calls, count));
  return begin_on_stream(comm, calls, count);
}

static lcomm_status check_capture(lcomm_comm *comm, const lcomm_pair_call *call) {
  return call->capture == 0 || lcomm_pair_can_record(comm, call)
             ? LCOMM_OK
             : lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                            "%s on a stream that is captured into a graph: %d were captured for "
                            "rank %d before, and a communicator can have no more; make another one",
                            lcomm_pair_call_name(call), (int)LCOMM_PAIR_CAPTURED_MAX, call->peer);
}

static lcomm_status make_streamed(lcomm_comm *comm, lcomm_pair_call *call) {
  LCOMM_TRY(lcomm_pair_call_check(comm, call));
  if (!lcomm_proxy_start(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_UNSUPPORTED,
                        "%s: no thread may move messages: MPI was not initialised with "
                        "MPI_THREAD_MULTIPLE, or the system gives no thread",
                        lcomm_pair_call_name(call));
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
    return lcomm_pair_call_enter(comm, call);
  }
  LCOMM_TRY(lcomm_check_process(comm));
  LCOMM_TRY(lcomm_call_find_capture(comm, lcomm_pair_call_name(call), stream, &call->capture));
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
  lcomm_pair_call call = lcomm_pair_call_receive(data, count, dtype, peer);
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
  return lcomm_pair_group_end(comm, begin_put_off);
}

lcomm_status lcomm_group_end(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_group_end"));
  lcomm_status status = end_entered(comm);
  lcomm_exit(comm);
  return status;
}
