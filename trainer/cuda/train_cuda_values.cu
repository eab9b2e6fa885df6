/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Loops over values of any shape, and over rows. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"
#include "trainer/train_math.h"

/* -------------------------------------------------------------------- vectors */

typedef struct values_args {
  const float *a, *b;
  float *out;
  float factor;
  uint64_t count;
} values_args;

LCOMM_KERNEL(add_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.out[i] = a.a[i] + a.b[i];
  }
}

LCOMM_KERNEL(mean_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.out[i] = a.factor * (a.out[i] + a.b[i]);
  }
}

LCOMM_KERNEL(scale_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.out[i] *= a.factor;
  }
}

LCOMM_KERNEL(relu_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.out[i] = a.a[i] < 0.0f ? 0.0f : a.a[i];
  }
}

/* a: what relu gave, b: its gradient */
LCOMM_KERNEL(relu_slopes, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.out[i] = a.a[i] > 0.0f ? a.b[i] : 0.0f;
  }
}

LCOMM_DEVICE float gelu_share(float x) {
  float u = MATH_GELU_SLOPE * (x + MATH_GELU_CUBE * x * x * x);
  return 1.0f / (1.0f + expf(-2.0f * u));
}

LCOMM_KERNEL(gelu_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.out[i] = a.a[i] * gelu_share(a.a[i]);
  }
}

LCOMM_KERNEL(gelu_slopes, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    float x = a.a[i], share = gelu_share(x);
    float slope = 2.0f * MATH_GELU_SLOPE * (1.0f + 3.0f * MATH_GELU_CUBE * x * x);
    a.out[i] = a.b[i] * (share + x * share * (1.0f - share) * slope);
  }
}

void train_cuda_add(const float *first, const float *second, float *out, size_t count) {
  values_args args = {first, second, out, 0.0f, count};
  TRAIN_LAUNCH(add_values, count, args);
}

void train_cuda_accumulate(float *sum, const float *more, size_t count) {
  train_cuda_add(sum, more, sum, count);
}

void train_cuda_mean(float *values, const float *sum, float share, size_t count) {
  values_args args = {NULL, sum, values, share, count};
  TRAIN_LAUNCH(mean_values, count, args);
}

void train_cuda_scale(float *values, float factor, size_t count) {
  values_args args = {NULL, NULL, values, factor, count};
  if (factor != 1.0f) {
    TRAIN_LAUNCH(scale_values, count, args);
  }
}

void train_cuda_relu(const float *in, float *out, size_t count) {
  values_args args = {in, NULL, out, 0.0f, count};
  TRAIN_LAUNCH(relu_values, count, args);
}

void train_cuda_relu_back(const float *out, const float *out_delta, float *in_delta, size_t count) {
  values_args args = {out, out_delta, in_delta, 0.0f, count};
  TRAIN_LAUNCH(relu_slopes, count, args);
}

void train_cuda_gelu(const float *in, float *out, size_t count) {
  values_args args = {in, NULL, out, 0.0f, count};
  TRAIN_LAUNCH(gelu_values, count, args);
}

void train_cuda_gelu_back(const float *in, const float *out_delta, float *in_delta, size_t count) {
  values_args args = {in, out_delta, in_delta, 0.0f, count};
  TRAIN_LAUNCH(gelu_slopes, count, args);
}

/* ------------------------------------------------------------------- 16 bits */

typedef struct codes_args {
  float *values;
  uint16_t *codes;
  float factor;
  uint64_t count;
} codes_args;

LCOMM_KERNEL(round_bf16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.values[i] = lcomm_bf16_to_f32(lcomm_f32_to_bf16(a.values[i]));
  }
}

LCOMM_KERNEL(round_f16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.values[i] = lcomm_f16_to_f32(lcomm_f32_to_f16(a.values[i]));
  }
}

LCOMM_KERNEL(encode_bf16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.codes[i] = lcomm_f32_to_bf16(a.factor * a.values[i]);
  }
}

