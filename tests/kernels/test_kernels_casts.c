/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The 16-bit casts and the float32 arithmetic, against a slow reference in
 * double precision that knows the formats only by their parameters. */

#include "tests/kernels/kernel_samples.h"

#include <math.h>
#include <stdbool.h>

#include "kernels/kernels.h"
#include "tests/support/unit_tests.h"

/* A format of 1 sign bit, exponent bits and mantissa bits, with Inf and NaN. */
typedef struct format {
  int exponent_bits, mantissa_bits;
} format;

static const format f16 = {5, 10}, bf16 = {8, 7};

static double reference_decode(format f, unsigned code) {
  int bias = (1 << (f.exponent_bits - 1)) - 1, top = (1 << f.exponent_bits) - 1;
  int exponent = (int)(code >> f.mantissa_bits) & top;
  int mantissa = (int)(code & ((1u << f.mantissa_bits) - 1));
  double sign = code >> (f.exponent_bits + f.mantissa_bits) ? -1.0 : 1.0;
  if (exponent == top) {
    return mantissa ? NAN : sign * INFINITY;
  }
  if (exponent == 0) {
    return sign * ldexp(mantissa, 1 - bias - f.mantissa_bits);
  }
  return sign * ldexp(mantissa + (1 << f.mantissa_bits), exponent - bias - f.mantissa_bits);
}

/* Nearest even, by scaling so that one step of the format is 1. */
static unsigned reference_encode(format f, double value) {
  int bias = (1 << (f.exponent_bits - 1)) - 1, top = (1 << f.exponent_bits) - 1;
  unsigned sign = signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  unsigned infinity = (unsigned)top << f.mantissa_bits;
  if (isinf(value)) {
    return sign | infinity;
  }
  if (value == 0.0) {
    return sign;
  }
  int exponent;
  frexp(value, &exponent);
  exponent -= 1;
  if (exponent < 1 - bias) {
    exponent = 1 - bias;
  }
  double steps = nearbyint(ldexp(fabs(value), f.mantissa_bits - exponent));
  unsigned code = ((unsigned)(exponent + bias - 1) << f.mantissa_bits) + (unsigned)steps;
  return sign | (code < infinity ? code : infinity);
}

static const lcomm_kernels *kernels(void) {
  return lcomm_kernels_best();
}

typedef void encode_kernel(const float *, uint16_t *, size_t);
typedef void decode_kernel(const uint16_t *, float, float *, size_t);

static void encode_f16(const float *source, uint16_t *code, size_t n) {
  kernels()->half.f32_to_f16(source, 1.0f, code, n);
}

static void check_all_codes(format f, encode_kernel *encode, decode_kernel *decode) {
  uint16_t *code = sample_memory(65536 * sizeof *code),
           *again = sample_memory(65536 * sizeof *again);
  float *value = sample_memory(65536 * sizeof *value);
  for (unsigned i = 0; i < 65536; i++) {
    code[i] = (uint16_t)i;
  }
  decode(code, 1.0f, value, 65536);
  encode(value, again, 65536);
  for (unsigned i = 0; i < 65536; i++) {
    double expected = reference_decode(f, i);
    if (isnan(expected)) {
      assert_true(isnan(value[i]));
      assert_true(isnan(reference_decode(f, again[i])));
      continue;
    }
    assert_true((double)value[i] == expected);
    assert_int_equal(again[i], i);
  }
  free(code);
  free(again);
  free(value);
}

static void every_f16_code_survives_a_round_trip(void **state) {
  (void)state;
  check_all_codes(f16, encode_f16, kernels()->half.f16_to_f32);
}

static void every_bf16_code_survives_a_round_trip(void **state) {
  (void)state;
  check_all_codes(bf16, kernels()->half.f32_to_bf16, kernels()->half.bf16_to_f32);
}

static void check_value(format f, encode_kernel *encode, float value) {
  uint16_t code;
  encode(&value, &code, 1);
  if (isnan(value)) {
    assert_true(isnan(reference_decode(f, code)));
  } else {
    assert_int_equal(code, reference_encode(f, (double)value));
  }
}

