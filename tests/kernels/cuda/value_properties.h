/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_VALUE_PROPERTIES_H
#define LCOMM_TESTS_KERNELS_CUDA_VALUE_PROPERTIES_H

/* Kernels that work on values as they are, against those of the processor. Where
 * arrays may begin at any element, they do. */

#include "codecs/clip.h"
#include "codecs/codec_residual.h"
#include "kernels/plain.h"
#include "tests/kernels/cuda/kernel_device.h"
#include "tests/kernels/cuda/odd_values.h"

/* n values, odd ones or finite ones. */
static inline float *odd_array(uint64_t seed, size_t n, float only_finite) {
  float *values = sample_memory(n * sizeof *values);
  for (size_t i = 0; i < n; i++) {
    values[i] = odd_f32(&seed);
    if (only_finite != 0.0f && !lcomm_f32_is_finite(values[i])) {
      values[i] = only_finite;
    }
  }
  return values;
}

static inline size_t shift_of(size_t turn, size_t size) {
  return turn % 4 * size;
}

/* ----------------------------------------------- fold, momentum, not finite */

static inline void fold_both(size_t turn, size_t n) {
  size_t size = n * sizeof(float);
  float *values = odd_array(1 + n, n, 0.0f), *residual = odd_array(2 + n, n, -1.0f);
  void *values_there = there(values, size, shift_of(turn, 4));
  void *residual_there = there(residual, size, shift_of(turn / 4, 4));
  CHECK(device->kernels->fold(values_there, residual_there, residual_there, n, stream));
  lcomm_residual_fold(scalar, values, residual, residual, n);
  expect_there(values_there, values, size, "fold");
  expect_there(residual_there, residual, size, "folded");
  free(values);
  free(residual);
  give_back();
}

static void residuals_are_folded_in(void **state) {
  (void)state;
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    fold_both(l * 5, odd_lengths[l]);
  }
  fold_both(5, long_count);
}

/* What is not finite is on one side only, so that no two NaNs meet. */
static inline void momentum_both(size_t turn, float factor, size_t n) {
  size_t size = n * sizeof(float);
  float *momentum = odd_array(3 + n, n, turn % 2 ? 2.0f : 0.0f);
  float *moved = odd_array(4 + n, n, turn % 2 ? 0.0f : -2.0f);
  void *momentum_there = there(momentum, size, shift_of(turn, 4));
  void *moved_there = there(moved, size, shift_of(turn / 4, 4));
  CHECK(device->kernels->momentum(factor, momentum_there, momentum_there, moved_there, n, stream));
  scalar->ef.f32_momentum(factor, momentum, momentum, moved, n);
  expect_there(momentum_there, momentum, size, "momentum");
  expect_there(moved_there, moved, size, "gradient with momentum");
  free(momentum);
  free(moved);
  give_back();
}

static inline void mean_both(size_t turn, float keep, float take, size_t n) {
  size_t size = n * sizeof(float);
  float *mean = odd_array(3 + n, n, turn % 2 ? 2.0f : 0.0f);
  float *values = odd_array(4 + n, n, turn % 2 ? 0.0f : -2.0f);
  void *mean_there = there(mean, size, shift_of(turn, 4));
  void *values_there = there(values, size, shift_of(turn / 4, 4));
  CHECK(device->kernels->mean(keep, mean_there, take, values_there, mean_there, n, stream));
  lcomm_plain_mean_f32(keep, mean, take, values, mean, n);
  expect_there(mean_there, mean, size, "mean");
  expect_there(values_there, values, size, "values of a mean");
  free(mean);
  free(values);
  give_back();
}

static void means_are_the_plain_ones(void **state) {
  (void)state;
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    mean_both(l, 0.9f, (float)(1 - 0.9), odd_lengths[l]);
    mean_both(l + 3, 0.0f, 1.0f, odd_lengths[l]);
  }
  mean_both(5, 0.9f, 1e-30f, long_count);
}

