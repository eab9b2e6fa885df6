/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Data of collective calls whose buffers are on a device: what collective_data.c
 * does on the host, in the stream of the run. */

#include "libcomm/api/collective.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/typed_copy.h"
#include "libcomm/tensor/bucket.h"

/* ------------------------------------------------------- types and factors */

/* `count` values of float32, or of what they come from. */
static lcomm_cuda_code values_of(const void *values, lcomm_dtype dtype) {
  lcomm_cuda_code code = {.kind = LCOMM_CUDA_F32, .code = (void *)(uintptr_t)values};
  if (dtype == LCOMM_FLOAT16) {
    code.kind = LCOMM_CUDA_F16;
  } else if (dtype == LCOMM_BFLOAT16) {
    code.kind = LCOMM_CUDA_BF16;
  }
  return code;
}

/* Do values lie like codes? A program's 16-bit arrays may begin anywhere. */
static bool is_code(const lcomm_cuda_code *values) {
  return values->kind == LCOMM_CUDA_F32 || (uintptr_t)values->code % 8 == 0;
}

/* vector = factor * buffer, for types whose sums are made in float32. */
static int load_floats(const lcomm_run_device *device, const void *buffer, lcomm_dtype dtype,
                       uint64_t count, double factor, void *vector) {
  lcomm_cuda_code source = values_of(buffer, dtype);
  if (!is_code(&source)) {
    return device->table->kernels->halves_load(source.kind, buffer, (float)factor, vector, count,
                                               device->stream);
  }
  lcomm_cuda_sum sum = {.sources = &source,
                        .count = 1,
                        .op = LCOMM_CUDA_SUM,
                        .factor = (float)factor,
                        .destination = vector,
                        .n = count,
                        .parts = 1};
  return device->table->kernels->sum(&sum, device->stream);
}

static int load_doubles(const lcomm_run_device *device, const void *buffer, uint64_t count,
                        double factor, void *vector) {
  lcomm_cuda_combine it = {.sources = &buffer,
                           .count = 1,
                           .type = LCOMM_CUDA_F64,
                           .op = LCOMM_CUDA_SUM,
                           .factor = factor,
                           .destination = vector,
                           .n = count};
  return device->table->kernels->combine(&it, device->stream);
}

int lcomm_device_load(const lcomm_run_device *device, const void *buffer, lcomm_dtype dtype,
                      uint64_t count, double factor, void *vector) {
  bool one = lcomm_factor_is_one(factor);
  if (count == 0 || (one && vector == buffer)) {
    return 0;
  }
  if (lcomm_sum_dtype(dtype) != dtype || (dtype == LCOMM_FLOAT32 && !one)) {
    return load_floats(device, buffer, dtype, count, factor, vector);
  }
  if (dtype == LCOMM_FLOAT64 && !one) {
    return load_doubles(device, buffer, count, factor, vector);
  }
  return device->table->copy(vector, buffer, count * lcomm_dtype_size(dtype), device->stream);
}

int lcomm_device_store(const lcomm_run_device *device, const void *vector, lcomm_dtype dtype,
                       uint64_t count, void *buffer) {
  if (count == 0 || vector == buffer) {
    return 0;
  }
  if (lcomm_sum_dtype(dtype) == dtype) {
    return device->table->copy(buffer, vector, count * lcomm_dtype_size(dtype), device->stream);
  }
  lcomm_cuda_encode encode = {
      .source = vector, .n = count, .parts = 1, .code = values_of(buffer, dtype)};
  if (!is_code(&encode.code)) {
    return device->table->kernels->halves_store(encode.code.kind, vector, buffer, count,
                                                device->stream);
  }
  return device->table->kernels->encode(&encode, device->stream);
}

int lcomm_device_average(const lcomm_run_device *device, void *vector, lcomm_dtype dtype,
                         uint64_t count, int ranks) {
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  switch (dtype) {
  case LCOMM_INT32:
    return kernels->divide_i32(vector, ranks, count, device->stream);
  case LCOMM_INT64:
    return kernels->divide_i64(vector, ranks, count, device->stream);
  case LCOMM_INT8:
    return kernels->divide_i8(vector, ranks, count, device->stream);
  case LCOMM_UINT8:
    return kernels->divide_u8(vector, ranks, count, device->stream);
  default:
    return 0;
  }
}

int lcomm_device_count_not_finite(const lcomm_run_device *device, const void *vector,
                                  lcomm_dtype dtype, uint64_t count) {
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  int error = device->table->set(device->found, 0, sizeof *device->found, device->stream);
  if (!error && dtype == LCOMM_FLOAT64) {
    error = kernels->count_not_finite_f64(vector, count, device->found, device->stream);
  } else if (!error && lcomm_sum_dtype(dtype) == LCOMM_FLOAT32) {
    error = kernels->count_not_finite(vector, count, device->found, device->stream);
  }
  return error ? error
               : device->table->copy(device->found_here, device->found, sizeof *device->found,
                                     device->stream);
}

/* ------------------------------------------------------------ bringing in */

static int copy_part(const lcomm_run *run, const lcomm_call *call) {
  const lcomm_plan *plan = run->plan;
  lcomm_span part = lcomm_plan_part(plan, run->comm->rank);
  uint8_t *place = (uint8_t *)call->receive + part.first * plan->element_size;
  if (part.count == 0 || place == call->send) {
    return 0;
  }
  return run->device->table->copy(place, call->send, part.count * plan->element_size,
                                  run->device->stream);
}

