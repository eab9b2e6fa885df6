/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Clipping: lcomm_clip of codecs/clip.h in three launches, as the
 * length must be known before the first value is scaled.
 *
 * Squares are added in float64, in an order that the number of values alone
 * decides: thread by thread, then within a block, then over the blocks. It is not
 * the order of a processor, so the length may differ in its last bits, and a
 * scaled value in its last one.
 */

#include <float.h>
#include <math.h>

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_nan.cuh"
#include "kernels/cuda/cuda_span.cuh"
#include "kernels/element.h"

enum { CLIP_SUMS = 1024 }; /* as cuda.h has it */

typedef struct clip_args {
  float *values;
  uint64_t n;
  double limit;
  double *sums;
  uint32_t sum_count;
  lcomm_span span;
} clip_args;

/* The sum over the block, for its first thread. */
LCOMM_DEVICE double sum_of_block(double own, double *partial) {
  uint32_t thread = lcomm_thread();
  partial[thread] = own;
  lcomm_sync_block();
  for (uint32_t width = LCOMM_SPAN_THREADS / 2; width; width /= 2) {
    if (thread < width) {
      partial[thread] += partial[thread + width];
    }
    lcomm_sync_block();
  }
  return partial[0];
}

LCOMM_DEVICE double square(uint32_t bits) {
  double value = (double)lcomm_finite_or_zero(lcomm_f32_from_bits(bits));
  return value * value;
}

/* Values 4 * u and those after it, zeros behind the end. Units of the order of
 * additions, wherever they lie. */
LCOMM_DEVICE lcomm_vec4 values_of_unit(const float *values, uint64_t u, uint64_t n) {
  uint64_t i = 4 * u;
  if (i + 4 <= n && (uintptr_t)values % LCOMM_UNIT_SIZE == 0) {
    return lcomm_load4(values + i);
  }
  lcomm_vec4 bits = {
      i < n ? lcomm_f32_bits(values[i]) : 0, i + 1 < n ? lcomm_f32_bits(values[i + 1]) : 0,
      i + 2 < n ? lcomm_f32_bits(values[i + 2]) : 0, i + 3 < n ? lcomm_f32_bits(values[i + 3]) : 0};
  return bits;
}

LCOMM_KERNEL(sum_squares, clip_args) {
  LCOMM_SHARED double partial[LCOMM_SPAN_THREADS];
  double sum[4] = {0, 0, 0, 0};
  lcomm_vec4 v[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); 4 * first < a.n; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      v[k] = values_of_unit(a.values, first + k * LCOMM_SPAN_THREADS, a.n);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      sum[0] += square(v[k].x);
      sum[1] += square(v[k].y);
      sum[2] += square(v[k].z);
      sum[3] += square(v[k].w);
    }
  }
  double all = sum_of_block(sum[0] + sum[1] + (sum[2] + sum[3]), partial);
  if (lcomm_thread() == 0) {
    a.sums[lcomm_block()] = all;
  }
}

/* One block: sums[0] becomes the factor, 1 for nothing to do. */
LCOMM_KERNEL(choose_factor, clip_args) {
  LCOMM_SHARED double partial[LCOMM_SPAN_THREADS];
  double own = 0;
  for (uint32_t i = lcomm_thread(); i < a.sum_count; i += LCOMM_SPAN_THREADS) {
    own += a.sums[i];
  }
  double length = sqrt(sum_of_block(own, partial));
  if (lcomm_thread() == 0) {
    a.sums[0] = length <= DBL_MAX && length > a.limit ? a.limit / length : 1;
  }
}

LCOMM_DEVICE uint32_t scaled_bits(float factor, uint32_t bits) {
  return lcomm_f32_bits(lcomm_product_f32(factor, lcomm_f32_from_bits(bits)));
}

LCOMM_KERNEL(scale, clip_args) {
  float factor = (float)a.sums[0];
  if (factor == 1) {
    return;
  }
  uint8_t *units = (uint8_t *)(a.values + a.span.head);
  lcomm_vec4 v[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      v[k] = lcomm_unit_load(units, first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      lcomm_vec4 scaled = {scaled_bits(factor, v[k].x), scaled_bits(factor, v[k].y),
                           scaled_bits(factor, v[k].z), scaled_bits(factor, v[k].w)};
      lcomm_unit_store(units, first + k * LCOMM_SPAN_THREADS, a.span.units, scaled);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    uint64_t i = lcomm_loose_index(a.span, sizeof(float), j);
    a.values[i] = lcomm_product_f32(factor, a.values[i]);
  }
}

static uint32_t sums_for(uint64_t n) {
  uint64_t tile = (uint64_t)LCOMM_TILE_UNITS * 4, tiles = n / tile + (n % tile != 0);
  return tiles < CLIP_SUMS ? (uint32_t)tiles : (uint32_t)CLIP_SUMS;
}

extern "C" int lcomm_cuda_run_clip(float *values, uint64_t n, double limit, double *sums,
                                   void *stream) {
  const void *array = values;
  clip_args args = {values, n,           limit,
                    sums,   sums_for(n), lcomm_span_of(&array, 1, sizeof(float), n)};
  if (n == 0) {
    return 0;
  }
  int error = LCOMM_LAUNCH(sum_squares, args.sum_count, LCOMM_SPAN_THREADS, stream, args);
  if (error == 0) {
    error = LCOMM_LAUNCH(choose_factor, 1, LCOMM_SPAN_THREADS, stream, args);
  }
  if (error == 0) {
    error = LCOMM_LAUNCH(scale, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
  }
  return error;
}

/* ------------------------------------------------------------------ float64
 * As above, value by value: float64 gradients are rare. A length whose square is beyond the
 * range of float64 is left as it is. */

typedef struct wide_args {
  double *values;
  uint64_t n;
  double *sums;
} wide_args;

LCOMM_KERNEL(sum_squares_f64, wide_args) {
  LCOMM_SHARED double partial[LCOMM_SPAN_THREADS];
  double sum = 0;
  for (uint64_t i = lcomm_loose_first(); i < a.n; i += lcomm_loose_step()) {
    double value = a.values[i];
    sum += value - value == 0 ? value * value : 0; /* NaN for NaN and Inf */
  }
  double all = sum_of_block(sum, partial);
  if (lcomm_thread() == 0) {
    a.sums[lcomm_block()] = all;
  }
}

LCOMM_KERNEL(scale_f64, wide_args) {
  double factor = a.sums[0];
  if (factor == 1) {
    return;
  }
  for (uint64_t i = lcomm_loose_first(); i < a.n; i += lcomm_loose_step()) {
    a.values[i] = lcomm_product_f64(factor, a.values[i]);
  }
}

extern "C" int lcomm_cuda_run_clip_f64(double *values, uint64_t n, double limit, double *sums,
                                       void *stream) {
  wide_args args = {values, n, sums};
  clip_args choose = {NULL, n, limit, sums, sums_for(n), {0, 0, 0}};
  if (n == 0) {
    return 0;
  }
  int error = LCOMM_LAUNCH(sum_squares_f64, choose.sum_count, LCOMM_SPAN_THREADS, stream, args);
  if (error == 0) {
    error = LCOMM_LAUNCH(choose_factor, 1, LCOMM_SPAN_THREADS, stream, choose);
  }
  if (error == 0) {
    error = LCOMM_LAUNCH(scale_f64, choose.sum_count, LCOMM_SPAN_THREADS, stream, args);
  }
  return error;
}
