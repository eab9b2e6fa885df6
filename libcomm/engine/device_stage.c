/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Copies between callers' buffers, of any type, and vectors on a device: what typed_copy.h has for
 * the host, in the stream of a run; and what follows its last step. */

#include "libcomm/engine/run_device.h"
#include "libcomm/engine/typed_copy.h"

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
    return device->table->kernels->unaligned16_load(source.kind, buffer, (float)factor, vector,
                                                    count, device->stream);
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
    return device->table->kernels->unaligned16_store(encode.code.kind, vector, buffer, count,
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

/* ------------------------------------------------------------- the end */

lcomm_status lcomm_run_device_finish(lcomm_run *run, bool *moved) {
  lcomm_run_device *device = run->device;
  int error = 0;
  bool over = false;
  if (device->phase == LCOMM_DEVICE_RUNNING) {
    *device->found_here = 0;
    error = device->stage_out(run);
    error = error ? error : device->table->event.record(device->end, device->stream);
    device->phase = LCOMM_DEVICE_ENDING;
    run->comm->runs.device_works++;
    *moved = true;
  }
  error = error ? error : device->table->event.query(device->end, &over);
  if (error) {
    return lcomm_run_device_failed(run, "bringing out the result", error);
  }
  if (over) {
    device->is_tried = true;
    device->phase = LCOMM_DEVICE_OVER;
    run->comm->runs.device_works--;
    *moved = true;
  }
  return LCOMM_OK;
}
