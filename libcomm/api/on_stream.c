/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Collectives in order with a stream of a device. */

#include "libcomm/call/call.h"
#include "libcomm/device/device.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/handles.h"
#include "libcomm/tensor/bucket.h"

/* An operation that is not played goes on by itself, and the stream waits for it. False when
 * nobody would move it, the program did not promise what streams that wait ask of it by
 * asking for a thread, or the stream cannot wait: then the program has to. So it
 * does for the first operation of a run, which opens memory of peers: that might
 * wait for the stream. */
static bool leave_to_stream(lcomm_comm *comm, const lcomm_call *call, lcomm_request *request) {
  lcomm_operation *operation = request->internal;
  if (!comm->progress_thread || comm->settings.progress != LCOMM_PROGRESS_THREAD || !operation ||
      operation->over) {
    return false;
  }
  const lcomm_backend_queue *queue = operation->run->backend->queue;
  operation->gate = queue ? queue->close_gate(operation->run, call->stream) : NULL;
  operation->detached = operation->gate != NULL;
  return operation->detached;
}

/* A graph would hold our launches and not what the host does between them. */
static lcomm_status check_capture(lcomm_comm *comm, const char *what, void *stream) {
  const lcomm_device_table *table = lcomm_device_in_use();
  bool captured = false;
  if (!table || table->stream.captured(stream, &captured) != 0 || !captured) {
    return LCOMM_OK; /* what is no stream, others find out */
  }
  return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                      "%s on a stream that is captured into a graph: the host takes part in it, so "
                      "it cannot be replayed; end the capture before, and begin another after it",
                      what);
}

static lcomm_status make(lcomm_comm *comm, lcomm_call *call, void *stream) {
  lcomm_request request = {0};
  const char *name = lcomm_collective_name(call->request.collective);
  call->on_stream = true;
  call->stream = stream;
  call->waits = comm && comm->settings.progress != LCOMM_PROGRESS_THREAD;
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given", name);
  }
  LCOMM_TRY(lcomm_check_process(comm));
  LCOMM_TRY(check_capture(comm, name, stream));
  LCOMM_TRY(lcomm_enter(comm)); /* no step before it is known who waits */
  lcomm_status status = lcomm_call_start(comm, call, &request);
  bool left = status == LCOMM_OK && (!request.internal || leave_to_stream(comm, call, &request));
  lcomm_leave(comm);
  return status == LCOMM_OK && !left ? lcomm_wait(comm, &request) : status;
}

/* Record where the stream is now, in an event of the tensor. */
static int mark(lcomm_tensor *tensor, const lcomm_device_table *table, int ordinal, void *stream) {
  int before = ordinal;
  (void)table->current(&before);
  int error = table->use(ordinal);
  if (!error && !tensor->event) {
    error = table->event.create(false, &tensor->event);
  }
  if (!error) {
    error = table->event.record(tensor->event, stream);
  }
  (void)table->use(before);
  return error;
}

lcomm_status lcomm_tensor_ready_on_stream(lcomm_comm *comm, lcomm_tensor *tensor, void *stream) {
  if (!comm || !tensor) {
    return lcomm_refuse_null(comm, "lcomm_tensor_ready_on_stream", "tensor");
  }
  LCOMM_TRY(lcomm_handle_check(comm, tensor, "lcomm_tensor_ready_on_stream", "tensor"));
  if (tensor->count == 0) {
    return lcomm_tensor_ready(comm, tensor);
  }
  if (!lcomm_memory_is_on_device(comm->tensors->location)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_ready_on_stream(%s): the tensor is in host memory, which no "
                        "stream is about; use lcomm_tensor_ready",
                        tensor->name);
  }
  LCOMM_TRY(check_capture(comm, "lcomm_tensor_ready_on_stream", stream));
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int error = mark(tensor, table, comm->tensors->location.device, stream);
  if (error) {
    return lcomm_refuse(comm, LCOMM_ERR_SYSTEM, "lcomm_tensor_ready_on_stream(%s): %s",
                        tensor->name, table->explain(error));
  }
  atomic_store(&tensor->on_stream, true);
  return lcomm_tensor_ready(comm, tensor);
}

lcomm_status lcomm_allreduce_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                       uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                       void *stream) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, send, receive, count, dtype, op);
  return make(comm, &call, stream);
}

lcomm_status lcomm_reduce_scatter_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                            uint64_t receive_count, lcomm_dtype dtype, lcomm_op op,
                                            void *stream) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_REDUCE_SCATTER, send, receive, receive_count, dtype, op);
  return make(comm, &call, stream);
}

lcomm_status lcomm_allgather_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                       uint64_t send_count, lcomm_dtype dtype, void *stream) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_ALLGATHER, send, receive, send_count, dtype, LCOMM_SUM);
  return make(comm, &call, stream);
}

lcomm_status lcomm_alltoall_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                      uint64_t count, lcomm_dtype dtype, void *stream) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_ALLTOALL, send, receive, count, dtype, LCOMM_SUM);
  call.request.in_place = send == receive;
  return make(comm, &call, stream);
}

lcomm_status lcomm_broadcast_on_stream(lcomm_comm *comm, void *buffer, uint64_t count,
                                       lcomm_dtype dtype, int root, void *stream) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, buffer, buffer, count, dtype, LCOMM_SUM);
  call.request.root = root;
  return make(comm, &call, stream);
}
