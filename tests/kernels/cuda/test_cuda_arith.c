/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Fold, momentum, counts and clipping of a device against those of a processor. */

#include "tests/kernels/cuda/odd_values.h"

#include <math.h>

#include "codecs/clip.h"
#include "codecs/codec_residual.h"
#include "kernels/cuda/cuda_launch.h"
#include "kernels/kernels.h"
#include "tests/kernels/cuda/grid_sample.h"
#include "tests/support/unit_tests.h"

/* n values from a place `shift` elements behind a multiple of 16 bytes. */
typedef struct array {
  float *memory, *values, *was;
  size_t n;
} array;

static array draw_array(uint64_t *random, size_t shift, size_t n) {
  array a = {sample_memory((shift + n) * sizeof(float)), NULL, NULL, n};
  a.was = sample_memory(n * sizeof(float));
  a.values = a.memory + shift;
  for (size_t i = 0; i < n; i++) {
    a.was[i] = a.values[i] = odd_f32(random);
  }
  return a;
}

static void free_array(array a) {
  free(a.memory);
  free(a.was);
}

/* Which NaN it is, is open where two meet or one is new. */
static bool same_f32(float got, float wanted, float left, float right) {
  if (lcomm_f32_bits(got) == lcomm_f32_bits(wanted)) {
    return true;
  }
  return odd_is_nan_f32(got) && odd_is_nan_f32(wanted) &&
         odd_is_nan_f32(left) == odd_is_nan_f32(right);
}

/* --------------------------------------------------------------------- fold */

static void check_fold(size_t n, size_t left_shift, size_t right_shift) {
  uint64_t random = 1 + n;
  array values = draw_array(&random, left_shift, n);
  array residual = draw_array(&random, right_shift, n);
  assert_int_equal(lcomm_cuda_run_fold(values.values, residual.values, residual.values, n, NULL),
                   0);
  for (size_t i = 0; i < n; i++) {
    float wanted = values.was[i] + residual.was[i];
    if (!same_f32(values.values[i], wanted, values.was[i], residual.was[i])) {
      fail_msg("fold, %zu of %zu, shifted by %zu and %zu: %a + %a gave %a", i, n, left_shift,
               right_shift, values.was[i], residual.was[i], values.values[i]);
    }
    assert_int_equal(lcomm_f32_bits(residual.values[i]), 0);
  }
  free_array(values);
  free_array(residual);
}

static void residuals_are_folded_in_at_any_length_and_place(void **state) {
  (void)state;
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    for (size_t shift = 0; shift < 16; shift++) {
      check_fold(odd_lengths[l], shift % 4, shift / 4);
    }
  }
}

/* ---------------------------------------------------------------------- add */

static void float32_is_added_to_float64_at_any_length(void **state) {
  (void)state;
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    size_t n = odd_lengths[l];
    uint64_t random = 7 + n;
    array values = draw_array(&random, l % 4, n);
    double *sums = sample_memory((n + 1) * sizeof *sums);
    for (size_t i = 0; i <= n; i++) {
      sums[i] = (double)i / 3;
    }
    assert_int_equal(lcomm_cuda_run_add_to_f64(sums, values.values, n, NULL), 0);
    for (size_t i = 0; i < n; i++) {
      double wanted = (double)i / 3 + (double)values.was[i];
      assert_true(sums[i] == wanted || (wanted != wanted && sums[i] != sums[i]));
    }
    assert_true(sums[n] == (double)n / 3);
    free(sums);
    free_array(values);
  }
}

/* ----------------------------------------------------------------- momentum */

static void check_momentum(float factor, size_t n, size_t left_shift, size_t right_shift) {
  uint64_t random = 99 + n;
  array momentum = draw_array(&random, left_shift, n);
  array gradient = draw_array(&random, right_shift, n);
  assert_int_equal(
      lcomm_cuda_run_momentum(factor, momentum.values, momentum.values, gradient.values, n, NULL),
      0);
  for (size_t i = 0; i < n; i++) {
    float kept = momentum.was[i], moved = gradient.was[i];
    lcomm_kernels_scalar.ef.f32_momentum(factor, &kept, &kept, &moved, 1);
    if (!same_f32(gradient.values[i], moved, factor * momentum.was[i], gradient.was[i]) ||
        lcomm_f32_bits(momentum.values[i]) != lcomm_f32_bits(kept)) {
      fail_msg("momentum, %zu of %zu, shifted by %zu and %zu: %a and %a gave %a and %a", i, n,
               left_shift, right_shift, momentum.was[i], gradient.was[i], momentum.values[i],
               gradient.values[i]);
    }
  }
  free_array(momentum);
  free_array(gradient);
}