/* Between each pair of neighbours: the middle, and one float32 to each side. */
static void check_ties(format f, encode_kernel *encode) {
  unsigned infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  for (unsigned i = 0; i + 1 < infinity; i++) {
    float middle = (float)((reference_decode(f, i) + reference_decode(f, i + 1)) / 2);
    uint32_t bits = lcomm_f32_bits(middle);
    for (uint32_t near = bits > 0 ? bits - 1 : bits; near <= bits + 1; near++) {
      check_value(f, encode, lcomm_f32_from_bits(near));
      check_value(f, encode, lcomm_f32_from_bits(near | 0x80000000u));
    }
  }
}

static void f16_rounds_to_nearest_even(void **state) {
  (void)state;
  check_ties(f16, encode_f16);
}

static void bf16_rounds_to_nearest_even(void **state) {
  (void)state;
  check_ties(bf16, kernels()->half.f32_to_bf16);
}

static void casts_agree_with_the_reference_for_any_bits(void **state) {
  (void)state;
  uint64_t random = 1;
  for (int i = 0; i < 200000; i++) {
    float value = sample_bits(&random);
    check_value(f16, encode_f16, value);
    check_value(bf16, kernels()->half.f32_to_bf16, value);
  }
}

static void the_border_of_infinity_is_where_the_formats_say(void **state) {
  (void)state;
  const float values[] = {65504.0f,      65519.996f,    65520.0f,
                          3.3895314e38f, 3.3961775e38f, 3.4028235e38f};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    check_value(f16, encode_f16, values[i]);
    check_value(bf16, kernels()->half.f32_to_bf16, values[i]);
  }
  assert_int_equal(lcomm_f32_to_f16(65519.996f), 0x7bff);
  assert_int_equal(lcomm_f32_to_f16(65520.0f), 0x7c00);
}

static void nan_keeps_sign_and_becomes_quiet(void **state) {
  (void)state;
  const uint32_t patterns[] = {0x7f800001u, 0xff800001u, 0x7fbfffffu, 0xffffffffu, 0x7fc00000u};
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    float value = lcomm_f32_from_bits(patterns[i]);
    uint16_t half, brain;
    kernels()->half.f32_to_f16(&value, 1.0f, &half, 1);
    kernels()->half.f32_to_bf16(&value, &brain, 1);
    assert_int_equal(half & 0x7e00, 0x7e00);
    assert_int_equal(brain & 0x7fc0, 0x7fc0);
    assert_int_equal(half >> 15, patterns[i] >> 31);
    assert_int_equal(brain >> 15, patterns[i] >> 31);
  }
}

static void finite_bf16_stops_at_the_largest_finite_value(void **state) {
  (void)state;
  assert_int_equal(lcomm_f32_to_bf16_finite(3.4028235e38f), 0x7f7f);
  assert_int_equal(lcomm_f32_to_bf16_finite(-3.4028235e38f), 0xff7f);
  assert_int_equal(lcomm_f32_to_bf16_finite(SAMPLE_INFINITY), 0x7f80);
  assert_int_equal(lcomm_f32_to_bf16_finite(1.0f), 0x3f80);
  assert_int_equal(lcomm_f32_to_bf16_finite(SAMPLE_NAN) & 0x7fc0, 0x7fc0);
}

/* Vectorised loops have a body and a rest: every length, odd alignments, and
 * nothing written past the end. */
