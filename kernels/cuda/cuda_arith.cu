/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Error feedback without a codec, and counting. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_nan.cuh"
#include "kernels/cuda/cuda_span.cuh"
#include "kernels/element.h"

/* --------------------------------------------------------------------- fold */

/* `before` and `after` may be one array. */
typedef struct ef_args {
  const float *before;
  float *after, *values;
  float factor;
  lcomm_span span;
} ef_args;

LCOMM_DEVICE uint32_t sum_bits(uint32_t a, uint32_t b) {
  return lcomm_f32_bits(lcomm_sum_f32(lcomm_f32_from_bits(a), lcomm_f32_from_bits(b)));
}

LCOMM_DEVICE lcomm_vec4 sum_unit(lcomm_vec4 a, lcomm_vec4 b) {
  lcomm_vec4 sum = {sum_bits(a.x, b.x), sum_bits(a.y, b.y), sum_bits(a.z, b.z), sum_bits(a.w, b.w)};
  return sum;
}

/* values += before; after = 0 */
LCOMM_KERNEL(fold, ef_args) {
  const uint8_t *before = (const uint8_t *)(a.before + a.span.head);
  uint8_t *values = (uint8_t *)(a.values + a.span.head),
          *after = (uint8_t *)(a.after + a.span.head);
  lcomm_vec4 value[LCOMM_UNITS], rest[LCOMM_UNITS], zeros = {0, 0, 0, 0};
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      value[k] = lcomm_unit_load(values, first + k * LCOMM_SPAN_THREADS, a.span.units);
      rest[k] = lcomm_unit_load(before, first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      uint64_t u = first + k * LCOMM_SPAN_THREADS;
      lcomm_unit_store(values, u, a.span.units, sum_unit(value[k], rest[k]));
      lcomm_unit_store(after, u, a.span.units, zeros);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    uint64_t i = lcomm_loose_index(a.span, sizeof(float), j);
    a.values[i] = lcomm_sum_f32(a.values[i], a.before[i]);
    a.after[i] = 0;
  }
}

static ef_args args_of(const float *before, float *after, float *values, float factor, uint64_t n) {
  const void *arrays[] = {before, after, values};
  ef_args args = {before, after, values, factor, lcomm_span_of(arrays, 3, sizeof(float), n)};
  return args;
}