static void momentum_has_the_bytes_of_the_scalar_table(void **state) {
  (void)state;
  static const float factors[] = {0.9f, 1, 0, 1e-30f};
  for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
    for (size_t l = 0; l < ODD_LENGTHS; l++) {
      for (size_t shift = 0; shift < 16; shift += f ? 5 : 1) {
        check_momentum(factors[f], odd_lengths[l], shift % 4, shift / 4);
      }
    }
  }
}

/* ---------------------------------------------------------------------- NaN */

static void one_nan_is_handed_on_and_a_new_one_is_negative(void **state) {
  (void)state;
  enum { N = 2000 };
  static float left[N], right[N];
  static uint32_t bits[N];
  uint64_t random = 6;
  for (size_t i = 0; i < N; i++) {
    left[i] = odd_f32(&random);
    right[i] = odd_f32(&random);
  }
  assert_int_equal(grid_sample_nan(left, right, bits, N, NULL), 0);
  for (size_t i = 0; i < N; i++) {
    bool first = odd_is_nan_f32(left[i]), second = odd_is_nan_f32(right[i]);
    uint32_t handed_on = lcomm_f32_bits(first ? left[i] : right[i]) | 0x00400000u;
    assert_int_equal(bits[i], first || second ? handed_on : 0xffc00000u);
    if (first != second) {
      assert_int_equal(bits[i], lcomm_f32_bits(left[i] + right[i]));
    }
  }
}

static void float64_nans_are_handed_on_alike(void **state) {
  (void)state;
  enum { N = 2000 };
  static double left[N], right[N];
  static uint64_t bits[N];
  uint64_t random = 61;
  for (size_t i = 0; i < N; i++) {
    left[i] = odd_f64(&random);
    right[i] = odd_f64(&random);
  }
  assert_int_equal(grid_sample_nan_f64(left, right, bits, N, NULL), 0);
  for (size_t i = 0; i < N; i++) {
    bool first = odd_is_nan_f64(left[i]), second = odd_is_nan_f64(right[i]);
    if (first || second) {
      assert_true(bits[i] ==
                  (lcomm_f64_bits(first ? left[i] : right[i]) | UINT64_C(0x0008000000000000)));
    } else {
      assert_true(bits[i] == UINT64_C(0xfff8000000000000));
    }
  }
}

/* -------------------------------------------------------------------- count */

static void check_counts(size_t n, size_t shift) {
  uint64_t random = 3 + n, found = 5, found_f64 = UINT64_C(1) << 33, wanted_f64 = found_f64;
  array a = draw_array(&random, shift, n);
  double *memory = sample_memory((n + shift % 2) * sizeof *memory), *doubles = memory + shift % 2;
  for (size_t i = 0; i < n; i++) {
    doubles[i] = odd_f64(&random);
    wanted_f64 += !isfinite(doubles[i]);
  }
  assert_int_equal(lcomm_cuda_run_count_not_finite(a.values, n, &found, NULL), 0);
  assert_true(found == 5 + lcomm_kernels_scalar.f32_count_not_finite(a.was, n));
  assert_int_equal(lcomm_cuda_run_count_not_finite_f64(doubles, n, &found_f64, NULL), 0);
  assert_true(found_f64 == wanted_f64);
  free(memory);
  free_array(a);
}

static void everything_that_is_not_finite_is_counted(void **state) {
  (void)state;
  for (size_t o = 0; o < ODD_ORDERS; o++) {
    lcomm_emulated_order = odd_orders[o];
    for (size_t l = 0; l < ODD_LENGTHS; l++) {
      for (size_t shift = 0; shift < 4; shift++) {
        check_counts(odd_lengths[l], shift);
      }
    }
  }
  lcomm_emulated_order = 0;
}

/* --------------------------------------------------------------------- clip */

enum { SUMS = LCOMM_CUDA_SQUARES };

static array draw_usual(size_t shift, size_t n, float size) {
  uint64_t random = 17 + n;
  array a = draw_array(&random, shift, n);
  for (size_t i = 0; i < n; i++) {
    a.was[i] = a.values[i] = size * sample_normal(&random);
  }
  return a;
}

static long double length_of(const float *values, size_t n) {
  long double sum = 0;
  for (size_t i = 0; i < n; i++) {
    sum += (long double)values[i] * (long double)values[i];
  }
  return sqrtl(sum);
}

/* In two steps, as one. `total` has SUMS doubles. */
static int clip(float *values, size_t n, double limit, double *total) {
  int error = lcomm_cuda_run_squares(values, n, NULL, total, NULL);
  return error ? error : lcomm_cuda_run_clip_to(values, n, total, limit, NULL);
}

