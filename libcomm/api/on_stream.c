/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Collectives in order with a stream of a device. */

#include "libcomm/api/on_stream.h"

#include "libcomm/call/call_record.h"
#include "libcomm/device/device.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/handles.h"
#include "libcomm/tensor/bucket.h"

/* Of buckets and residuals: by warm-up, momentum, samples. */
static const char changes_with_the_steps[] = "what is summed, and how, changes with the steps";

/* What is sent with a residual depends on the calls before. */
static lcomm_status capture_call(lcomm_comm *comm, lcomm_call *call, uint64_t capture) {
  return call->keeper
             ? lcomm_call_refuse_capture(comm, lcomm_collective_name(call->request.collective),
                                         call->stream, changes_with_the_steps)
             : lcomm_call_record(comm, call, capture);
}

/* Where no thread can move its messages, and where no operation makes the sum, the program has to
 * wait for the result. */
static bool needs_wait(const lcomm_request *left) {
  const lcomm_operation *operation = left->internal;
  return operation && (left->state == LCOMM_REQUEST_SUM || !operation->streamed);
}

lcomm_status lcomm_call_on_stream(lcomm_comm *comm, lcomm_call *call, void *stream,
                                  lcomm_request *left) {
  uint64_t capture = 0;
  const char *name = lcomm_collective_name(call->request.collective);
  call->on_stream = true;
  call->stream = stream;
  call->waits = comm && comm->settings.progress != LCOMM_PROGRESS_THREAD;
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given", name);
  }
  LCOMM_TRY(lcomm_check_process(comm));
  LCOMM_TRY(lcomm_call_find_capture(comm, name, stream, &capture));
  if (capture != 0) {
    return capture_call(comm, call, capture);
  }
  lcomm_status status = lcomm_call_start(comm, call, left);
  return status == LCOMM_OK && needs_wait(left) ? lcomm_wait(comm, left) : status;
}

/* Without a keeper nobody has a request of what is left to the stream. */
static lcomm_status make(lcomm_comm *comm, lcomm_call *call, void *stream) {
  lcomm_request request = {0};
  return lcomm_call_on_stream(comm, call, stream, &request);
}

/* Record where the stream is now, in an event of the tensor. */
static int mark(lcomm_tensor *tensor, const lcomm_device_table *table, int ordinal, void *stream) {
  int before = ordinal;
  int error = lcomm_device_enter(table, ordinal, &before);
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
  if (!lcomm_memory_is_on_device(comm->tensors->place.given)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_ready_on_stream(%s): the tensor is in host memory, which no "
                        "stream is about; use lcomm_tensor_ready",
                        tensor->name);
  }
  LCOMM_TRY(lcomm_call_refuse_capture(comm, "lcomm_tensor_ready_on_stream", stream,
                                      changes_with_the_steps));
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int error = mark(tensor, table, comm->tensors->place.given.device, stream);
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

lcomm_status lcomm_reduce_scatterv_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                             const uint64_t *counts, lcomm_dtype dtype, lcomm_op op,
                                             void *stream) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_REDUCE_SCATTERV, send, receive, 0, dtype, op);
  call.request.part_counts = counts;
  return make(comm, &call, stream);
}

lcomm_status lcomm_allgather_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                       uint64_t send_count, lcomm_dtype dtype, void *stream) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_ALLGATHER, send, receive, send_count, dtype, LCOMM_SUM);
  return make(comm, &call, stream);
}

lcomm_status lcomm_allgatherv_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                        const uint64_t *counts, lcomm_dtype dtype, void *stream) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLGATHERV, send, receive, 0, dtype, LCOMM_SUM);
  call.request.part_counts = counts;
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

static lcomm_status make_scaled(lcomm_comm *comm, lcomm_call *call, double before, double after,
                                void *stream) {
  call->scaled = true;
  call->before = before;
  call->after = after;
  return make(comm, call, stream);
}

lcomm_status lcomm_allreduce_scaled_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                              uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                              double before, double after, void *stream) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, send, receive, count, dtype, op);
  return make_scaled(comm, &call, before, after, stream);
}

lcomm_status lcomm_reduce_scatterv_scaled_on_stream(lcomm_comm *comm, const void *send,
                                                    void *receive, const uint64_t *counts,
                                                    lcomm_dtype dtype, lcomm_op op, double before,
                                                    double after, void *stream) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_REDUCE_SCATTERV, send, receive, 0, dtype, op);
  call.request.part_counts = counts;
  return make_scaled(comm, &call, before, after, stream);
}

static lcomm_status make_weighted(lcomm_comm *comm, lcomm_call *call, double factor, void *stream) {
  call->weighted = true;
  return make_scaled(comm, call, factor, 1, stream);
}

lcomm_status lcomm_allreduce_weighted_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                                uint64_t count, lcomm_dtype dtype, double factor,
                                                void *stream) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, send, receive, count, dtype, LCOMM_SUM);
  return make_weighted(comm, &call, factor, stream);
}

lcomm_status lcomm_reduce_scatterv_weighted_on_stream(lcomm_comm *comm, const void *send,
                                                      void *receive, const uint64_t *counts,
                                                      lcomm_dtype dtype, double factor,
                                                      void *stream) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_REDUCE_SCATTERV, send, receive, 0, dtype, LCOMM_SUM);
  call.request.part_counts = counts;
  return make_weighted(comm, &call, factor, stream);
}
