/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Loops over values of any shape, and over rows. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"
#include "trainer/train_math.h"

/* -------------------------------------------------------------------- vectors */

typedef struct values_args {
  train_values a, b, out;
  float factor;
  uint64_t count;
} values_args;

LCOMM_KERNEL(add_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    train_put(a.out, i, train_get(a.a, i) + train_get(a.b, i));
  }
}

LCOMM_KERNEL(mean_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    train_put(a.out, i, a.factor * (train_get(a.out, i) + train_get(a.b, i)));
  }
}

LCOMM_KERNEL(scale_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    train_put(a.out, i, train_get(a.out, i) * a.factor);
  }
}

LCOMM_KERNEL(relu_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    float x = train_get(a.a, i);
    train_put(a.out, i, x < 0.0f ? 0.0f : x);
  }
}

/* a: what relu gave, b: its gradient */
LCOMM_KERNEL(relu_slopes, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    train_put(a.out, i, train_get(a.a, i) > 0.0f ? train_get(a.b, i) : 0.0f);
  }
}

LCOMM_DEVICE float gelu_share(float x) {
  float u = MATH_GELU_SLOPE * (x + MATH_GELU_CUBE * x * x * x);
  return 1.0f / (1.0f + expf(-2.0f * u));
}

LCOMM_KERNEL(gelu_values, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    float x = train_get(a.a, i);
    train_put(a.out, i, x * gelu_share(x));
  }
}

LCOMM_KERNEL(gelu_slopes, values_args) {
  for (TRAIN_EACH(i, a.count)) {
    float x = train_get(a.a, i), share = gelu_share(x);
    float slope = 2.0f * MATH_GELU_SLOPE * (1.0f + 3.0f * MATH_GELU_CUBE * x * x);
    train_put(a.out, i, train_get(a.b, i) * (share + x * share * (1.0f - share) * slope));
  }
}

/* Of elements, or of float32. */
static values_args values_of(const element *first, const element *second, element *out,
                             size_t count) {
  values_args made = {train_elements(first), train_elements(second), train_elements(out), 0.0f,
                      count};
  return made;
}

static values_args floats_of(const float *more, float *values, float factor, size_t count) {
  values_args made = {train_floats(values), train_floats(more), train_floats(values), factor,
                      count};
  return made;
}

void train_cuda_add(const element *first, const element *second, element *out, size_t count) {
  values_args args = values_of(first, second, out, count);
  TRAIN_LAUNCH(add_values, count, args);
}

void train_cuda_accumulate(float *sum, const float *more, size_t count) {
  values_args args = floats_of(more, sum, 0.0f, count);
  TRAIN_LAUNCH(add_values, count, args);
}

void train_cuda_mean(float *values, const float *sum, float share, size_t count) {
  values_args args = floats_of(sum, values, share, count);
  TRAIN_LAUNCH(mean_values, count, args);
}

void train_cuda_scale(float *values, float factor, size_t count) {
  values_args args = floats_of(NULL, values, factor, count);
  if (factor != 1.0f) {
    TRAIN_LAUNCH(scale_values, count, args);
  }
}

typedef struct finite_args {
  const float *values;
  uint32_t *found;
  uint64_t count;
} finite_args;

/* A thread that finds one adds once. */
LCOMM_KERNEL(count_not_finite, finite_args) {
  const uint32_t exponent = 0x7f800000u;
  uint32_t any = 0;
  for (TRAIN_EACH(i, a.count)) {
    any |= (lcomm_f32_bits(a.values[i]) & exponent) == exponent;
  }
  if (any) {
    lcomm_atomic_add(a.found, 1);
  }
}

/* What could not be computed is not finite. */
bool train_cuda_finite(const float *values, size_t count) {
  uint32_t found = 0;
  finite_args args = {values, (uint32_t *)train_cuda_scratch(sizeof found), count};
  if (!args.found) {
    return false;
  }
  train_cuda_clear(args.found, sizeof found);
  TRAIN_LAUNCH(count_not_finite, count, args);
  train_cuda_read(&found, args.found, sizeof found);
  return found == 0 && train_cuda.error == 0;
}

void train_cuda_relu(const element *in, element *out, size_t count) {
  values_args args = values_of(in, NULL, out, count);
  TRAIN_LAUNCH(relu_values, count, args);
}

void train_cuda_relu_back(const element *out, const element *out_delta, element *in_delta,
                          size_t count) {
  values_args args = values_of(out, out_delta, in_delta, count);
  TRAIN_LAUNCH(relu_slopes, count, args);
}

void train_cuda_gelu(const element *in, element *out, size_t count) {
  values_args args = values_of(in, NULL, out, count);
  TRAIN_LAUNCH(gelu_values, count, args);
}

void train_cuda_gelu_back(const element *in, const element *out_delta, element *in_delta,
                          size_t count) {
  values_args args = values_of(in, out_delta, in_delta, count);
  TRAIN_LAUNCH(gelu_slopes, count, args);
}

/* ----------------------------------------------------------------------- rows */

typedef struct rows_args {
  train_values in, out;
  uint32_t rows, columns, slices;
} rows_args;

LCOMM_KERNEL(fill_row, rows_args) {
  for (TRAIN_EACH(i, (uint64_t)a.rows * a.columns)) {
    train_put(a.out, i, train_get(a.in, i % a.columns));
  }
}

/* out[slices][columns] of in[rows][columns] */
LCOMM_KERNEL(sum_of_rows, rows_args) {
  for (TRAIN_EACH(i, (uint64_t)a.slices * a.columns)) {
    uint64_t slice = i / a.columns, column = i % a.columns;
    uint64_t first = slice * a.rows / a.slices, end = (slice + 1) * a.rows / a.slices;
    float sum = 0.0f;
    for (uint64_t row = first; row < end; row++) {
      sum += train_get(a.in, row * a.columns + column);
    }
    train_put(a.out, i, sum);
  }
}

void train_cuda_fill_rows(const element *row, element *out, int rows, int columns) {
  rows_args args = {train_elements(row), train_elements(out), (uint32_t)rows, (uint32_t)columns, 1};
  TRAIN_LAUNCH(fill_row, (uint64_t)rows * (uint64_t)columns, args);
}

uint32_t train_cuda_slices(int rows) {
  const uint32_t least = 16, most = 64;
  uint32_t slices = (uint32_t)rows / least;
  slices = slices < most ? slices : most;
  return slices > 0 ? slices : 1;
}

static void sum_up(train_values in, float *sum, uint32_t rows, uint32_t columns, uint32_t slices) {
  rows_args args = {in, train_floats(sum), rows, columns, slices};
  TRAIN_LAUNCH(sum_of_rows, (uint64_t)slices * columns, args);
}

void train_cuda_sum_slices(const float *partial, float *sum, uint32_t slices, int columns) {
  sum_up(train_floats(partial), sum, slices, (uint32_t)columns, 1);
}

void train_cuda_sum_rows(const element *in, float *sum, int rows, int columns) {
  uint32_t slices = train_cuda_slices(rows);
  float *partial =
      slices == 1 ? sum
                  : (float *)train_cuda_scratch((size_t)slices * (size_t)columns * sizeof(float));
  if (!partial) {
    return;
  }
  sum_up(train_elements(in), partial, (uint32_t)rows, (uint32_t)columns, slices);
  if (slices > 1) {
    train_cuda_sum_slices(partial, sum, slices, columns);
  }
}