static void momentum_is_that_of_the_scalar_table(void **state) {
  static const float factors[] = {0.9f, 1.0f, 0.0f, 1e-30f};
  (void)state;
  for (size_t f = 0; f < COUNT(factors); f++) {
    for (size_t l = 0; l < ODD_LENGTHS; l++) {
      momentum_both(l + 3 * f, factors[f], odd_lengths[l]);
    }
  }
  momentum_both(5, 0.9f, long_count);
}

static inline void count_both(size_t turn, size_t n) {
  uint64_t random = 9 + n, wanted[2] = {5, UINT64_C(1) << 33};
  float *values = odd_array(5 + n, n, 0.0f);
  double *wide = sample_memory(n * sizeof *wide);
  for (size_t i = 0; i < n; i++) {
    wide[i] = odd_f64(&random);
    wanted[1] += (lcomm_f64_bits(wide[i]) >> 52 & 0x7ff) == 0x7ff;
  }
  uint64_t *found = there(wanted, sizeof wanted, 0);
  put(found + 1, &(uint64_t){UINT64_C(1) << 33}, sizeof *found);
  wanted[0] += scalar->f32_count_not_finite(values, n);
  void *values_there = there(values, n * sizeof *values, shift_of(turn, 4));
  void *wide_there = there(wide, n * sizeof *wide, shift_of(turn, 8));
  CHECK(device->kernels->count_not_finite(values_there, n, found, stream));
  CHECK(device->kernels->count_not_finite_f64(wide_there, n, found + 1, stream));
  expect_there(found, wanted, sizeof wanted, "how many are not finite");
  free(values);
  free(wide);
  give_back();
}

static void all_that_is_not_finite_is_counted(void **state) {
  (void)state;
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    count_both(l, odd_lengths[l]);
  }
  count_both(1, long_count);
}

/* ------------------------------------------------------- sums without codecs */

typedef struct plain_type {
  lcomm_cuda_plain type;
  lcomm_dtype dtype;
  size_t size;
} plain_type;

static const plain_type plain_types[] = {{LCOMM_CUDA_F64, LCOMM_FLOAT64, 8},
                                         {LCOMM_CUDA_I32, LCOMM_INT32, 4},
                                         {LCOMM_CUDA_I64, LCOMM_INT64, 8},
                                         {LCOMM_CUDA_I8, LCOMM_INT8, 1},
                                         {LCOMM_CUDA_U8, LCOMM_UINT8, 1}};

/* Of float64, only the last source is odd when sums are made: no two NaNs meet. */
static inline void *plain_source(const plain_type *t, size_t n, bool odd, uint64_t seed) {
  uint8_t *values = sample_memory(n * t->size);
  for (size_t i = 0; i < n; i++) {
    double number = odd ? odd_f64(&seed) : (double)sample_normal(&seed) / 3;
    uint64_t bits = t->type == LCOMM_CUDA_F64 ? lcomm_f64_bits(number) : sample_u64(&seed);
    memcpy(values + i * t->size, &bits, t->size);
  }
  return values;
}

/* Into the first source. */
static inline void combine_both(const plain_type *t, int op, uint32_t count, size_t n) {
  static const lcomm_plain_op ops[] = {LCOMM_PLAIN_SUM, LCOMM_PLAIN_MIN, LCOMM_PLAIN_MAX};
  void *sources[LCOMM_CUDA_SOURCES_MAX], *sources_there[LCOMM_CUDA_SOURCES_MAX];
  size_t size = n * t->size;
  for (uint32_t s = 0; s < count; s++) {
    sources[s] = plain_source(t, n, op != LCOMM_CUDA_SUM || s + 1 == count, 11 + n + s);
    sources_there[s] = there(sources[s], size, shift_of(n, t->size));
  }
  lcomm_cuda_combine a = {(const void *const *)sources_there,
                          count,
                          t->type,
                          (lcomm_cuda_op)op,
                          t->type == LCOMM_CUDA_F64 ? 1.0 / 3 : 1,
                          sources_there[0],
                          n};
  CHECK(device->kernels->combine(&a, stream));
  lcomm_plain_kernel_of(t->dtype, ops[op])((const void *const *)sources, count, sources[0], n);
  if (t->type == LCOMM_CUDA_F64) {
    lcomm_plain_scale_f64(sources[0], a.factor, n);
  }
  expect_there(sources_there[0], sources[0], size, "values that were combined");
  for (uint32_t s = 0; s < count; s++) {
    free(sources[s]);
  }
  give_back();
}

