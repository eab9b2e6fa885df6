/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/clip.h"

#include <float.h>
#include <math.h>

#include "kernels/element.h"

/* Several sums, because one alone would wait for every addition. */
enum { SUMS = 8 };

static double sum_of(const double squares[SUMS]) {
  double all = 0;
  for (int j = 0; j < SUMS; j++) {
    all += squares[j];
  }
  return all;
}

static double square(float value) {
  double finite = (double)lcomm_finite_or_zero(value);
  return finite * finite;
}

static double norm_f32(const float *values, uint64_t n) {
  double squares[SUMS] = {0};
  uint64_t whole = n - n % SUMS;
  for (uint64_t i = 0; i < whole; i += SUMS) {
    for (int j = 0; j < SUMS; j++) {
      squares[j] += square(values[i + (uint64_t)j]);
    }
  }
  for (uint64_t i = whole; i < n; i++) {
    squares[0] += square(values[i]);
  }
  return sqrt(sum_of(squares));
}

/* The sum of squares of finite float64, each multiplied by `unit` before. */
static double squares_f64(const double *values, uint64_t n, double unit) {
  double squares[SUMS] = {0};
  for (uint64_t i = 0; i < n; i++) {
    double value = isfinite(values[i]) ? unit * values[i] : 0;
    squares[i % SUMS] += value * value;
  }
  return sum_of(squares);
}

/* Squares of large values overflow, which those of a smaller unit do not. */
static double norm_f64(const double *values, uint64_t n) {
  static const double unit = 0x1p-600;
  double squares = squares_f64(values, n, 1);
  return squares <= DBL_MAX ? sqrt(squares) : sqrt(squares_f64(values, n, unit)) / unit;
}

double lcomm_clip_norm(const void *values, lcomm_dtype dtype, uint64_t n) {
  return dtype == LCOMM_FLOAT64 ? norm_f64(values, n) : norm_f32(values, n);
}

void lcomm_clip_scale(const lcomm_kernels *kernels, void *values, lcomm_dtype dtype, uint64_t n,
                      double factor) {
  double *wide = values;
  if (dtype != LCOMM_FLOAT64) {
    kernels->f32_scale(values, (float)factor, values, (size_t)n);
    return;
  }
  for (uint64_t i = 0; i < n; i++) {
    wide[i] *= factor;
  }
}

void lcomm_clip(const lcomm_kernels *kernels, void *values, lcomm_dtype dtype, uint64_t n,
                double limit) {
  double factor = lcomm_clip_factor(lcomm_clip_norm(values, dtype, n), limit);
  if (factor < 1) {
    lcomm_clip_scale(kernels, values, dtype, n, factor);
  }
}
