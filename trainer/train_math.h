/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_MATH_H
#define TRAINER_TRAIN_MATH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Numerical pieces that layers and optimisers share, written so that compilers use vectors. */

/* Sum by independent lanes: short chains of additions and little rounding. */
static inline float math_sum(const float *values, size_t count) {
  float lanes[16] = {0};
  size_t whole = count - count % 16;
  for (size_t i = 0; i < whole; i += 16) {
    for (int lane = 0; lane < 16; lane++) {
      lanes[lane] += values[i + lane];
    }
  }
  float sum = 0.0f;
  for (int lane = 0; lane < 16; lane++) {
    sum += lanes[lane];
  }
  for (size_t i = whole; i < count; i++) {
    sum += values[i];
  }
  return sum;
}

/* Sum of a[i] * b[i] in double, likewise. The order of the additions is fixed, so the result has
 * the same bits on all machines. */
static inline double math_dot(const float *a, const float *b, size_t count) {
  double lanes[8] = {0};
  size_t whole = count - count % 8;
  for (size_t i = 0; i < whole; i += 8) {
    for (int lane = 0; lane < 8; lane++) {
      lanes[lane] += (double)a[i + lane] * (double)b[i + lane];
    }
  }
  double sum = 0.0;
  for (int lane = 0; lane < 8; lane++) {
    sum += lanes[lane];
  }
  for (size_t i = whole; i < count; i++) {
    sum += (double)a[i] * (double)b[i];
  }
  return sum;
}

/* exp(x) to a relative error of 2e-7. Beyond -87 .. 88 it is that of the border, and NaN stays NaN.
 *
 * x = n * log(2) + r with |r| <= log(2) / 2; exp(r) by its series, 2^n by the exponent of a float.
 * Adding 1.5 * 2^23 rounds to a whole number, which is then in the low bits. */
static inline float math_exp(float x) {
  const float rounder = 12582912.0f;
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  float shifted = x * 1.44269504f + rounder;
  float n = shifted - rounder;
  float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float series = 1.0f / 720.0f;
  series = series * r + 1.0f / 120.0f;
  series = series * r + 1.0f / 24.0f;
  series = series * r + 1.0f / 6.0f;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000u;
  float power;
  memcpy(&power, &bits, sizeof power);
  return series * power;
}

/* x times the normal distribution up to x, approximated: x * share, with share = 1 / (1 +
 * exp(-2u)), u = sqrt(2 / pi) * (x + 0.044715 * x^3); and its slope. */
#define MATH_GELU_SLOPE 0.79788456f
#define MATH_GELU_CUBE 0.044715f

static inline float math_gelu_share(float x) {
  float u = MATH_GELU_SLOPE * (x + MATH_GELU_CUBE * x * x * x);
  return 1.0f / (1.0f + math_exp(-2.0f * u));
}

static inline float math_gelu_slope(float x, float share) {
  float slope = 2.0f * MATH_GELU_SLOPE * (1.0f + 3.0f * MATH_GELU_CUBE * x * x);
  return share + x * share * (1.0f - share) * slope;
}

#endif