static void plain_values_are_combined_as_on_the_processor(void **state) {
  static const uint32_t counts[] = {1, 2, 3, 8, LCOMM_CUDA_SOURCES_MAX};
  (void)state;
  for (size_t t = 0; t < COUNT(plain_types); t++) {
    for (int op = LCOMM_CUDA_SUM; op <= LCOMM_CUDA_MAX; op++) {
      for (size_t c = 0; c < COUNT(counts); c++) {
        combine_both(&plain_types[t], op, counts[c], odd_lengths[(t + 5 * c) % ODD_LENGTHS]);
        combine_both(&plain_types[t], op, counts[c], 1023 + c);
      }
    }
  }
}

static inline void divide_both(int64_t divisor, size_t n) {
  int32_t *narrow = plain_source(&plain_types[1], n, false, 21 + n);
  int64_t *wide = plain_source(&plain_types[2], n, false, 22 + n);
  void *narrow_there = there(narrow, n * sizeof *narrow, shift_of(n, sizeof *narrow));
  void *wide_there = there(wide, n * sizeof *wide, shift_of(n, sizeof *wide));
  CHECK(device->kernels->divide.i32(narrow_there, (int32_t)divisor, n, stream));
  CHECK(device->kernels->divide.i64(wide_there, divisor, n, stream));
  lcomm_plain_divide_i32(narrow, (int32_t)divisor, n);
  lcomm_plain_divide_i64(wide, divisor, n);
  expect_there(narrow_there, narrow, n * sizeof *narrow, "int32 that were divided");
  expect_there(wide_there, wide, n * sizeof *wide, "int64 that were divided");
  free(narrow);
  free(wide);
  give_back();
}

static void integers_are_divided_as_on_the_processor(void **state) {
  static const int64_t divisors[] = {1, 3, 1000, INT32_MAX};
  (void)state;
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    divide_both(divisors[l % 4], odd_lengths[l]);
  }
}

/* ---------------------------------------------------- 16-bit values, planes */

enum { HALVES = 65536 };

static void unaligned16_loads_as_the_processor(void **state) {
  static const float factors[] = {1.0f, -0.37f, 3e38f};
  static uint16_t codes[HALVES];
  static float wanted[HALVES];
  (void)state;
  for (uint32_t i = 0; i < HALVES; i++) {
    codes[i] = (uint16_t)i;
  }
  for (size_t f = 0; f < COUNT(factors); f++) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
      void *codes_there = there(codes, sizeof codes, 2 * f), *got = there(NULL, sizeof wanted, 0);
      CHECK(device->kernels->unaligned16_load(bf16 ? LCOMM_CUDA_BF16 : LCOMM_CUDA_F16, codes_there,
                                              factors[f], got, HALVES, stream));
      (bf16 ? scalar->half.bf16_to_f32 : scalar->half.f16_to_f32)(codes, factors[f], wanted,
                                                                  HALVES);
      expect_there(got, wanted, sizeof wanted, bf16 ? "bf16" : "fp16");
      give_back();
    }
  }
}

