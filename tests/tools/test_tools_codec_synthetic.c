/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Distributions as sources of codec_bench. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/element.h"
#include "tests/support/unit_tests.h"
#include "tools/codec/codec_source.h"

enum { COUNT = 1 << 20 };

static const double sigma = 1e-3;

static lcomm_source *open_kind(lcomm_synthetic_kind kind, uint64_t seed, uint64_t count) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source *source = NULL;
  lcomm_synthetic synthetic = {.kind = kind, .seed = seed, .count = count};
  if (lcomm_source_open_synthetic(&synthetic, &source, error) != LCOMM_OK) {
    fail_msg("%s", error);
  }
  return source;
}

/* To be freed with test_free. */
static float *make_values(lcomm_synthetic_kind kind, uint64_t seed, uint64_t count) {
  lcomm_source *source = open_kind(kind, seed, count);
  float *values = test_malloc((size_t)count * sizeof *values);
  lcomm_source_read(source, 0, count, values);
  lcomm_source_close(source);
  return values;
}

typedef struct moments {
  double mean, deviation, kurtosis;
} moments;

static moments measure(const float *values, size_t n) {
  moments m = {0};
  double squares = 0, fourths = 0;
  for (size_t i = 0; i < n; i++) {
    m.mean += (double)values[i] / (double)n;
  }
  for (size_t i = 0; i < n; i++) {
    double d = (double)values[i] - m.mean;
    squares += d * d;
    fourths += d * d * d * d;
  }
  m.deviation = sqrt(squares / (double)n);
  m.kurtosis = fourths * (double)n / (squares * squares);
  return m;
}

/* Share of values whose magnitude is above `limit`. */
static double share_above(const float *values, size_t n, double limit) {
  size_t above = 0;
  for (size_t i = 0; i < n; i++) {
    above += fabs((double)values[i]) > limit;
  }
  return (double)above / (double)n;
}

static void check_near(double value, double expected, double tolerance) {
  if (!(fabs(value - expected) <= tolerance)) {
    fail_msg("%.9g, expected %.9g +- %.3g", value, expected, tolerance);
  }
}

/* ------------------------------------------------------------------- tests */

static void any_part_is_what_the_whole_has_there(void **state) {
  enum { SHORT = 20000 };
  (void)state;
  for (int kind = 0; kind < LCOMM_SYNTHETIC_KINDS; kind++) {
    lcomm_source *source = open_kind((lcomm_synthetic_kind)kind, 5, SHORT);
    float *whole = make_values((lcomm_synthetic_kind)kind, 5, SHORT);
    float *part = test_malloc(SHORT * sizeof *part);
    for (uint64_t first = 0; first < SHORT; first += 997) {
      uint64_t n = first * 31 % (SHORT - first) + 1;
      lcomm_source_read(source, first, n, part);
      assert_memory_equal(part, whole + first, (size_t)n * sizeof *part);
    }
    test_free(part);
    test_free(whole);
    lcomm_source_close(source);
  }
}

/* What lies in front of a tensor does not change it. */
static void a_tensor_is_read_as_it_is_filled(void **state) {
  (void)state;
  lcomm_synthetic layers = {.kind = LCOMM_SYNTHETIC_LAYERS, .seed = 6, .count = 50000};
  lcomm_source *source = open_kind(layers.kind, layers.seed, layers.count);
  const lcomm_source_contents *contents = lcomm_source_contents_of(source);
  for (size_t i = 0; i < contents->tensor_count; i++) {
    const lcomm_source_tensor *tensor = contents->tensors + i;
    float read[100], filled[100];
    uint64_t n = tensor->count < 100 ? tensor->count : 100;
    lcomm_source_read(source, tensor->first, n, read);
    lcomm_synthetic_fill(&layers, i, tensor->count, 0, n, filled);
    assert_memory_equal(read, filled, (size_t)n * sizeof *read);
  }
  lcomm_source_close(source);
}

static void seeds_and_kinds_give_unrelated_values(void **state) {
  (void)state;
  float *a = make_values(LCOMM_SYNTHETIC_NORMAL, 1, COUNT);
  float *others[] = {make_values(LCOMM_SYNTHETIC_NORMAL, 2, COUNT),
                     make_values(LCOMM_SYNTHETIC_STUDENT, 1, COUNT), a + 1};
  for (int i = 0; i < 3; i++) {
    double product = 0;
    for (size_t k = 0; k + 1 < COUNT; k++) {
      product += (double)a[k] * (double)others[i][k];
    }
    check_near(product / (COUNT * sigma * sigma), 0.0, 5e-3); /* 5 standard errors */
  }
  test_free(others[0]);
  test_free(others[1]);
  test_free(a);
}

