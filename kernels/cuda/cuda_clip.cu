/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Clipping: lcomm_clip of codecs/clip.h in three launches, as the norm must be known before the
 * first value is scaled. Squares are added in the order of kernels/squares.h, so the norm and what
 * is scaled by it have the bits of a processor. */

#include <float.h>
#include <math.h>

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_nan.cuh"
#include "kernels/cuda/cuda_span.cuh"
#include "kernels/element.h"
#include "kernels/squares.h"

enum {
  PIECE_UNITS = LCOMM_SQUARES_PIECE / 4,
  PLAIN = 0, /* of a pair: squares, */
  SCALED = 1 /* and those of values times LCOMM_SQUARES_UNIT */
};

static_assert((int)LCOMM_SPAN_THREADS == (int)LCOMM_SQUARES_THREADS, "a thread has four sums");

typedef struct squares_args {
  const void *values;
  uint64_t n;
  double *sums;         /* of blocks: those of SCALED behind LCOMM_SQUARES_SUMS of PLAIN */
  uint32_t sum_count;   /* blocks */
  uint32_t wide;        /* float64: SCALED, too */
  const double *before; /* a pair, or NULL */
  double *total;        /* a pair: that and the squares of values */
} squares_args;

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
  double sum = partial[0];
  lcomm_sync_block();
  return sum;
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

/* Of the thread in a piece. */
LCOMM_DEVICE double squares_of_thread(const squares_args *a, uint64_t piece) {
  double sum[4] = {0, 0, 0, 0};
  lcomm_vec4 v[LCOMM_UNITS];
  uint64_t begin = piece * PIECE_UNITS + lcomm_thread();
  for (uint64_t first = 0; first < PIECE_UNITS; first += LCOMM_TILE_UNITS) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      v[k] = values_of_unit((const float *)a->values, begin + first + k * LCOMM_SPAN_THREADS, a->n);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      sum[0] += square(v[k].x);
      sum[1] += square(v[k].y);
      sum[2] += square(v[k].z);
      sum[3] += square(v[k].w);
    }
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

LCOMM_KERNEL(sum_squares, squares_args) {
  LCOMM_SHARED double partial[LCOMM_SPAN_THREADS];
  double all = 0;
  for (uint64_t piece = lcomm_block(); piece * LCOMM_SQUARES_PIECE < a.n; piece += lcomm_blocks()) {
    all += sum_of_block(squares_of_thread(&a, piece), partial);
  }
  if (lcomm_thread() == 0) {
    a.sums[lcomm_block()] = all;
  }
}