extern "C" int lcomm_cuda_run_fold(float *values, const float *before, float *residual, uint64_t n,
                                   void *stream) {
  ef_args args = args_of(before, residual, values, 0, n);
  return LCOMM_LAUNCH(fold, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

/* ---------------------------------------------------------------------- add */

typedef struct add_args {
  double *sums;
  const float *values;
  uint64_t n;
} add_args;

/* sums += values */
LCOMM_KERNEL(add_to_f64, add_args) {
  for (uint64_t i = lcomm_loose_first(); i < a.n; i += lcomm_loose_step()) {
    a.sums[i] = lcomm_sum_f64(a.sums[i], (double)a.values[i]);
  }
}

extern "C" int lcomm_cuda_run_add_to_f64(double *sums, const float *values, uint64_t n,
                                         void *stream) {
  lcomm_span span = {0, 0, n};
  add_args args = {sums, values, n};
  return LCOMM_LAUNCH(add_to_f64, lcomm_span_blocks(span), LCOMM_SPAN_THREADS, stream, args);
}

/* ----------------------------------------------------------------- momentum */

LCOMM_DEVICE float moved(float factor, float momentum, float gradient) {
  return lcomm_sum_f32(lcomm_product_f32(factor, momentum), gradient);
}

LCOMM_DEVICE uint32_t moved_bits(float factor, uint32_t momentum, uint32_t gradient) {
  return lcomm_f32_bits(
      moved(factor, lcomm_f32_from_bits(momentum), lcomm_f32_from_bits(gradient)));
}

LCOMM_DEVICE uint32_t finite_bits(uint32_t bits) {
  return lcomm_f32_bits(lcomm_finite_or_zero(lcomm_f32_from_bits(bits)));
}

/* values = factor * before + values; after = the same where it is finite */
LCOMM_KERNEL(move, ef_args) {
  const uint8_t *before = (const uint8_t *)(a.before + a.span.head);
  uint8_t *values = (uint8_t *)(a.values + a.span.head),
          *after = (uint8_t *)(a.after + a.span.head);
  lcomm_vec4 momentum[LCOMM_UNITS], gradient[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      momentum[k] = lcomm_unit_load(before, first + k * LCOMM_SPAN_THREADS, a.span.units);
      gradient[k] = lcomm_unit_load(values, first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      uint64_t u = first + k * LCOMM_SPAN_THREADS;
      lcomm_vec4 m = momentum[k], g = gradient[k];
      lcomm_vec4 sum = {moved_bits(a.factor, m.x, g.x), moved_bits(a.factor, m.y, g.y),
                        moved_bits(a.factor, m.z, g.z), moved_bits(a.factor, m.w, g.w)};
      lcomm_vec4 kept = {finite_bits(sum.x), finite_bits(sum.y), finite_bits(sum.z),
                         finite_bits(sum.w)};
      lcomm_unit_store(values, u, a.span.units, sum);
      lcomm_unit_store(after, u, a.span.units, kept);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    uint64_t i = lcomm_loose_index(a.span, sizeof(float), j);
    float sum = moved(a.factor, a.before[i], a.values[i]);
    a.values[i] = sum;
    a.after[i] = lcomm_finite_or_zero(sum);
  }
}

extern "C" int lcomm_cuda_run_momentum(float factor, const float *before, float *momentum,
                                       float *gradient, uint64_t n, void *stream) {
  ef_args args = args_of(before, momentum, gradient, factor, n);
  return LCOMM_LAUNCH(move, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

/* --------------------------------------------------------------------- mean */

/* `before` and `mean` may be one array. */
typedef struct mean_args {
  const float *before, *values;
  float *mean;
  float keep, take;
  lcomm_span span;
} mean_args;

LCOMM_DEVICE float mean_of(float keep, float before, float take, float value) {
  return lcomm_finite_or_zero(
      lcomm_sum_f32(lcomm_product_f32(keep, before), lcomm_product_f32(take, value)));
}

LCOMM_DEVICE uint32_t mean_bits(mean_args a, uint32_t before, uint32_t value) {
  return lcomm_f32_bits(
      mean_of(a.keep, lcomm_f32_from_bits(before), a.take, lcomm_f32_from_bits(value)));
}

/* mean = keep * before + take * values where that is finite, else 0 */
LCOMM_KERNEL(make_mean, mean_args) {
  const uint8_t *before = (const uint8_t *)(a.before + a.span.head);
  const uint8_t *values = (const uint8_t *)(a.values + a.span.head);
  uint8_t *mean = (uint8_t *)(a.mean + a.span.head);
  lcomm_vec4 old[LCOMM_UNITS], value[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      old[k] = lcomm_unit_load(before, first + k * LCOMM_SPAN_THREADS, a.span.units);
      value[k] = lcomm_unit_load(values, first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      uint64_t u = first + k * LCOMM_SPAN_THREADS;
      lcomm_vec4 made = {mean_bits(a, old[k].x, value[k].x), mean_bits(a, old[k].y, value[k].y),
                         mean_bits(a, old[k].z, value[k].z), mean_bits(a, old[k].w, value[k].w)};
      lcomm_unit_store(mean, u, a.span.units, made);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    uint64_t i = lcomm_loose_index(a.span, sizeof(float), j);
    a.mean[i] = mean_of(a.keep, a.before[i], a.take, a.values[i]);
  }
}

extern "C" int lcomm_cuda_run_mean(float keep, const float *before, float take, const float *values,
                                   float *mean, uint64_t n, void *stream) {
  const void *arrays[] = {before, values, mean};
  mean_args args = {before, values, mean, keep, take, lcomm_span_of(arrays, 3, sizeof(float), n)};
  return LCOMM_LAUNCH(make_mean, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

/* -------------------------------------------------------------------- count */

typedef struct count_args {
  const void *source;
  uint64_t *found;
  lcomm_span span;
} count_args;

/* Is the value with these upper bits NaN or Inf? */
LCOMM_DEVICE uint32_t odd_f32(uint32_t bits) {
  return (bits & LCOMM_F32_INF_BITS) == LCOMM_F32_INF_BITS;
}

LCOMM_DEVICE uint32_t odd_f64(uint32_t bits) {
  return (bits & 0x7ff00000u) == 0x7ff00000u;
}

/* Most often there is nothing to add. */
LCOMM_DEVICE void add_of_warp(uint32_t count, uint64_t *found) {
  for (uint32_t mask = LCOMM_WARP / 2; mask; mask /= 2) {
    count += lcomm_shuffle_xor(count, mask);
  }
  if (lcomm_lane() == 0 && count) {
    lcomm_atomic_add64(found, count);
  }
}

LCOMM_KERNEL(count_f32, count_args) {
  const float *source = (const float *)a.source;
  const uint8_t *units = (const uint8_t *)(source + a.span.head);
  uint32_t count = 0;
  lcomm_vec4 v[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      v[k] = lcomm_unit_load(units, first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      count += odd_f32(v[k].x) + odd_f32(v[k].y) + odd_f32(v[k].z) + odd_f32(v[k].w);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    count += odd_f32(lcomm_f32_bits(source[lcomm_loose_index(a.span, sizeof(float), j)]));
  }
  add_of_warp(count, a.found);
}

LCOMM_DEVICE uint32_t upper_bits(double value) {
  return (uint32_t)(lcomm_f64_bits(value) >> 32);
}

/* Little-endian: the upper word of a float64 is the second one. */
LCOMM_KERNEL(count_f64, count_args) {
  const double *source = (const double *)a.source;
  const uint8_t *units = (const uint8_t *)(source + a.span.head);
  uint32_t count = 0;
  lcomm_vec4 v[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      v[k] = lcomm_unit_load(units, first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      count += odd_f64(v[k].y) + odd_f64(v[k].w);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    count += odd_f64(upper_bits(source[lcomm_loose_index(a.span, sizeof(double), j)]));
  }
  add_of_warp(count, a.found);
}

static count_args count_of(const void *source, uint32_t size, uint64_t n, uint64_t *found) {
  count_args args = {source, found, lcomm_span_of(&source, 1, size, n)};
  return args;
}

extern "C" int lcomm_cuda_run_count_not_finite(const float *source, uint64_t n, uint64_t *found,
                                               void *stream) {
  count_args args = count_of(source, sizeof *source, n, found);
  return LCOMM_LAUNCH(count_f32, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_count_not_finite_f64(const double *source, uint64_t n,
                                                   uint64_t *found, void *stream) {
  count_args args = count_of(source, sizeof *source, n, found);
  return LCOMM_LAUNCH(count_f64, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}
