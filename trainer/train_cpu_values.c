/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <string.h>

#include "trainer/train_cpu.h"
#include "trainer/train_math.h"

/* ------------------------------------------------------------------ matrices */

void cpu_fill_rows(const float *row, float *out, int rows, int columns) {
  for (int at = 0; at < rows; at++) {
    memcpy(out + (size_t)at * columns, row, (size_t)columns * sizeof *out);
  }
}

void cpu_sum_rows(const float *restrict in, float *restrict sum, int rows, int columns) {
  memset(sum, 0, (size_t)columns * sizeof *sum);
  for (int row = 0; row < rows; row++) {
    for (int column = 0; column < columns; column++) {
      sum[column] += in[(size_t)row * columns + column];
    }
  }
}

/* -------------------------------------------------------------------- vectors */

void cpu_add(const float *a, const float *b, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) {
    out[i] = a[i] + b[i];
  }
}

void cpu_accumulate(float *restrict sum, const float *restrict more, size_t count) {
  for (size_t i = 0; i < count; i++) {
    sum[i] += more[i];
  }
}

void cpu_mean(float *restrict values, const float *restrict sum, float share, size_t count) {
  for (size_t i = 0; i < count; i++) {
    values[i] = share * (values[i] + sum[i]);
  }
}

void cpu_scale(float *values, float factor, size_t count) {
  for (size_t i = 0; factor != 1.0f && i < count; i++) {
    values[i] *= factor;
  }
}

bool cpu_finite(const float *values, size_t count) {
  bool all = true;
  for (size_t i = 0; i < count; i++) {
    all &= isfinite(values[i]) != 0;
  }
  return all;
}

void cpu_relu(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) {
    out[i] = in[i] < 0.0f ? 0.0f : in[i]; /* keeps a NaN, so that it is seen */
  }
}

void cpu_relu_back(const float *out, const float *out_delta, float *in_delta, size_t count) {
  for (size_t i = 0; i < count; i++) {
    in_delta[i] = out[i] > 0.0f ? out_delta[i] : 0.0f;
  }
}

void cpu_gelu(const float *restrict in, float *restrict out, size_t count) {
  for (size_t i = 0; i < count; i++) {
    out[i] = in[i] * math_gelu_share(in[i]);
  }
}

void cpu_gelu_back(const float *restrict in, const float *restrict out_delta,
                   float *restrict in_delta, size_t count) {
  for (size_t i = 0; i < count; i++) {
    in_delta[i] = out_delta[i] * math_gelu_slope(in[i], math_gelu_share(in[i]));
  }
}