/* Squares are added in one order, so all bytes are those of the processor. */
static void check_clip(size_t n, size_t shift, float size, double share) {
  double *sums = sample_memory(SUMS * sizeof *sums);
  array a = draw_usual(shift, n, size);
  double length = (double)length_of(a.was, n), limit = share * length;
  assert_int_equal(clip(a.values, n, limit, sums), 0);
  lcomm_clip(&lcomm_kernels_scalar, a.was, LCOMM_FLOAT32, n, limit);
  if (n > 0 && length > 0) {
    assert_true(fabs(sqrt(sums[0]) / length - 1) < 1e-12);
  }
  for (size_t i = 0; i < n; i++) {
    if (memcmp(&a.values[i], &a.was[i], sizeof a.values[i]) != 0) {
      fail_msg("clip, %zu of %zu, shifted by %zu: %a in place of %a", i, n, shift, a.values[i],
               a.was[i]);
    }
  }
  free(sums);
  free_array(a);
}

static void values_are_clipped_to_the_length_that_is_allowed(void **state) {
  (void)state;
  static const float sizes[] = {1, 1e-40f, 1e37f};
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    for (size_t shift = 0; shift < 4; shift++) {
      check_clip(odd_lengths[l], shift, sizes[l % 3], 0.37);
      check_clip(odd_lengths[l], shift, sizes[shift % 3], 1.01);
    }
  }
}

/* More tiles than there are sums. */
static void a_long_array_is_clipped_with_the_scratch_it_has(void **state) {
  (void)state;
  check_clip(((size_t)SUMS + 2) * 4096 + 3, 1, 1, 0.5);
}

static void values_within_the_limit_keep_their_bytes(void **state) {
  (void)state;
  double *sums = sample_memory(SUMS * sizeof *sums);
  array a = draw_usual(1, 5000, 1);
  assert_int_equal(clip(a.values, a.n, 1000, sums), 0);
  assert_memory_equal(a.values, a.was, a.n * sizeof *a.was);
  free(sums);
  free_array(a);
}

/* NaN and Inf stay bit for bit, and the values beside them are clipped by their own length. */
static void what_is_finite_is_clipped_beside_what_is_not(void **state) {
  (void)state;
  static const uint32_t odd[] = {LCOMM_F32_INF_BITS, LCOMM_F32_NAN_BITS, 0xff800000u, 0x7fc00001u};
  for (size_t k = 0; k < 4; k++) {
    for (size_t place = 0; place < 5000; place += 4999) {
      double *sums = sample_memory(SUMS * sizeof *sums);
      array a = draw_usual(k, 5000, 1);
      a.was[place] = 0;
      double length = (double)length_of(a.was, 5000);
      memcpy(&a.values[place], &odd[k], sizeof odd[k]);
      memcpy(&a.was[place], &odd[k], sizeof odd[k]);
      assert_int_equal(clip(a.values, a.n, 0.5, sums), 0);
      lcomm_clip(&lcomm_kernels_scalar, a.was, LCOMM_FLOAT32, a.n, 0.5);
      assert_memory_equal(&a.values[place], &odd[k], sizeof odd[k]);
      assert_memory_equal(&a.was[place], &odd[k], sizeof odd[k]);
      assert_true(fabs(sqrt(sums[0]) / length - 1) < 1e-12);
      a.values[place] = a.was[place] = 0;
      assert_true(fabsl(length_of(a.values, 5000) / 0.5L - 1) < 1e-5L);
      assert_true(fabsl(length_of(a.was, 5000) / 0.5L - 1) < 1e-5L);
      free(sums);
      free_array(a);
    }
  }
}

static void float64_is_clipped_alike(void **state) {
  (void)state;
  enum { N = 70001 };
  double *sums = sample_memory(SUMS * sizeof *sums), *values = sample_memory(N * sizeof *values);
  double *was = sample_memory(N * sizeof *was);
  array a = draw_usual(0, N, 1);
  for (size_t i = 0; i < N; i++) {
    values[i] = was[i] = (double)a.values[i];
  }
  values[77] = was[77] = HUGE_VAL;
  assert_int_equal(lcomm_cuda_run_squares_f64(values, N, NULL, sums, NULL), 0);
  assert_int_equal(lcomm_cuda_run_clip_to_f64(values, N, sums, 0.25, NULL), 0);
  lcomm_clip(&lcomm_kernels_scalar, was, LCOMM_FLOAT64, N, 0.25);
  assert_memory_equal(values, was, N * sizeof *values);
  free(sums);
  free(values);
  free(was);
  free_array(a);
}