static void distributions_have_their_moments_and_tails(void **state) {
  static const struct {
    lcomm_synthetic_kind kind;
    double kurtosis, tolerance;          /* 0: infinite */
    double above_1, above_3, above_5_e6; /* shares of magnitudes above so many deviations */
  } cases[] = {
      {LCOMM_SYNTHETIC_NORMAL, 3.0, 0.03, 0.31731, 0.0026998, 0.57},
      {LCOMM_SYNTHETIC_LAPLACE, 6.0, 0.2, 0.24312, 0.014371, 849.7},
      /* P(|t| > x) of 3 degrees at sqrt(3) times 1, 3 and 5 */
      {LCOMM_SYNTHETIC_STUDENT, 0.0, 0.0, 0.18169, 0.0138, 3234.0},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    float *values = make_values(cases[i].kind, 7, COUNT);
    moments m = measure(values, COUNT);
    check_near(m.mean, 0.0, 5e-3 * sigma);
    if (cases[i].kurtosis > 0) {
      check_near(m.deviation, sigma, 5e-3 * sigma);
      check_near(m.kurtosis, cases[i].kurtosis, cases[i].tolerance);
    } else {
      assert_true(m.kurtosis > 20.0);
    }
    check_near(share_above(values, COUNT, sigma), cases[i].above_1, 2.5e-3);
    check_near(share_above(values, COUNT, 3 * sigma), cases[i].above_3, 6e-4);
    double expected = cases[i].above_5_e6 * 1e-6;
    check_near(share_above(values, COUNT, 5 * sigma), expected, 5 * sqrt(expected / COUNT));
    test_free(values);
  }
}

static void constant_is_constant_and_sparse_is_99_percent_zeros(void **state) {
  (void)state;
  float *constant = make_values(LCOMM_SYNTHETIC_CONSTANT, 3, 1000);
  for (int i = 0; i < 1000; i++) {
    assert_true(constant[i] == 1e-3f);
  }
  test_free(constant);
  float *sparse = make_values(LCOMM_SYNTHETIC_SPARSE, 3, COUNT);
  double share = share_above(sparse, COUNT, 0.0);
  check_near(share, 0.01, 5e-4);
  check_near(measure(sparse, COUNT).deviation, sigma * sqrt(share), 0.03 * sigma * sqrt(share));
  for (int i = 0; i < COUNT; i++) {
    assert_false(sparse[i] == 0.0f && signbit(sparse[i]));
  }
  test_free(sparse);
}

static void bits_hold_everything_a_float_can_be(void **state) {
  (void)state;
  size_t nans = 0, quiet = 0, infinite = 0, zeros = 0, negative = 0, subnormal = 0, largest = 0;
  float *values = make_values(LCOMM_SYNTHETIC_BITS, 11, COUNT);
  for (size_t i = 0; i < COUNT; i++) {
    uint32_t pattern = lcomm_f32_bits(values[i]);
    nans += isnan(values[i]);
    quiet += isnan(values[i]) && (pattern & 0x400000u) != 0;
    infinite += isinf(values[i]) != 0;
    zeros += values[i] == 0.0f;
    negative += pattern >> 31;
    subnormal += fpclassify(values[i]) == FP_SUBNORMAL;
    largest += fabsf(values[i]) == FLT_MAX;
  }
  double one = COUNT / 64.0 / 16.0; /* how often each special pattern is expected */
  check_near((double)infinite, 2 * one, one / 2);
  check_near((double)zeros, 2 * one, one / 2);
  check_near((double)largest, 2 * one, one / 2);
  check_near((double)nans, 4 * one + COUNT / 256.0, one);
  check_near((double)quiet, (double)nans / 2, one);
  check_near((double)subnormal, 2 * one + COUNT / 256.0, one);
  check_near((double)negative, COUNT / 2.0, COUNT / 200.0);
  test_free(values);
}

static void layers_have_many_sizes_and_scales(void **state) {
  (void)state;
  const uint64_t big = (uint64_t)1 << 32;
  lcomm_source *source = open_kind(LCOMM_SYNTHETIC_LAYERS, 1, big);
  const lcomm_source_contents *contents = lcomm_source_contents_of(source);
  assert_in_range(contents->tensor_count, 1000, 10000);
  double low = 1.0, high = 0.0;
  uint64_t next = 0;
  float values[1024];
  for (size_t i = 0; i < contents->tensor_count; i++) {
    const lcomm_source_tensor *tensor = contents->tensors + i;
    assert_int_equal(tensor->first, next);
    next += tensor->count;
    if (i + 1 < contents->tensor_count) {
      assert_in_range(tensor->count, 1024, 16 << 20);
    }
    uint64_t n = tensor->count < 1024 ? tensor->count : 1024;
    lcomm_source_read(source, tensor->first, n, values);
    double deviation = measure(values, (size_t)n).deviation;
    low = deviation < low ? deviation : low;
    high = deviation > high ? deviation : high;
  }
  assert_int_equal(next, big);
  assert_true(low < 1e-5 && low > 1e-7);
  assert_true(high > 3e-4 && high < 3e-2);
  assert_string_equal(contents->tensors[0].name, "layer-0");
  lcomm_source_close(source);
}

