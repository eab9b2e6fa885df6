/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/clip.h"

#include <float.h>
#include <math.h>

#include "kernels/element.h"
#include "kernels/squares.h"

/* ---------------------------------------------------------------- squares
 * The order of additions is that of kernels/squares.h. */

static double square_f32(float value) {
  double finite = (double)lcomm_finite_or_zero(value);
  return finite * finite;
}

static double square_f64(double value, double unit) {
  double finite = isfinite(value) ? unit * value : 0;
  return finite * finite;
}

static double halve(double *sums) {
  for (int width = LCOMM_SQUARES_THREADS / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; i++) {
      sums[i] += sums[i + width];
    }
  }
  return sums[0];
}

static double sum_of_lanes(const double *lanes) {
  double sums[LCOMM_SQUARES_THREADS];
  for (int i = 0; i < LCOMM_SQUARES_THREADS; i++) {
    const double *s = lanes + 4 * (size_t)i;
    sums[i] = (s[0] + s[1]) + (s[2] + s[3]);
  }
  return halve(sums);
}

static double sum_of_pieces(const double *pieces) {
  double sums[LCOMM_SQUARES_THREADS] = {0};
  for (int i = 0; i < LCOMM_SQUARES_SUMS; i++) {
    sums[i % LCOMM_SQUARES_THREADS] += pieces[i];
  }
  return halve(sums);
}

static double piece_f32(const float *values, uint64_t n) {
  double lanes[LCOMM_SQUARES_LANES] = {0};
  for (uint64_t row = 0; row < n; row += LCOMM_SQUARES_LANES) {
    uint64_t width = n - row < LCOMM_SQUARES_LANES ? n - row : LCOMM_SQUARES_LANES;
    for (uint64_t i = 0; i < width; i++) {
      lanes[i] += square_f32(values[row + i]);
    }
  }
  return sum_of_lanes(lanes);
}

static double piece_f64(const double *values, uint64_t n, double unit) {
  double lanes[LCOMM_SQUARES_LANES] = {0};
  for (uint64_t i = 0; i < n; i++) {
    lanes[i % LCOMM_SQUARES_LANES] += square_f64(values[i], unit);
  }
  return sum_of_lanes(lanes);
}

static double squares_f32(const float *values, uint64_t n) {
  double pieces[LCOMM_SQUARES_SUMS] = {0};
  for (uint64_t at = 0, p = 0; at < n; at += LCOMM_SQUARES_PIECE, p++) {
    uint64_t left = n - at < LCOMM_SQUARES_PIECE ? n - at : LCOMM_SQUARES_PIECE;
    pieces[p % LCOMM_SQUARES_SUMS] += piece_f32(values + at, left);
  }
  return sum_of_pieces(pieces);
}

static double squares_f64(const double *values, uint64_t n, double unit) {
  double pieces[LCOMM_SQUARES_SUMS] = {0};
  for (uint64_t at = 0, p = 0; at < n; at += LCOMM_SQUARES_PIECE, p++) {
    uint64_t left = n - at < LCOMM_SQUARES_PIECE ? n - at : LCOMM_SQUARES_PIECE;
    pieces[p % LCOMM_SQUARES_SUMS] += piece_f64(values + at, left, unit);
  }
  return sum_of_pieces(pieces);
}

void lcomm_squares_add(lcomm_squares *squares, const void *values, lcomm_dtype dtype, uint64_t n) {
  if (dtype != LCOMM_FLOAT64) {
    squares->plain += squares_f32(values, n);
    return;
  }
  squares->plain += squares_f64(values, n, 1);
  squares->scaled += squares_f64(values, n, LCOMM_SQUARES_UNIT);
}

double lcomm_squares_norm(const lcomm_squares *squares) {
  return squares->plain <= DBL_MAX ? sqrt(squares->plain)
                                   : sqrt(squares->scaled) / LCOMM_SQUARES_UNIT;
}

/* --------------------------------------------------------------- clipping */

static double norm_of(const void *values, lcomm_dtype dtype, uint64_t n) {
  lcomm_squares squares = {0, 0};
  lcomm_squares_add(&squares, values, dtype, n);
  return lcomm_squares_norm(&squares);
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
  double factor = lcomm_clip_factor(norm_of(values, dtype, n), limit);
  if (factor < 1) {
    lcomm_clip_scale(kernels, values, dtype, n, factor);
  }
}