LCOMM_KERNEL(encode_f16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.codes[i] = lcomm_f32_to_f16(a.factor * a.values[i]);
  }
}

LCOMM_KERNEL(decode_bf16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.values[i] = a.factor * lcomm_bf16_to_f32(a.codes[i]);
  }
}

LCOMM_KERNEL(decode_f16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.values[i] = a.factor * lcomm_f16_to_f32(a.codes[i]);
  }
}

void train_cuda_round(precision_kind kind, float *values, size_t count) {
  codes_args args = {values, NULL, 1.0f, count};
  if (kind == PRECISION_BF16) {
    TRAIN_LAUNCH(round_bf16, count, args);
  } else if (kind == PRECISION_FP16) {
    TRAIN_LAUNCH(round_f16, count, args);
  }
}

void train_cuda_encode(precision_kind kind, const float *values, float factor, uint16_t *codes,
                       size_t count) {
  codes_args args = {(float *)values, codes, factor, count};
  if (kind == PRECISION_BF16) {
    TRAIN_LAUNCH(encode_bf16, count, args);
  } else {
    TRAIN_LAUNCH(encode_f16, count, args);
  }
}

void train_cuda_decode(precision_kind kind, const uint16_t *codes, float factor, float *values,
                       size_t count) {
  codes_args args = {values, (uint16_t *)codes, factor, count};
  if (kind == PRECISION_BF16) {
    TRAIN_LAUNCH(decode_bf16, count, args);
  } else {
    TRAIN_LAUNCH(decode_f16, count, args);
  }
}

/* ----------------------------------------------------------------------- rows */

typedef struct rows_args {
  const float *in;
  float *out;
  uint32_t rows, columns, slices;
} rows_args;

LCOMM_KERNEL(fill_row, rows_args) {
  for (TRAIN_EACH(i, (uint64_t)a.rows * a.columns)) {
    a.out[i] = a.in[i % a.columns];
  }
}

/* out[slices][columns] of in[rows][columns] */
LCOMM_KERNEL(sum_of_rows, rows_args) {
  for (TRAIN_EACH(i, (uint64_t)a.slices * a.columns)) {
    uint64_t slice = i / a.columns, column = i % a.columns;
    uint64_t first = slice * a.rows / a.slices, end = (slice + 1) * a.rows / a.slices;
    float sum = 0.0f;
    for (uint64_t row = first; row < end; row++) {
      sum += a.in[row * a.columns + column];
    }
    a.out[i] = sum;
  }
}

void train_cuda_fill_rows(const float *row, float *out, int rows, int columns) {
  rows_args args = {row, out, (uint32_t)rows, (uint32_t)columns, 1};
  TRAIN_LAUNCH(fill_row, (uint64_t)rows * (uint64_t)columns, args);
}

uint32_t train_cuda_slices(int rows) {
  const uint32_t least = 16, most = 64;
  uint32_t slices = (uint32_t)rows / least;
  slices = slices < most ? slices : most;
  return slices > 0 ? slices : 1;
}

void train_cuda_sum_slices(const float *partial, float *sum, uint32_t slices, int columns) {
  rows_args args = {partial, sum, slices, (uint32_t)columns, 1};
  TRAIN_LAUNCH(sum_of_rows, (uint64_t)columns, args);
}

void train_cuda_sum_rows(const float *in, float *sum, int rows, int columns) {
  uint32_t slices = train_cuda_slices(rows);
  float *partial =
      slices == 1 ? sum
                  : (float *)train_cuda_scratch((size_t)slices * (size_t)columns * sizeof(float));
  if (!partial) {
    return;
  }
  rows_args args = {in, partial, (uint32_t)rows, (uint32_t)columns, slices};
  TRAIN_LAUNCH(sum_of_rows, (uint64_t)slices * (uint64_t)columns, args);
  if (slices > 1) {
    train_cuda_sum_slices(partial, sum, slices, columns);
  }
}
