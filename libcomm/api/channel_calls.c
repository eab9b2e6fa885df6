/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Channels: messages between two ranks with error feedback. */

#include <string.h>

#include "libcomm/api/pair_calls.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/handles.h"
#include "libcomm/engine/pair_recording.h"
#include "libcomm/plan/plan.h"

/* --------------------------------------------------------------- life cycle */

static lcomm_status create(lcomm_comm *comm, int peer, uint64_t count, lcomm_channel **channel) {
  LCOMM_TRY(lcomm_control_receive(comm));
  if (peer < 0 || peer >= comm->size) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_channel_create: %d is not a rank of 0 to %d", peer, comm->size - 1);
  }
  if (count > LCOMM_VECTOR_SIZE_MAX / sizeof(float)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_channel_create: %llu float32 elements are more than fits into "
                        "memory",
                        (unsigned long long)count);
  }
  lcomm_channel *made = lcomm_pair_channel_make(comm, peer, count);
  if (!made) {
    return lcomm_refuse(comm, LCOMM_ERR_MEMORY, "lcomm_channel_create: out of memory");
  }
  *channel = made;
  return LCOMM_OK;
}

lcomm_status lcomm_channel_create(lcomm_comm *comm, int peer, uint64_t count,
                                  lcomm_channel **channel) {
  if (!comm || !channel) {
    return lcomm_refuse_null(comm, "lcomm_channel_create", "channel");
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = create(comm, peer, count, channel);
  lcomm_exit(comm);
  return status;
}

/* One that lives: its communicator is entered. */
static lcomm_status enter(const lcomm_channel *channel, const char *call) {
  const lcomm_comm *owner = channel ? lcomm_handle_owner(channel) : NULL;
  if (!owner) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "%s: %s channel: give one that lcomm_channel_create() has made, and "
                              "whose communicator lives",
                              call, channel ? "this is no" : "there is no");
  }
  return lcomm_enter(channel->comm);
}

/* `what` cannot be done while messages are in flight. */
static lcomm_status check_idle(const lcomm_channel *channel, const char *call) {
  return channel->in_flight == 0
             ? LCOMM_OK
             : lcomm_refuse(channel->comm, LCOMM_ERR_STATE,
                            "%s: %u messages of the channel are in flight; wait for them first",
                            call, channel->in_flight);
}

/* A graph may send in it again. */
static lcomm_status check_graphs(const lcomm_channel *channel, const char *call) {
  return lcomm_pair_channel_is_recorded(channel)
             ? lcomm_refuse(channel->comm, LCOMM_ERR_STATE,
                            "%s: a graph has a send of the channel; destroy the graph and its "
                            "executables first",
                            call)
             : LCOMM_OK;
}

lcomm_status lcomm_channel_destroy(lcomm_channel *channel) {
  LCOMM_TRY(enter(channel, "lcomm_channel_destroy"));
  lcomm_comm *comm = channel->comm;
  lcomm_status status = check_idle(channel, "lcomm_channel_destroy");
  status = status == LCOMM_OK ? check_graphs(channel, "lcomm_channel_destroy") : status;
  if (status == LCOMM_OK) {
    lcomm_pair_channel_free(channel);
  }
  lcomm_exit(comm);
  return status;
}

static lcomm_status get(const lcomm_channel *channel, float *values) {
  if (!values && channel->count > 0) {
    return lcomm_refuse(channel->comm, LCOMM_ERR_ARGUMENT, "lcomm_channel_get: `values` is NULL");
  }
  LCOMM_TRY(check_idle(channel, "lcomm_channel_get"));
  if (channel->count > 0) {
    memcpy(values, channel->residual, (size_t)channel->count * sizeof *values);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_channel_get(const lcomm_channel *channel, float *values) {
  LCOMM_TRY(enter(channel, "lcomm_channel_get"));
  lcomm_status status = get(channel, values);
  lcomm_exit(channel->comm);
  return status;
}

/* -------------------------------------------------------------------- sends */

static lcomm_pair_call call_of(lcomm_channel *channel, const void *data) {
  lcomm_pair_call call = lcomm_pair_call_send(data, channel->count, LCOMM_FLOAT32, channel->peer);
  call.channel = channel;
  return call;
}

lcomm_status lcomm_channel_send(lcomm_channel *channel, const void *data) {
  LCOMM_TRY(enter(channel, "lcomm_channel_send"));
  lcomm_pair_call call = call_of(channel, data);
  lcomm_status status = lcomm_pair_call_make(channel->comm, &call);
  lcomm_exit(channel->comm);
  return status;
}

lcomm_status lcomm_channel_isend(lcomm_channel *channel, const void *data, lcomm_request *request) {
  LCOMM_TRY(enter(channel, "lcomm_channel_isend"));
  lcomm_pair_call call = call_of(channel, data);
  lcomm_status status = lcomm_pair_call_start(channel->comm, &call, request);
  lcomm_exit(channel->comm);
  return status;
}

lcomm_status lcomm_channel_send_on_stream(lcomm_channel *channel, const void *data, void *stream) {
  LCOMM_TRY(enter(channel, "lcomm_channel_send_on_stream"));
  lcomm_pair_call call = call_of(channel, data);
  lcomm_status status = lcomm_pair_call_on_stream(channel->comm, &call, stream);
  lcomm_exit(channel->comm);
  return status;
}