/* Inside a row all scales are known but one: what is left is the mixture. */
static void elements_of_a_row_are_the_mixture(void **state) {
  enum { ROWS = 512, LENGTH = 2048 };
  (void)state;
  lcomm_synthetic layers = {.kind = LCOMM_SYNTHETIC_LAYERS, .seed = 9, .count = COUNT};
  float *values = test_malloc(COUNT * sizeof *values);
  lcomm_synthetic_fill(&layers, 0, (uint64_t)LENGTH * LENGTH, 0, COUNT, values);
  double kurtosis = 0, logs = 0, squares = 0;
  for (size_t row = 0; row < ROWS; row++) {
    moments m = measure(values + row * LENGTH, LENGTH);
    kurtosis += m.kurtosis / ROWS;
    logs += log(m.deviation) / ROWS;
    squares += log(m.deviation) * log(m.deviation) / ROWS;
  }
  /* 3 * (0.9 + 0.09 * 81 + 0.01 * 1e4) / (0.9 + 0.09 * 9 + 0.01 * 100)^2 = 44.2; a sample of 2048
   * underestimates it. */
  check_near(kurtosis, 40.0, 5.0);
  /* Log-normal scales with 0.5, and the noise of the estimate. */
  check_near(sqrt(squares - logs * logs), 0.5, 0.06);
  test_free(values);
}

static void small_sources_have_layers_too(void **state) {
  (void)state;
  lcomm_source *source = open_kind(LCOMM_SYNTHETIC_LAYERS, 4, 100000);
  assert_true(lcomm_source_contents_of(source)->tensor_count >= 8);
  lcomm_source_close(source);
  source = open_kind(LCOMM_SYNTHETIC_LAYERS, 4, 1);
  assert_int_equal(lcomm_source_contents_of(source)->tensor_count, 1);
  lcomm_source_close(source);
}

static void kinds_are_found_by_their_names(void **state) {
  (void)state;
  lcomm_synthetic_kind found = LCOMM_SYNTHETIC_KINDS;
  for (int kind = 0; kind < LCOMM_SYNTHETIC_KINDS; kind++) {
    const char *name = lcomm_synthetic_name((lcomm_synthetic_kind)kind);
    assert_true(lcomm_synthetic_by_name(name, &found));
    assert_int_equal(found, kind);
    assert_in_range(strlen(lcomm_synthetic_about(found)), 1, 60);
  }
  assert_false(lcomm_synthetic_by_name("norma", &found));
  assert_false(lcomm_synthetic_by_name("", &found));
  lcomm_source *source = open_kind(LCOMM_SYNTHETIC_BITS, 4, 3);
  assert_string_equal(lcomm_source_name(source), "synthetic:bits");
  assert_string_equal(lcomm_source_contents_of(source)->tensors[0].name, "bits");
  lcomm_source_close(source);
}

static void impossible_counts_are_refused(void **state) {
  (void)state;
  static const uint64_t counts[] = {0, LCOMM_SYNTHETIC_COUNT_MAX + 1, UINT64_MAX};
  for (int i = 0; i < 3; i++) {
    char error[LCOMM_SOURCE_ERROR_MAX];
    lcomm_source *source = NULL;
    lcomm_synthetic synthetic = {.kind = LCOMM_SYNTHETIC_NORMAL, .count = counts[i]};
    assert_int_equal(lcomm_source_open_synthetic(&synthetic, &source, error), LCOMM_ERR_ARGUMENT);
    assert_null(source);
    assert_non_null(strstr(error, "normal: cannot have "));
  }
  lcomm_source_close(open_kind(LCOMM_SYNTHETIC_NORMAL, 0, LCOMM_SYNTHETIC_COUNT_MAX));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_part_is_what_the_whole_has_there),
    cmocka_unit_test(a_tensor_is_read_as_it_is_filled),
    cmocka_unit_test(seeds_and_kinds_give_unrelated_values),
    cmocka_unit_test(distributions_have_their_moments_and_tails),
    cmocka_unit_test(constant_is_constant_and_sparse_is_99_percent_zeros),
    cmocka_unit_test(bits_hold_everything_a_float_can_be),
    cmocka_unit_test(layers_have_many_sizes_and_scales),
    cmocka_unit_test(elements_of_a_row_are_the_mixture),
    cmocka_unit_test(small_sources_have_layers_too),
    cmocka_unit_test(kinds_are_found_by_their_names),
    cmocka_unit_test(impossible_counts_are_refused),
};
RUN_TESTS(tests)