static int bring_sum(const lcomm_run *run, const lcomm_call *call, void *vector) {
  const lcomm_plan *plan = run->plan;
  const lcomm_run_device *device = run->device;
  int error =
      lcomm_device_load(device, call->send, plan->dtype, plan->vector_count, call->before, vector);
  if (run->comm->size > 1) {
    return error;
  }
  /* One rank alone makes no sum that `after` would go with. */
  return error ? error
               : lcomm_device_load(device, vector, lcomm_sum_dtype(plan->dtype), plan->vector_count,
                                   call->after, vector);
}

static int bring_input(const lcomm_run *run, const lcomm_call *call, lcomm_operation_data *data) {
  const lcomm_plan *plan = run->plan;
  data->input = call->send;
  if (!plan->in_place || plan->input_count == 0) {
    return 0;
  }
  data->input = run->own_input;
  return run->device->table->copy(run->own_input, call->send,
                                  plan->input_count * plan->element_size, run->device->stream);
}

/* The caller's stream first: the buffers are ready when it has come here. */
static int follow_stream(const lcomm_run_device *device, void *stream) {
  int error = device->table->event_record(device->begin, stream);
  return error ? error : device->table->stream_wait(device->stream, device->begin);
}

lcomm_status lcomm_call_stage_in_device(lcomm_run *run, const lcomm_call *call,
                                        lcomm_operation_data *data) {
  const lcomm_plan *plan = run->plan;
  *data = (lcomm_operation_data){.vector = run->own_vector ? run->own_vector : call->receive,
                                 .op = call->request.op,
                                 .before = call->before,
                                 .after = call->after};
  run->device->receive = call->receive;
  run->device->on_stream = call->on_stream;
  run->device->bucket = NULL;
  int before = lcomm_run_device_enter(run);
  int error = call->on_stream ? follow_stream(run->device, call->stream) : 0;
  switch (error ? LCOMM_COLLECTIVE_BARRIER : plan->collective) {
  case LCOMM_COLLECTIVE_ALLREDUCE:
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
  case LCOMM_COLLECTIVE_REDUCE_SCATTERV:
    error = bring_sum(run, call, data->vector);
    break;
  case LCOMM_COLLECTIVE_ALLGATHER:
  case LCOMM_COLLECTIVE_ALLGATHERV:
    error = copy_part(run, call);
    break;
  case LCOMM_COLLECTIVE_ALLTOALL:
    error = bring_input(run, call, data);
    break;
  default: /* a broadcast has one buffer, a barrier none */
    break;
  }
  lcomm_run_device_leave(run, before);
  return error ? lcomm_run_device_failed(run, "bringing in the data", error) : LCOMM_OK;
}

/* ----------------------------------------------------------- bringing out */

static int stage_out(const lcomm_run *run, lcomm_op op, const void *result, uint64_t count,
                     void *receive) {
  const lcomm_plan *plan = run->plan;
  const lcomm_run_device *device = run->device;
  int error = 0;
  if (lcomm_plan_is_lossy(plan)) {
    error = lcomm_device_count_not_finite(device, result, plan->dtype, count);
  }
  error = error ? error : lcomm_device_store(device, result, plan->dtype, count, receive);
  if (op != LCOMM_AVG || error) {
    return error;
  }
  return lcomm_device_average(device, receive, plan->dtype, count, run->comm->size);
}

/* What is enqueued behind the last step. */
static int begin_end(const lcomm_run *run) {
  const lcomm_plan *plan = run->plan;
  lcomm_span part = lcomm_plan_part(plan, run->comm->rank);
  *run->device->found_here = 0;
  if (run->device->bucket) {
    return lcomm_bucket_stage_out_device(run);
  }
  if (plan->collective == LCOMM_COLLECTIVE_ALLREDUCE) {
    return stage_out(run, run->terms.op, run->vector, plan->count, run->device->receive);
  }
  if (lcomm_collective_scatters(plan->collective) && part.count > 0) {
    return stage_out(run, run->terms.op, run->own_vector + part.first * plan->element_size,
                     part.count, run->device->receive);
  }
  return 0;
}

lcomm_status lcomm_run_device_finish(lcomm_run *run, bool *moved) {
  lcomm_run_device *device = run->device;
  int error = 0;
  bool over = false;
  if (device->phase == LCOMM_DEVICE_RUNNING) {
    error = begin_end(run);
    error = error ? error : device->table->event_record(device->end, device->stream);
    device->phase = LCOMM_DEVICE_ENDING;
    run->comm->device_works++;
    *moved = true;
  }
  error = error ? error : device->table->event_query(device->end, &over);
  if (error) {
    return lcomm_run_device_failed(run, "bringing out the result", error);
  }
  if (over) {
    device->is_tried = true;
    device->phase = LCOMM_DEVICE_OVER;
    run->comm->device_works--;
    *moved = true;
  }
  return LCOMM_OK;
}

void lcomm_call_end_device(lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  if (operation->status == LCOMM_OK && lcomm_plan_is_lossy(run->plan)) {
    operation->not_finite = *run->device->found_here;
    run->comm->stats.not_finite += operation->not_finite;
  }
}
