/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* P and Q are small beside M: these are the same functions for every table. */

#include "kernels/lowrank.h"

#include <math.h>

#include "kernels/element.h"
#include "kernels/lowrank_step.h"

enum { SUMS = 8 };

static double dot(const float *left, const float *right, size_t n) {
  double sum[SUMS] = {0};
  size_t i = 0;
  for (; i + SUMS <= n; i += SUMS) {
    for (size_t s = 0; s < SUMS; s++) {
      sum[s] += (double)left[i + s] * (double)right[i + s];
    }
  }
  for (size_t s = 0; i + s < n; s++) {
    sum[s] += (double)left[i + s] * (double)right[i + s];
  }
  for (size_t width = SUMS / 2; width > 0; width /= 2) {
    for (size_t s = 0; s < width; s++) {
      sum[s] += sum[s + width];
    }
  }
  return sum[0];
}

static void take_off(float *restrict vector, const float *restrict other, size_t n) {
  double part = dot(vector, other, n);
  for (size_t i = 0; i < n; i++) {
    vector[i] = (float)((double)vector[i] - part * (double)other[i]);
  }
}

/* Takes the parts along the k vectors before it off vector k. */
static void take_off_earlier(float *p, size_t n, size_t k) {
  for (size_t other = 0; other < k; other++) {
    take_off(p + k * n, p + other * n, n);
  }
}

static void normalise(float *vector, size_t n) {
  double length = sqrt(dot(vector, vector, n));
  for (size_t i = 0; length > 0.0 && i < n; i++) {
    vector[i] = (float)((double)vector[i] / length);
  }
}

/* Values in [-1, 1). */
static void fill_by_counter(float *vector, size_t n, uint64_t seed, size_t k) {
  for (size_t i = 0; i < n; i++) {
    vector[i] = (float)(int32_t)lcomm_random(seed, k * n + i) * 0x1p-31f;
  }
}

static void fill(float *vector, size_t n, float value) {
  for (size_t i = 0; i < n; i++) {
    vector[i] = value;
  }
}

static void orthonormalise_one(float *p, size_t n, size_t k) {
  float *vector = p + k * n;
  double before = dot(vector, vector, n);
  take_off_earlier(p, n, k);
  double left = dot(vector, vector, n);
  if (!(left < INFINITY)) {
    fill(vector, n, lcomm_f32_from_bits(LCOMM_F32_NAN_BITS));
    return;
  }
  if (left <= LCOMM_LOWRANK_LEAST_LEFT * before) {
    fill_by_counter(vector, n, 0, k);
    take_off_earlier(p, n, k);
  }
  normalise(vector, n);
  take_off_earlier(p, n, k);
  normalise(vector, n);
}

void lcomm_lowrank_orthonormalise(float *p, size_t rows, size_t rank) {
  for (size_t k = 0; k < rank; k++) {
    if (k < rows) {
      orthonormalise_one(p, rows, k);
    } else {
      fill(p + k * rows, rows, 0.0f);
    }
  }
}

void lcomm_lowrank_start(float *q, size_t columns, size_t rank, uint64_t seed) {
  for (size_t k = 0; k < rank; k++) {
    fill_by_counter(q + k * columns, columns, seed, k);
  }
  lcomm_lowrank_orthonormalise(q, columns, rank);
}