/* The norm of several arrays, whose squares may be beyond float64. */
static void several_arrays_have_one_norm(void **state) {
  (void)state;
  enum { N = 20011 };
  double *first = sample_memory(SUMS * sizeof *first), *both = sample_memory(SUMS * sizeof *both);
  double *wide = sample_memory(N * sizeof *wide);
  array a = draw_usual(0, N, 1);
  for (size_t i = 0; i < N; i++) {
    wide[i] = 1e170 * (double)a.values[i];
  }
  lcomm_squares squares = {0, 0};
  lcomm_squares_add(&squares, wide, LCOMM_FLOAT64, N);
  lcomm_squares_add(&squares, a.values, LCOMM_FLOAT32, N);
  assert_int_equal(lcomm_cuda_run_squares_f64(wide, N, NULL, first, NULL), 0);
  assert_int_equal(lcomm_cuda_run_squares(a.values, N, first, both, NULL), 0);
  assert_true(isinf(both[0]) && isinf(squares.plain));
  assert_memory_equal(&both[1], &squares.scaled, sizeof squares.scaled);
  assert_int_equal(lcomm_cuda_run_clip_to(a.values, N, both, 1e170, NULL), 0);
  double factor = lcomm_clip_factor(lcomm_squares_norm(&squares), 1e170);
  lcomm_clip_scale(&lcomm_kernels_scalar, a.was, LCOMM_FLOAT32, N, factor);
  assert_true(factor > 0 && factor < 1);
  assert_memory_equal(a.values, a.was, N * sizeof *a.was);
  free(first);
  free(both);
  free(wide);
  free_array(a);
}

/* ------------------------------------------------------------------ samples */

/* Of an array that lies at 100 of a vector, of which elements 3000 .. 9000 are there. */
static void samples_are_those_of_the_processor(void **state) {
  (void)state;
  enum { N = 10000, FIRST = 3000, COUNT = 6000, OFFSET = 100 };
  lcomm_cuda_sample it = {.sample = {.count = 9001, .blocks = 37, .block = 16, .seed = 5},
                          .first = FIRST,
                          .count = COUNT,
                          .offset = OFFSET,
                          .factor = 3};
  array a = draw_usual(0, N, 1);
  float made[37 * 16];
  size_t missing = 0;
  it.values = a.values + FIRST;
  it.destination = made;
  assert_int_equal(lcomm_cuda_run_sample(&it, NULL), 0);
  assert_int_equal(lcomm_cuda_run_sample_add(&it, NULL), 0);
  for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
    uint64_t at = OFFSET + lcomm_sample_at(&it.sample, i);
    bool there = at >= FIRST && at < FIRST + COUNT;
    float once = there ? 3 * a.values[at] : 0;
    assert_true(made[i] == once + once);
    missing += !there;
  }
  assert_true(missing > 100 && missing < 400);
  free_array(a);
}

/* So that all ranks of a plan agree, wherever their arrays lie. */
static void clipping_depends_on_neither_place_nor_order(void **state) {
  (void)state;
  enum { N = 70003 };
  array first = draw_usual(0, N, 1);
  double *sums = sample_memory(SUMS * sizeof *sums), factor = 0;
  for (size_t run = 0; run < 8; run++) {
    array a = draw_usual(run % 4, N, 1);
    lcomm_emulated_order = odd_orders[run / 4];
    clip(a.values, N, 3, sums);
    if (run == 0) {
      memcpy(first.values, a.values, N * sizeof *a.values);
      factor = sums[0];
    }
    assert_memory_equal(&sums[0], &factor, sizeof factor);
    assert_memory_equal(a.values, first.values, N * sizeof *a.values);
    free_array(a);
  }
  lcomm_emulated_order = 0;
  free(sums);
  free_array(first);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(residuals_are_folded_in_at_any_length_and_place),
    cmocka_unit_test(float32_is_added_to_float64_at_any_length),
    cmocka_unit_test(momentum_has_the_bytes_of_the_scalar_table),
    cmocka_unit_test(one_nan_is_handed_on_and_a_new_one_is_negative),
    cmocka_unit_test(float64_nans_are_handed_on_alike),
    cmocka_unit_test(everything_that_is_not_finite_is_counted),
    cmocka_unit_test(values_are_clipped_to_the_length_that_is_allowed),
    cmocka_unit_test(a_long_array_is_clipped_with_the_scratch_it_has),
    cmocka_unit_test(values_within_the_limit_keep_their_bytes),
    cmocka_unit_test(what_is_finite_is_clipped_beside_what_is_not),
    cmocka_unit_test(float64_is_clipped_alike),
    cmocka_unit_test(several_arrays_have_one_norm),
    cmocka_unit_test(samples_are_those_of_the_processor),
    cmocka_unit_test(clipping_depends_on_neither_place_nor_order),
};
RUN_TESTS(tests)