/* The same of float64, value by value: such gradients are rare. */
LCOMM_DEVICE double wide_squares_of_thread(const squares_args *a, uint64_t piece, double unit) {
  const double *values = (const double *)a->values;
  double sum[4] = {0, 0, 0, 0};
  uint64_t begin = piece * LCOMM_SQUARES_PIECE + 4 * (uint64_t)lcomm_thread();
  for (uint64_t row = 0; row < LCOMM_SQUARES_PIECE; row += LCOMM_SQUARES_LANES) {
    for (uint32_t j = 0; j < 4; j++) {
      uint64_t i = begin + row + j;
      double value = i < a->n ? values[i] : 0;
      value = value - value == 0 ? unit * value : 0; /* NaN for NaN and Inf */
      sum[j] += value * value;
    }
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

LCOMM_KERNEL(sum_squares_f64, squares_args) {
  LCOMM_SHARED double partial[LCOMM_SPAN_THREADS];
  double all[2] = {0, 0};
  for (uint64_t piece = lcomm_block(); piece * LCOMM_SQUARES_PIECE < a.n; piece += lcomm_blocks()) {
    all[PLAIN] += sum_of_block(wide_squares_of_thread(&a, piece, 1), partial);
    all[SCALED] += sum_of_block(wide_squares_of_thread(&a, piece, LCOMM_SQUARES_UNIT), partial);
  }
  if (lcomm_thread() == 0) {
    a.sums[lcomm_block()] = all[PLAIN];
    a.sums[LCOMM_SQUARES_SUMS + lcomm_block()] = all[SCALED];
  }
}

LCOMM_DEVICE double sum_of_blocks(const double *sums, uint32_t count, double *partial) {
  double own = 0;
  for (uint32_t i = lcomm_thread(); i < count; i += LCOMM_SPAN_THREADS) {
    own += sums[i];
  }
  return sum_of_block(own, partial);
}

/* One block. */
LCOMM_KERNEL(add_squares, squares_args) {
  LCOMM_SHARED double partial[LCOMM_SPAN_THREADS];
  double plain = sum_of_blocks(a.sums, a.sum_count, partial);
  double scaled = sum_of_blocks(a.sums + LCOMM_SQUARES_SUMS, a.wide ? a.sum_count : 0, partial);
  if (lcomm_thread() == 0) {
    a.total[PLAIN] = (a.before ? a.before[PLAIN] : 0) + plain;
    a.total[SCALED] = (a.before ? a.before[SCALED] : 0) + scaled;
  }
}

static squares_args args_of(const void *values, uint64_t n, const double *before, double *total) {
  uint64_t pieces = n / LCOMM_SQUARES_PIECE + (n % LCOMM_SQUARES_PIECE != 0);
  squares_args args = {values, n, total + LCOMM_CUDA_PAIR, 0, 0, before, total};
  args.sum_count = pieces < LCOMM_SQUARES_SUMS ? (uint32_t)pieces : (uint32_t)LCOMM_SQUARES_SUMS;
  return args;
}

extern "C" int lcomm_cuda_run_squares(const float *values, uint64_t n, const double *before,
                                      double *total, void *stream) {
  squares_args args = args_of(values, n, before, total);
  int error = LCOMM_LAUNCH(sum_squares, args.sum_count, LCOMM_SPAN_THREADS, stream, args);
  return error ? error : LCOMM_LAUNCH(add_squares, 1, LCOMM_SPAN_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_squares_f64(const double *values, uint64_t n, const double *before,
                                          double *total, void *stream) {
  squares_args args = args_of(values, n, before, total);
  args.wide = 1;
  int error = LCOMM_LAUNCH(sum_squares_f64, args.sum_count, LCOMM_SPAN_THREADS, stream, args);
  return error ? error : LCOMM_LAUNCH(add_squares, 1, LCOMM_SPAN_THREADS, stream, args);
}

/* ------------------------------------------------------------------ scaling */

typedef struct scale_args {
  void *values;
  uint64_t n;
  const double *total;
  double limit;
  lcomm_span span;
} scale_args;

/* lcomm_clip_factor of lcomm_squares_norm */
LCOMM_DEVICE double factor_of(const scale_args *a) {
  double plain = a->total[PLAIN];
  double norm = plain <= DBL_MAX ? sqrt(plain) : sqrt(a->total[SCALED]) / LCOMM_SQUARES_UNIT;
  return norm > a->limit ? a->limit / norm : 1;
}

LCOMM_DEVICE uint32_t scaled_bits(float factor, uint32_t bits) {
  return lcomm_f32_bits(lcomm_product_f32(factor, lcomm_f32_from_bits(bits)));
}

LCOMM_KERNEL(scale, scale_args) {
  float factor = (float)factor_of(&a);
  if (factor == 1) {
    return;
  }
  float *values = (float *)a.values;
  uint8_t *units = (uint8_t *)(values + a.span.head);
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
    values[i] = lcomm_product_f32(factor, values[i]);
  }
}

LCOMM_KERNEL(scale_f64, scale_args) {
  double factor = factor_of(&a), *values = (double *)a.values;
  if (factor == 1) {
    return;
  }
  for (uint64_t i = lcomm_loose_first(); i < a.n; i += lcomm_loose_step()) {
    values[i] = lcomm_product_f64(factor, values[i]);
  }
}

extern "C" int lcomm_cuda_run_clip_to(float *values, uint64_t n, const double *total, double limit,
                                      void *stream) {
  const void *array = values;
  scale_args args = {values, n, total, limit, lcomm_span_of(&array, 1, sizeof(float), n)};
  return LCOMM_LAUNCH(scale, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_clip_to_f64(double *values, uint64_t n, const double *total,
                                          double limit, void *stream) {
  scale_args args = {values, n, total, limit, {0, 0, n}};
  return LCOMM_LAUNCH(scale_f64, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}
