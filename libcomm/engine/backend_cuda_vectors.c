/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Vectors on a device, in the stream of a run. */

#include "libcomm/engine/device_batch.h"
#include "libcomm/engine/exec_internal.h"

static lcomm_status copy(lcomm_run *run, void *to, const void *from, size_t size) {
  const lcomm_run_device *device = run->device;
  if (to == from || size == 0) {
    return LCOMM_OK;
  }
  if (lcomm_device_batch_is_open(run)) {
    return lcomm_device_batch_copy(run, to, from, size);
  }
  return lcomm_run_device_check(run, "a copy", device->table->copy(to, from, size, device->stream));
}

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
static int load_floats(const lcomm_run_device *device, const lcomm_buffer *buffer, double factor,
                       void *vector) {
  lcomm_cuda_code source = values_of(buffer->data, buffer->dtype);
  if (!is_code(&source)) {
    return device->table->kernels->unaligned16_load(source.kind, buffer->data, (float)factor,
                                                    vector, buffer->count, device->stream);
  }
  lcomm_cuda_sum sum = {.sources = &source,
                        .count = 1,
                        .op = LCOMM_CUDA_SUM,
                        .factor = (float)factor,
                        .destination = vector,
                        .n = buffer->count,
                        .parts = 1};
  return device->table->kernels->sum(&sum, device->stream);
}

static int load_doubles(const lcomm_run_device *device, const lcomm_buffer *buffer, double factor,
                        void *vector) {
  const void *source = buffer->data;
  lcomm_cuda_combine it = {.sources = &source,
                           .count = 1,
                           .type = LCOMM_CUDA_F64,
                           .op = LCOMM_CUDA_SUM,
                           .factor = factor,
                           .destination = vector,
                           .n = buffer->count};
  return device->table->kernels->combine(&it, device->stream);
}

static lcomm_status load(lcomm_run *run, const lcomm_buffer *buffer, double factor, void *vector) {
  lcomm_dtype dtype = buffer->dtype;
  bool scales = !lcomm_factor_is_one(factor);
  if (buffer->count == 0) {
    return LCOMM_OK;
  }
  if (lcomm_sum_dtype(dtype) != dtype || (dtype == LCOMM_FLOAT32 && scales)) {
    return lcomm_run_device_check(run, "reading a buffer",
                                  load_floats(run->device, buffer, factor, vector));
  }
  if (dtype == LCOMM_FLOAT64 && scales) {
    return lcomm_run_device_check(run, "reading a buffer",
                                  load_doubles(run->device, buffer, factor, vector));
  }
  return copy(run, vector, buffer->data, buffer->count * lcomm_dtype_size(dtype));
}

static int store_floats(const lcomm_run_device *device, const void *vector,
                        const lcomm_buffer *buffer) {
  lcomm_cuda_encode encode = {.source = vector,
                              .n = buffer->count,
                              .parts = 1,
                              .code = values_of(buffer->data, buffer->dtype)};
  if (!is_code(&encode.code)) {
    return device->table->kernels->unaligned16_store(encode.code.kind, vector, buffer->data,
                                                     buffer->count, device->stream);
  }
  return device->table->kernels->encode(&encode, device->stream);
}

static lcomm_status store(lcomm_run *run, const void *vector, const lcomm_buffer *buffer) {
  if (lcomm_sum_dtype(buffer->dtype) == buffer->dtype) {
    return copy(run, buffer->data, vector, buffer->count * lcomm_dtype_size(buffer->dtype));
  }
  if (buffer->count == 0 || vector == buffer->data) {
    return LCOMM_OK;
  }
  return lcomm_run_device_check(run, "writing a buffer", store_floats(run->device, vector, buffer));
}

static int divide(const lcomm_run_device *device, const lcomm_buffer *sum, int ranks) {
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  switch (sum->dtype) {
  case LCOMM_INT32:
    return kernels->divide.i32(sum->data, ranks, sum->count, device->stream);
  case LCOMM_INT64:
    return kernels->divide.i64(sum->data, ranks, sum->count, device->stream);
  case LCOMM_INT8:
    return kernels->divide.i8(sum->data, ranks, sum->count, device->stream);
  case LCOMM_UINT8:
    return kernels->divide.u8(sum->data, ranks, sum->count, device->stream);
  default:
    return 0;
  }
}

static lcomm_status average(lcomm_run *run, const lcomm_buffer *sum) {
  return lcomm_run_device_check(run, "an average", divide(run->device, sum, run->comm->size));
}

static int count_values(const lcomm_run_device *device, const lcomm_buffer *values) {
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  int error = device->table->set(device->found, 0, sizeof *device->found, device->stream);
  if (error) {
    return error;
  }
  if (values->dtype == LCOMM_FLOAT64) {
    return kernels->count_not_finite_f64(values->data, values->count, device->found,
                                         device->stream);
  }
  return lcomm_sum_dtype(values->dtype) == LCOMM_FLOAT32
             ? kernels->count_not_finite(values->data, values->count, device->found, device->stream)
             : 0;
}

static lcomm_status count_not_finite(lcomm_run *run, const lcomm_buffer *values) {
  const lcomm_run_device *device = run->device;
  LCOMM_TRY(lcomm_run_device_check(run, "a computation", count_values(device, values)));
  return copy(run, device->found_here, device->found, sizeof *device->found);
}

