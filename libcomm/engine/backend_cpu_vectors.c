/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Vectors in memory of the host. */

#include <string.h>

#include "codecs/clip.h"
#include "codecs/codec_residual.h"
#include "kernels/plain.h"
#include "libcomm/engine/exec_internal.h"

enum { SCALE_BLOCK = 2048 }; /* elements of float64 that stay in the first-level cache */

static bool is_converted(lcomm_dtype dtype) {
  return lcomm_sum_dtype(dtype) != dtype;
}

static lcomm_status copy(lcomm_run *run, void *to, const void *from, size_t size) {
  (void)run;
  if (to != from && size > 0) {
    memcpy(to, from, size);
  }
  return LCOMM_OK;
}

/* Copied and scaled block by block: one pass over the memory. */
static void load_f64(const double *buffer, uint64_t count, double factor, double *vector) {
  for (uint64_t at = 0; at < count; at += SCALE_BLOCK) {
    size_t n = (size_t)(count - at < SCALE_BLOCK ? count - at : SCALE_BLOCK);
    if (vector != buffer) {
      memcpy(vector + at, buffer + at, n * sizeof *vector);
    }
    lcomm_plain_scale_f64(vector + at, factor, n);
  }
}

static lcomm_status load(lcomm_run *run, const lcomm_buffer *buffer, double factor, void *vector) {
  const lcomm_kernels *kernels = run->comm->kernels;
  uint64_t count = buffer->count;
  bool scales = !lcomm_factor_is_one(factor);
  if (count == 0) {
    return LCOMM_OK;
  }
  if (is_converted(buffer->dtype)) {
    lcomm_format format = lcomm_format_exact(buffer->dtype);
    lcomm_decode(&format, kernels, buffer->data, lcomm_range_whole(count), (float)factor, vector);
  } else if (buffer->dtype == LCOMM_FLOAT32 && scales) {
    kernels->f32_scale(buffer->data, (float)factor, vector, count);
  } else if (buffer->dtype == LCOMM_FLOAT64 && scales) {
    load_f64(buffer->data, count, factor, vector);
  } else {
    return copy(run, vector, buffer->data, count * lcomm_dtype_size(buffer->dtype));
  }
  return LCOMM_OK;
}

static lcomm_status store(lcomm_run *run, const void *vector, const lcomm_buffer *buffer) {
  if (!is_converted(buffer->dtype)) {
    return copy(run, buffer->data, vector, buffer->count * lcomm_dtype_size(buffer->dtype));
  }
  if (buffer->count > 0 && vector != buffer->data) {
    lcomm_format format = lcomm_format_exact(buffer->dtype);
    lcomm_encode(&format, run->comm->kernels, vector, lcomm_range_whole(buffer->count), 0,
                 buffer->data);
  }
  return LCOMM_OK;
}

static lcomm_status average(lcomm_run *run, const lcomm_buffer *sum) {
  int ranks = run->comm->size;
  if (sum->dtype == LCOMM_INT32) {
    lcomm_plain_divide_i32(sum->data, ranks, sum->count);
  } else if (sum->dtype == LCOMM_INT64) {
    lcomm_plain_divide_i64(sum->data, ranks, sum->count);
  } else if (sum->dtype == LCOMM_INT8) {
    lcomm_plain_divide_i8(sum->data, ranks, sum->count);
  } else if (sum->dtype == LCOMM_UINT8) {
    lcomm_plain_divide_u8(sum->data, ranks, sum->count);
  }
  return LCOMM_OK;
}

static uint64_t count_f64(const double *values, uint64_t count) {
  const uint64_t infinity = UINT64_C(0x7ff) << 52;
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &values[i], sizeof(bits));
    found += (bits & infinity) == infinity;
  }
  return found;
}

static lcomm_status count_not_finite(lcomm_run *run, const lcomm_buffer *values) {
  if (values->count == 0) {
    return LCOMM_OK;
  }
  if (lcomm_sum_dtype(values->dtype) == LCOMM_FLOAT32) {
    run->not_finite = run->comm->kernels->f32_count_not_finite(values->data, values->count);
  } else if (values->dtype == LCOMM_FLOAT64) {
    run->not_finite = count_f64(values->data, values->count);
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------- error feedback */

static lcomm_status fold(lcomm_run *run, float *values, lcomm_ef_array residual, uint64_t n) {
  lcomm_residual_fold(run->comm->kernels, values, residual.before, residual.now, n);
  return LCOMM_OK;
}

static lcomm_status add(lcomm_run *run, float *sums, const float *carried, uint64_t n) {
  run->comm->kernels->f32_add(carried, 1.0f, sums, n);
  return LCOMM_OK;
}

static lcomm_status add_f64(lcomm_run *run, double *sums, const float *carried, uint64_t n) {
  (void)run;
  for (uint64_t i = 0; i < n; i++) {
    sums[i] += (double)carried[i];
  }
  return LCOMM_OK;
}

static lcomm_status momentum(lcomm_run *run, float factor, lcomm_ef_array momentum, float *values,
                             uint64_t n) {
  run->comm->kernels->ef.f32_momentum(factor, momentum.before, momentum.now, values, n);
  return LCOMM_OK;
}

static lcomm_status mean(lcomm_run *run, float keep, lcomm_ef_array mean, float take,
                         const float *values, uint64_t n) {
  (void)run;
  lcomm_plain_mean_f32(keep, mean.before, take, values, mean.now, n);
  return LCOMM_OK;
}

static lcomm_status clip(lcomm_run *run, const lcomm_buffer *values, double norm) {
  lcomm_clip(run->comm->kernels, values->data, values->dtype, values->count, norm);
  return LCOMM_OK;
}

static lcomm_status squares(lcomm_run *run, const lcomm_buffer *values, const lcomm_run *others) {
  run->scratch.squares = others ? others->scratch.squares : (lcomm_squares){0, 0};
  lcomm_squares_add(&run->scratch.squares, values->data, values->dtype, values->count);
  return LCOMM_OK;
}

static lcomm_status clip_to(lcomm_run *run, const lcomm_buffer *values, const lcomm_run *all,
                            double norm) {
  double factor = lcomm_clip_factor(lcomm_squares_norm(&all->scratch.squares), norm);
  if (factor < 1) {
    lcomm_clip_scale(run->comm->kernels, values->data, values->dtype, values->count, factor);
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- samples */

static float sampled(const lcomm_sampling *it, uint64_t place) {
  uint64_t at = it->offset + place - it->first;
  return at < it->count ? it->factor * it->values[at] : 0; /* so is one before the first */
}

static lcomm_status sample(lcomm_run *run, const lcomm_sampling *it) {
  float *to = it->destination;
  (void)run;
  for (uint64_t i = 0; i < it->sample.blocks; i++, to += it->sample.block) {
    uint64_t begin = lcomm_sample_begin(&it->sample, i);
    for (uint32_t j = 0; j < it->sample.block; j++) {
      to[j] = sampled(it, begin + j);
    }
  }
  return LCOMM_OK;
}

static lcomm_status sample_add(lcomm_run *run, const lcomm_sampling *it) {
  float *to = it->destination;
  (void)run;
  for (uint64_t i = 0; i < it->sample.blocks; i++, to += it->sample.block) {
    uint64_t begin = lcomm_sample_begin(&it->sample, i);
    for (uint32_t j = 0; j < it->sample.block; j++) {
      to[j] += sampled(it, begin + j);
    }
  }
  return LCOMM_OK;
}

const lcomm_backend_vectors lcomm_backend_cpu_vectors = LCOMM_BACKEND_VECTORS_TABLE;