static void every_length_gives_the_same_elements(void **state) {
  (void)state;
  uint64_t random = 7;
  enum { MOST = 300 };
  float source[MOST + 1], value[MOST + 2], sum[MOST + 2];
  uint16_t code[MOST + 2];
  for (size_t i = 0; i <= MOST; i++) {
    source[i] = sample_normal(&random);
  }
  for (size_t n = 0; n <= MOST; n++) {
    memset(code, 0xab, sizeof code);
    kernels()->half.f32_to_f16(source + 1, 1.0f, code + 1, n);
    for (size_t i = 0; i < n; i++) {
      assert_int_equal(code[i + 1], lcomm_f32_to_f16(source[i + 1]));
    }
    assert_int_equal(code[n + 1], 0xabab);
    kernels()->half.f32_to_bf16(source + 1, code + 1, n);
    assert_int_equal(code[n + 1], 0xabab);
    for (size_t i = 0; i < n + 2; i++) {
      value[i] = sum[i] = 5.0f;
    }
    kernels()->half.bf16_to_f32(code + 1, 0.75f, value + 1, n);
    kernels()->half.bf16_add(code + 1, 0.75f, sum + 1, n);
    for (size_t i = 0; i < n; i++) {
      assert_true(value[i + 1] == 0.75f * lcomm_bf16_to_f32(lcomm_f32_to_bf16(source[i + 1])));
      assert_true(sum[i + 1] == 5.0f + value[i + 1]);
    }
    assert_true(value[n + 1] == 5.0f && sum[n + 1] == 5.0f && sum[0] == 5.0f);
  }
}

static void f16_add_is_decode_then_add(void **state) {
  (void)state;
  uint16_t code[500];
  float value[500], sum[500];
  uint64_t random = 3;
  for (int i = 0; i < 500; i++) {
    code[i] = (uint16_t)(sample_u64(&random) & 0xfbff); /* finite or large */
    code[i] = (code[i] & 0x7c00) == 0x7c00 ? 0 : code[i];
    sum[i] = 1.0f;
  }
  kernels()->half.f16_to_f32(code, 0.3f, value, 500);
  kernels()->half.f16_add(code, 0.3f, sum, 500);
  for (int i = 0; i < 500; i++) {
    assert_true(sum[i] == 1.0f + value[i]);
  }
}

static void sum_is_in_order_and_may_be_in_place(void **state) {
  (void)state;
  enum { N = 1500 };
  static float a[4][N], expected[N];
  for (size_t place = 0; place < 4; place++) {
    for (size_t count = 1; count <= 4; count++) {
      uint64_t random = 11;
      for (size_t s = 0; s < 4; s++) {
        for (size_t i = 0; i < N; i++) {
          a[s][i] = sample_normal(&random) * (s == 1 ? 1e6f : 1.0f);
        }
      }
      const float *sources[4] = {a[0], a[1], a[2], a[3]};
      for (size_t i = 0; i < N; i++) {
        expected[i] = a[0][i];
        for (size_t s = 1; s < count; s++) {
          expected[i] += a[s][i];
        }
      }
      kernels()->f32_sum(sources, count, a[place], N);
      assert_memory_equal(a[place], expected, sizeof expected);
    }
  }
}

static void scale_and_add_round_twice(void **state) {
  (void)state;
  enum { N = 1001 };
  static float source[N], scaled[N], sum[N], in_place[N];
  uint64_t random = 5;
  for (size_t i = 0; i < N; i++) {
    source[i] = in_place[i] = sample_normal(&random);
    sum[i] = 1.0f;
  }
  kernels()->f32_scale(source, 0.1f, scaled, N);
  kernels()->f32_scale(in_place, 0.1f, in_place, N);
  kernels()->f32_add(source, 0.1f, sum, N);
  for (size_t i = 0; i < N; i++) {
    volatile float product = 0.1f * source[i];
    assert_true(scaled[i] == product && in_place[i] == product);
    assert_true(sum[i] == 1.0f + product);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_f16_code_survives_a_round_trip),
    cmocka_unit_test(every_bf16_code_survives_a_round_trip),
    cmocka_unit_test(f16_rounds_to_nearest_even),
    cmocka_unit_test(bf16_rounds_to_nearest_even),
    cmocka_unit_test(casts_agree_with_the_reference_for_any_bits),
    cmocka_unit_test(the_border_of_infinity_is_where_the_formats_say),
    cmocka_unit_test(nan_keeps_sign_and_becomes_quiet),
    cmocka_unit_test(finite_bf16_stops_at_the_largest_finite_value),
    cmocka_unit_test(every_length_gives_the_same_elements),
    cmocka_unit_test(f16_add_is_decode_then_add),
    cmocka_unit_test(sum_is_in_order_and_may_be_in_place),
    cmocka_unit_test(scale_and_add_round_twice),
};
RUN_TESTS(tests)