/* ---------------------------------------------------------- error feedback */

static lcomm_status fold(lcomm_run *run, float *values, lcomm_ef_array residual, uint64_t n) {
  const lcomm_run_device *device = run->device;
  return lcomm_run_device_check(
      run, "adding a residual",
      device->table->kernels->fold(values, residual.before, residual.now, n, device->stream));
}

static lcomm_status add(lcomm_run *run, float *sums, const float *carried, uint64_t n) {
  const lcomm_cuda_code both[] = {values_of(sums, LCOMM_FLOAT32),
                                  values_of(carried, LCOMM_FLOAT32)};
  lcomm_cuda_sum sum = {.sources = both,
                        .count = 2,
                        .op = LCOMM_CUDA_SUM,
                        .factor = 1.0f,
                        .destination = sums,
                        .n = n,
                        .parts = 1};
  return lcomm_run_device_check(run, "adding a residual",
                                run->device->table->kernels->sum(&sum, run->device->stream));
}

static lcomm_status add_f64(lcomm_run *run, double *sums, const float *carried, uint64_t n) {
  const lcomm_run_device *device = run->device;
  return lcomm_run_device_check(
      run, "adding a residual",
      device->table->kernels->add_to_f64(sums, carried, n, device->stream));
}

static lcomm_status momentum(lcomm_run *run, float factor, lcomm_ef_array momentum, float *values,
                             uint64_t n) {
  const lcomm_run_device *device = run->device;
  return lcomm_run_device_check(run, "adding momentum",
                                device->table->kernels->momentum(factor, momentum.before,
                                                                 momentum.now, values, n,
                                                                 device->stream));
}

static lcomm_status mean(lcomm_run *run, float keep, lcomm_ef_array mean, float take,
                         const float *values, uint64_t n) {
  const lcomm_run_device *device = run->device;
  return lcomm_run_device_check(
      run, "averaging momentum",
      device->table->kernels->mean(keep, mean.before, take, values, mean.now, n, device->stream));
}

static int launch_squares(const lcomm_run_device *device, const lcomm_buffer *values,
                          const double *before) {
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  return values->dtype == LCOMM_FLOAT64 ? kernels->squares_f64(values->data, values->count, before,
                                                               device->squares, device->stream)
                                        : kernels->squares(values->data, values->count, before,
                                                           device->squares, device->stream);
}

static int launch_clip(const lcomm_run_device *device, const lcomm_buffer *values,
                       const double *total, double norm) {
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  return values->dtype == LCOMM_FLOAT64
             ? kernels->clip_to_f64(values->data, values->count, total, norm, device->stream)
             : kernels->clip_to(values->data, values->count, total, norm, device->stream);
}

static lcomm_status clip(lcomm_run *run, const lcomm_buffer *values, double norm) {
  const lcomm_run_device *device = run->device;
  LCOMM_TRY(lcomm_run_device_check(run, "clipping", launch_squares(device, values, NULL)));
  return lcomm_run_device_check(run, "clipping",
                                launch_clip(device, values, device->squares, norm));
}

/* What another run has counted is in its stream. */
static lcomm_status squares(lcomm_run *run, const lcomm_buffer *values, const lcomm_run *others) {
  const lcomm_run_device *device = run->device;
  LCOMM_TRY(others ? run->backend->queue->follow_event(run, others->device->counted) : LCOMM_OK);
  const double *before = others ? others->device->squares : NULL;
  LCOMM_TRY(lcomm_run_device_check(run, "clipping", launch_squares(device, values, before)));
  return lcomm_run_device_check(run, "clipping",
                                device->table->event.record(device->counted, device->stream));
}

static lcomm_status clip_to(lcomm_run *run, const lcomm_buffer *values, const lcomm_run *all,
                            double norm) {
  LCOMM_TRY(all == run ? LCOMM_OK : run->backend->queue->follow_event(run, all->device->counted));
  return lcomm_run_device_check(run, "clipping",
                                launch_clip(run->device, values, all->device->squares, norm));
}

/* ---------------------------------------------------------------- samples */

static lcomm_cuda_sample launch_of(const lcomm_sampling *it) {
  return (lcomm_cuda_sample){.sample = it->sample,
                             .values = it->values,
                             .first = it->first,
                             .count = it->count,
                             .offset = it->offset,
                             .factor = it->factor,
                             .destination = it->destination};
}

static lcomm_status sample(lcomm_run *run, const lcomm_sampling *it) {
  const lcomm_run_device *device = run->device;
  lcomm_cuda_sample launch = launch_of(it);
  return lcomm_run_device_check(run, "a sample",
                                device->table->kernels->sample(&launch, device->stream));
}

static lcomm_status sample_add(lcomm_run *run, const lcomm_sampling *it) {
  const lcomm_run_device *device = run->device;
  lcomm_cuda_sample launch = launch_of(it);
  return lcomm_run_device_check(run, "a sample",
                                device->table->kernels->sample_add(&launch, device->stream));
}

const lcomm_backend_vectors lcomm_backend_cuda_vectors = LCOMM_BACKEND_VECTORS_TABLE;
