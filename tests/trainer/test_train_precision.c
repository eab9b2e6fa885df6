/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "trainer/train_precision.h"
#include "trainer/train_random.h"

/* What a number of 16 bits means, by its definition; NaN for what is none. */
static double value_of(precision_kind kind, unsigned code) {
  int mantissa_bits = kind == PRECISION_BF16 ? 7 : 10, exponent_bits = 15 - mantissa_bits;
  int bias = (1 << (exponent_bits - 1)) - 1, largest = (1 << exponent_bits) - 1;
  int exponent = (int)(code >> mantissa_bits) & largest;
  double mantissa = (double)(code & ((1u << mantissa_bits) - 1u)), sign = code >> 15 ? -1.0 : 1.0;
  if (exponent == largest) {
    return mantissa > 0.0 ? (double)NAN : sign * (double)INFINITY;
  }
  if (exponent == 0) {
    return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
  }
  return sign * ldexp(mantissa + ldexp(1.0, mantissa_bits), exponent - bias - mantissa_bits);
}

static float rounded(precision_kind kind, float value) {
  precision_round(kind, &value, 1);
  return value;
}

static void all_codes_are_what_they_mean_and_come_back(void **state) {
  (void)state;
  for (precision_kind kind = PRECISION_BF16; kind <= PRECISION_FP16; kind++) {
    for (unsigned i = 0; i < 65536; i++) {
      uint16_t code = (uint16_t)i, again;
      float value;
      precision_decode(kind, &code, 1.0f, &value, 1);
      double expected = value_of(kind, i);
      assert_true(isnan(expected) ? isnan(value) : (double)value == expected);
      precision_encode(kind, &value, 1.0f, &again, 1);
      assert_true(isnan(expected) || again == code);
      assert_true(isnan(expected) || rounded(kind, value) == value);
    }
  }
}

/* The two neighbours of a value: none is nearer than what it is rounded to, and of two as near it
 * is the even one. */
static void assert_nearest(precision_kind kind, float value) {
  float got = rounded(kind, value);
  uint16_t code;
  precision_encode(kind, &value, 1.0f, &code, 1);
  for (int by = -1; by <= 1; by += 2) {
    unsigned neighbour = (unsigned)(code + by) & 0xffffu;
    double other = value_of(kind, neighbour), away = fabs((double)got - (double)value);
    if ((code & 0x7fffu) == 0 || !isfinite(other) || !isfinite(got)) {
      continue;
    }
    double further = fabs(other - (double)value);
    assert_true(away < further || (away == further && code % 2 == 0));
  }
}

static void values_become_the_nearest_of_the_type(void **state) {
  (void)state;
  random_stream random = random_begin(3, 0);
  for (precision_kind kind = PRECISION_BF16; kind <= PRECISION_FP16; kind++) {
    for (int i = 0; i < 200000; i++) {
      int exponent = (int)random_below(&random, 45) - 28;
      assert_nearest(kind, ldexpf(random_between(&random, -1.0f, 1.0f), exponent));
    }
    for (int i = 0; i < 64; i++) { /* between two of them, and two steps of fp16 near zero */
      assert_nearest(kind, 1.0f + (float)i * 0x1p-12f);
      assert_nearest(kind, (float)i * 0x1p-25f);
    }
  }
}

static void what_is_too_large_becomes_infinite_and_nan_stays(void **state) {
  (void)state;
  assert_true(rounded(PRECISION_FP16, 65519.0f) == 65504.0f);
  assert_true(isinf(rounded(PRECISION_FP16, 65520.0f)));
  assert_true(rounded(PRECISION_FP16, -1e6f) == -INFINITY);
  assert_true(isinf(rounded(PRECISION_BF16, 3.4e38f)) &&
              isfinite(rounded(PRECISION_BF16, 3.3e38f)));
  for (precision_kind kind = PRECISION_BF16; kind <= PRECISION_FP16; kind++) {
    float nan = NAN, back;
    uint16_t code;
    assert_true(isnan(rounded(kind, nan)) && isinf(rounded(kind, INFINITY)));
    precision_encode(kind, &nan, 1.0f, &code, 1);
    precision_decode(kind, &code, 1.0f, &back, 1);
    assert_true(isnan(back));
  }
  assert_true(rounded(PRECISION_FP32, 1.0f + 0x1p-23f) == 1.0f + 0x1p-23f);
}

static void factors_multiply_on_the_way(void **state) {
  (void)state;
  const float small = 3e-9f;
  float back;
  uint16_t code;
  precision_encode(PRECISION_FP16, &small, 1.0f, &code, 1);
  assert_int_equal(code, 0);
  precision_encode(PRECISION_FP16, &small, 65536.0f, &code, 1);
  precision_decode(PRECISION_FP16, &code, 1.0f / 65536.0f, &back, 1);
  assert_true(fabsf(back - small) < 1e-3f * small);
}

static void names_are_found(void **state) {
  (void)state;
  for (precision_kind kind = PRECISION_FP32; kind < PRECISION_COUNT; kind++) {
    assert_int_equal(precision_find(precision_name(kind)), kind);
  }
  assert_int_equal(precision_find("fp8"), PRECISION_COUNT);
}

static void a_scale_is_halved_by_a_skipped_step_and_doubled_after_many_good_ones(void **state) {
  (void)state;
  loss_scale scale = loss_scale_begin(PRECISION_FP16);
  float first = scale.factor;
  for (int i = 0; i < LOSS_SCALE_PATIENCE - 1; i++) {
    loss_scale_step(&scale, false);
  }
  loss_scale_step(&scale, true);
  assert_true(scale.factor == first / 2.0f);
  for (int i = 0; i < LOSS_SCALE_PATIENCE; i++) {
    assert_true(scale.factor == first / 2.0f);
    loss_scale_step(&scale, false);
  }
  assert_true(scale.factor == first);
}

static void a_scale_ends_where_it_can_not_be_halved(void **state) {
  (void)state;
  loss_scale scale = loss_scale_begin(PRECISION_FP16);
  int steps = 0;
  while (!loss_scale_is_exhausted(&scale) && steps < 100) {
    loss_scale_step(&scale, true);
    steps++;
  }
  assert_int_equal(steps, 17);
}

static void types_with_the_range_of_float_need_none(void **state) {
  (void)state;
  for (precision_kind kind = PRECISION_FP32; kind <= PRECISION_BF16; kind++) {
    loss_scale scale = loss_scale_begin(kind);
    loss_scale_step(&scale, true);
    assert_true(scale.factor == 1.0f && !loss_scale_is_exhausted(&scale));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_codes_are_what_they_mean_and_come_back),
      cmocka_unit_test(values_become_the_nearest_of_the_type),
      cmocka_unit_test(what_is_too_large_becomes_infinite_and_nan_stays),
      cmocka_unit_test(factors_multiply_on_the_way),
      cmocka_unit_test(names_are_found),
      cmocka_unit_test(a_scale_is_halved_by_a_skipped_step_and_doubled_after_many_good_ones),
      cmocka_unit_test(a_scale_ends_where_it_can_not_be_halved),
      cmocka_unit_test(types_with_the_range_of_float_need_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