/* All exponents, and the ties between codes. */
static void unaligned16_stores_as_the_processor(void **state) {
  static float values[HALVES];
  static uint16_t wanted[HALVES];
  (void)state;
  for (uint32_t i = 0; i < HALVES; i++) {
    values[i] =
        lcomm_f32_from_bits(i << 16 | (i * 2654435761u >> 19 & 0x1fff) | (i % 3 == 0 ? 0x8000 : 0));
  }
  for (size_t bf16 = 0; bf16 < 2; bf16++) {
    void *values_there = there(values, sizeof values, 4 * bf16);
    void *got = there(NULL, sizeof wanted, 2 + 4 * bf16);
    CHECK(device->kernels->unaligned16_store(bf16 ? LCOMM_CUDA_BF16 : LCOMM_CUDA_F16, values_there,
                                             got, HALVES, stream));
    if (bf16) {
      scalar->half.f32_to_bf16(values, wanted, HALVES);
    } else {
      scalar->half.f32_to_f16(values, 1.0f, wanted, HALVES);
    }
    expect_there(got, wanted, sizeof wanted, bf16 ? "to bf16" : "to fp16");
    give_back();
  }
}

static inline void planes_both(unsigned width, size_t n, size_t shift) {
  uint8_t *bytes = sample_memory(width * n), *wanted[4] = {NULL}, *planes[4] = {NULL};
  uint64_t random = 31 + n;
  for (size_t i = 0; i < width * n; i++) {
    bytes[i] = (uint8_t)(sample_u64(&random) >> 30);
  }
  void *source = there(bytes, width * n, shift), *back = there(NULL, width * n, shift);
  for (unsigned p = 0; p < width; p++) {
    wanted[p] = sample_memory(n);
    planes[p] = there(NULL, n, shift * p);
  }
  (width == 2 ? scalar->planes.split2 : scalar->planes.split4)(bytes, wanted, n);
  CHECK(device->kernels->split(width, source, planes, n, stream));
  CHECK(device->kernels->join(width, (const uint8_t *const *)planes, back, n, stream));
  for (unsigned p = 0; p < width; p++) {
    expect_there(planes[p], wanted[p], n, "plane");
    free(wanted[p]);
  }
  expect_there(back, bytes, width * n, "joined planes");
  free(bytes);
  give_back();
}

static void planes_are_split_and_joined_as_on_the_processor(void **state) {
  (void)state;
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    for (unsigned width = 2; width <= 4; width += 2) {
      planes_both(width, odd_lengths[l], l % 5 ? l : 0);
    }
  }
}

/* --------------------------------------------------------------------- clip */

/* Squares are added in one order everywhere. */
static void clipping_gives_the_bytes_of_the_processor(void **state) {
  enum { N = 70003 };
  uint64_t random = 41;
  (void)state;
  float *values = sample_memory(N * sizeof *values);
  float *wanted = sample_memory(N * sizeof *values);
  make_values(KIND_GRADIENT, values, N, &random);
  memcpy(wanted, values, N * sizeof *values);
  lcomm_clip(scalar, wanted, LCOMM_FLOAT32, N, 3);
  for (size_t run = 0; run < 4; run++) {
    float *clipped = there(values, N * sizeof *values, shift_of(run, 4));
    double *total = there(NULL, LCOMM_CUDA_SQUARES * sizeof *total, 0);
    CHECK(device->kernels->squares(clipped, N, NULL, total, stream));
    CHECK(device->kernels->clip_to(clipped, N, total, 3, stream));
    expect_there(clipped, wanted, N * sizeof *values, "clipped values");
    give_back();
  }
  free(values);
  free(wanted);
}

#define VALUE_PROPERTIES(TEST)                                                                     \
  TEST(residuals_are_folded_in), TEST(momentum_is_that_of_the_scalar_table),                       \
      TEST(means_are_the_plain_ones), TEST(all_that_is_not_finite_is_counted),                     \
      TEST(plain_values_are_combined_as_on_the_processor),                                         \
      TEST(integers_are_divided_as_on_the_processor), TEST(unaligned16_loads_as_the_processor),    \
      TEST(unaligned16_stores_as_the_processor),                                                   \
      TEST(planes_are_split_and_joined_as_on_the_processor),                                       \
      TEST(clipping_gives_the_bytes_of_the_processor)

#endif
