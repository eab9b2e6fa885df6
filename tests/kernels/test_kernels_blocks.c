/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* int8 and fp8 blocks and the selection pass. */

#include "tests/kernels/kernel_samples.h"

#include <math.h>
#include <stdbool.h>

#include "kernels/kernels.h"
#include "tests/support/unit_tests.h"

static const lcomm_kernels *kernels(void) {
  return lcomm_kernels_best();
}

static double amax_of(const float *value, size_t n) {
  double amax = 0;
  for (size_t i = 0; i < n; i++) {
    amax = fmax(amax, fabs((double)value[i]));
  }
  return amax;
}

/* int8 */

static void int8_error_is_within_half_a_step(void **state) {
  (void)state;
  uint64_t random = 1;
  for (int exponent = -118; exponent < 128; exponent++) {
    float source[LCOMM_BLOCK], scale, value[LCOMM_BLOCK];
    int8_t code[LCOMM_BLOCK];
    for (int i = 0; i < LCOMM_BLOCK; i++) {
      float mantissa = (float)(sample_u64(&random) >> 40) / 16777216.0f - 0.5f;
      source[i] = ldexpf(mantissa, exponent);
    }
    source[5] = ldexpf(-0.75f, exponent);
    kernels()->f32_to_int8(source, LCOMM_BLOCK, code, &scale, LCOMM_BLOCK);
    kernels()->int8_to_f32(code, &scale, LCOMM_BLOCK, 1.0f, value, LCOMM_BLOCK);
    assert_true(scale == (float)amax_of(source, LCOMM_BLOCK) / 127.0f);
    assert_int_equal(code[5], -127);
    for (int i = 0; i < LCOMM_BLOCK; i++) {
      assert_true(fabs((double)value[i] - (double)source[i]) <= (double)scale * 0.50001);
    }
  }
}

static void int8_ties_go_to_even(void **state) {
  (void)state;
  /* amax 127: the inverse and the scale are exactly 1. */
  float source[] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -125.5f};
  const int8_t expected[] = {127, 0, 2, 2, 0, -2, -2, 126, -126};
  int8_t code[9];
  float scale;
  kernels()->f32_to_int8(source, LCOMM_BLOCK, code, &scale, 9);
  assert_true(scale == 1.0f);
  assert_memory_equal(code, expected, 9);
}

static void int8_sends_a_tiny_block_as_zeros(void **state) {
  (void)state;
  float source[LCOMM_BLOCK] = {1e-40f, -1.0e-36f, 0.0f, -0.0f}, scale = 1.0f;
  int8_t code[LCOMM_BLOCK];
  kernels()->f32_to_int8(source, LCOMM_BLOCK, code, &scale, LCOMM_BLOCK);
  assert_true(scale == 0.0f);
  for (int i = 0; i < LCOMM_BLOCK; i++) {
    assert_int_equal(code[i], 0);
  }
  source[7] = ldexpf(1.0f, -119); /* the first that is not tiny */
  kernels()->f32_to_int8(source, LCOMM_BLOCK, code, &scale, LCOMM_BLOCK);
  assert_true(scale >= ldexpf(1.0f, -126));
  assert_int_equal(code[7], 127);
}

static void int8_block_with_nan_or_inf_decodes_to_nothing_finite(void **state) {
  (void)state;
  const float bad[] = {SAMPLE_NAN, SAMPLE_INFINITY, -SAMPLE_INFINITY};
  for (int b = 0; b < 3; b++) {
    for (size_t n = 129; n <= 256; n += 127) {
      float source[256], scale[2], value[256];
      int8_t code[256];
      for (int i = 0; i < 256; i++) {
        source[i] = (float)i;
      }
      source[n - 1] = bad[b];
      kernels()->f32_to_int8(source, LCOMM_BLOCK, code, scale, n);
      kernels()->int8_to_f32(code, scale, LCOMM_BLOCK, 0.5f, value, n);
      for (size_t i = 0; i < 128; i++) {
        assert_true(isfinite(value[i]));
      }
      for (size_t i = 128; i < n; i++) {
        assert_false(isfinite(value[i]));
      }
      if (b > 0) {
        assert_true(value[n - 1] == bad[b] && (n < 130 || isnan(value[130])));
      }
    }
  }
}

/* fp8, against the list of all numbers of the format */

typedef struct fp8_format {
  lcomm_fp8 id;
  int mantissa_bits, bias, finite_codes; /* finite codes of one sign */
} fp8_format;

static const fp8_format formats[] = {{LCOMM_E4M3, 3, 7, 0x7f}, {LCOMM_E5M2, 2, 15, 0x7c}};

static double fp8_number(const fp8_format *f, int code) {
  int exponent = code >> f->mantissa_bits, mantissa = code & ((1 << f->mantissa_bits) - 1);
  if (exponent == 0) {
    return ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
  }
  return ldexp(mantissa + (1 << f->mantissa_bits), exponent - f->bias - f->mantissa_bits);
}

/* The code whose number is nearest, ties to the even code. */
static int fp8_nearest(const fp8_format *f, double value) {
  int best = 0;
  for (int code = 1; code < f->finite_codes; code++) {
    double error = fabs(fp8_number(f, code) - value), least = fabs(fp8_number(f, best) - value);
    if (error < least || (error == least && code % 2 == 0)) {
      best = code;
    }
  }
  return best;
}

static void every_fp8_code_decodes_as_specified(void **state) {
  (void)state;
  for (size_t f = 0; f < 2; f++) {
    for (int c = 0; c < 256; c++) {
      uint8_t code = (uint8_t)c, scale = LCOMM_E8M0_ONE + 1;
      float value;
      kernels()->fp8_to_f32[formats[f].id](&code, &scale, LCOMM_BLOCK, 0.5f, &value, 1);
      double expected = fp8_number(&formats[f], c & 0x7f);
      if ((c & 0x7f) >= formats[f].finite_codes) {
        assert_false(isfinite(value));
        continue;
      }
      assert_true((double)value == (c & 0x80 ? -expected : expected));
      assert_int_equal(signbit(value) != 0, c >> 7);
    }
  }
  assert_true(lcomm_e5m2_to_f32(0xfc) == -SAMPLE_INFINITY);
  assert_true(isnan(lcomm_e5m2_to_f32(0x7d)) && isnan(lcomm_e4m3_to_f32(0xff)));
}

static void fp8_encodes_to_the_nearest_number(void **state) {
  (void)state;
  uint64_t random = 2;
  for (size_t f = 0; f < 2; f++) {
    const fp8_format *format = &formats[f];
    double most = fp8_number(format, format->finite_codes - 1);
    float source[LCOMM_BLOCK];
    uint8_t code[LCOMM_BLOCK], scale;
    for (int round = 0; round < 60; round++) {
      for (int i = 0; i < LCOMM_BLOCK; i++) {
        int low = (int)(sample_u64(&random) % (unsigned)(format->finite_codes - 1));
        double middle = (fp8_number(format, low) + fp8_number(format, low + 1)) / 2;
        uint32_t bits = lcomm_f32_bits((float)middle) + (uint32_t)(sample_u64(&random) % 3) - 1;
        source[i] = lcomm_f32_from_bits(bits | (sample_u64(&random) & 1 ? 0x80000000u : 0));
      }
      source[0] = (float)most;
      kernels()->f32_to_fp8[format->id](source, LCOMM_BLOCK, code, &scale, LCOMM_BLOCK);
      assert_int_equal(scale, LCOMM_E8M0_ONE);
      for (int i = 0; i < LCOMM_BLOCK; i++) {
        assert_int_equal(code[i] & 0x7f, fp8_nearest(format, fabs((double)source[i])));
        assert_int_equal(code[i] >> 7, signbit(source[i]) != 0);
      }
    }
  }
}

static void fp8_scale_is_the_smallest_that_fits(void **state) {
  (void)state;
  for (size_t f = 0; f < 2; f++) {
    double most = fp8_number(&formats[f], formats[f].finite_codes - 1);
    for (uint32_t bits = 1; bits < LCOMM_F32_INF_BITS;
         bits += bits < 0x01000000u ? 65521 : 1048573) {
      float amax = lcomm_f32_from_bits(bits);
      uint8_t code, scale;
      kernels()->f32_to_fp8[formats[f].id](&amax, LCOMM_BLOCK, &code, &scale, 1);
      assert_true((double)amax <= ldexp(most, scale - 127));
      if (scale > 0) {
        assert_true((double)amax > ldexp(most, scale - 128));
      }
    }
    /* Exactly the largest number still fits, the next float32 does not. */
    float edge = (float)most, above = lcomm_f32_from_bits(lcomm_f32_bits(edge) + 1);
    uint8_t code, scale;
    kernels()->f32_to_fp8[formats[f].id](&edge, LCOMM_BLOCK, &code, &scale, 1);
    assert_int_equal(scale, 127);
    kernels()->f32_to_fp8[formats[f].id](&above, LCOMM_BLOCK, &code, &scale, 1);
    assert_int_equal(scale, 128);
  }
}

static void fp8_zeros_keep_their_sign_and_get_scale_one(void **state) {
  (void)state;
  float source[] = {0.0f, -0.0f, 0.0f}, value[3];
  uint8_t code[3], scale;
  for (int f = 0; f < LCOMM_FP8_COUNT; f++) {
    kernels()->f32_to_fp8[f](source, LCOMM_BLOCK, code, &scale, 3);
    assert_int_equal(scale, LCOMM_E8M0_ONE);
    kernels()->fp8_to_f32[f](code, &scale, LCOMM_BLOCK, 1.0f, value, 3);
    assert_memory_equal(value, source, sizeof source);
  }
}

static void fp8_block_with_nan_or_inf_decodes_to_nan(void **state) {
  (void)state;
  const float bad[] = {SAMPLE_NAN, SAMPLE_INFINITY, -SAMPLE_INFINITY};
  for (int f = 0; f < LCOMM_FP8_COUNT; f++) {
    for (int b = 0; b < 3; b++) {
      float source[200], value[200];
      uint8_t code[200], scale[2];
      for (int i = 0; i < 200; i++) {
        source[i] = (float)i;
      }
      source[130] = bad[b];
      kernels()->f32_to_fp8[f](source, LCOMM_BLOCK, code, scale, 200);
      assert_int_equal(scale[1], LCOMM_E8M0_NAN);
      kernels()->fp8_to_f32[f](code, scale, LCOMM_BLOCK, 1.0f, value, 200);
      for (int i = 0; i < 200; i++) {
        assert_int_equal(isnan(value[i]) != 0, i >= 128);
      }
    }
  }
}

static void fp8_of_subnormals_is_within_a_step(void **state) {
  (void)state;
  float source[] = {1e-45f, 5e-42f, -1e-39f, 1e-40f}, value[4];
  uint8_t code[4], scale;
  for (int f = 0; f < LCOMM_FP8_COUNT; f++) {
    kernels()->f32_to_fp8[f](source, LCOMM_BLOCK, code, &scale, 4);
    kernels()->fp8_to_f32[f](code, &scale, LCOMM_BLOCK, 1.0f, value, 4);
    assert_int_equal(scale, 0);
    for (int i = 0; i < 4; i++) {
      assert_true(fabs((double)value[i] - (double)source[i]) <=
                  fabs((double)source[i]) / 8 + ldexp(1, -136));
    }
  }
}

/* Any bytes may come from a peer: decoding them is defined. */
static void add_is_decode_then_add_for_any_bytes(void **state) {
  (void)state;
  uint64_t random = 9;
  enum { N = 128 * 3 + 17 };
  float value[N], sum[N], scale[4];
  uint8_t code[N], byte[4];
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < N; i++) {
      code[i] = (uint8_t)(sample_u64(&random) >> 30);
    }
    for (int b = 0; b < 4; b++) {
      scale[b] = round < 100 ? sample_normal(&random) : sample_bits(&random);
      byte[b] = (uint8_t)(round < 100 ? 120 + b : (int)(sample_u64(&random) & 0xff));
    }
    for (int kind = 0; kind < 3; kind++) {
      for (int i = 0; i < N; i++) {
        sum[i] = 0.5f;
      }
      if (kind == 2) {
        kernels()->int8_to_f32((const int8_t *)code, scale, LCOMM_BLOCK, 0.7f, value, N);
        kernels()->int8_add((const int8_t *)code, scale, LCOMM_BLOCK, 0.7f, sum, N);
      } else {
        kernels()->fp8_to_f32[kind](code, byte, LCOMM_BLOCK, 0.7f, value, N);
        kernels()->fp8_add[kind](code, byte, LCOMM_BLOCK, 0.7f, sum, N);
      }
      for (int i = 0; i < N; i++) {
        float expected = 0.5f + value[i];
        assert_true(sum[i] == expected || (isnan(sum[i]) && isnan(expected)));
      }
    }
  }
}

static void short_last_block_equals_a_padded_one(void **state) {
  (void)state;
  uint64_t random = 4;
  for (size_t n = 1; n <= LCOMM_BLOCK; n++) {
    float source[LCOMM_BLOCK] = {0}, scale[2] = {0};
    uint8_t code[2][LCOMM_BLOCK + 1], byte[2];
    for (size_t i = 0; i < n; i++) {
      source[i] = sample_normal(&random);
    }
    memset(code, 0xab, sizeof code);
    kernels()->f32_to_int8(source, LCOMM_BLOCK, (int8_t *)code[0], &scale[0], n);
    kernels()->f32_to_int8(source, LCOMM_BLOCK, (int8_t *)code[1], &scale[1], LCOMM_BLOCK);
    assert_true(scale[0] == scale[1]);
    assert_memory_equal(code[0], code[1], n);
    assert_int_equal(code[0][n], 0xab);
    for (int f = 0; f < LCOMM_FP8_COUNT; f++) {
      memset(code, 0xab, sizeof code);
      kernels()->f32_to_fp8[f](source, LCOMM_BLOCK, code[0], &byte[0], n);
      kernels()->f32_to_fp8[f](source, LCOMM_BLOCK, code[1], &byte[1], LCOMM_BLOCK);
      assert_int_equal(byte[0], byte[1]);
      assert_memory_equal(code[0], code[1], n);
      assert_int_equal(code[0][n], 0xab);
    }
  }
}

/* The selection pass */

static void check_select(const float *source, const float *before, size_t n, uint32_t threshold,
                         size_t capacity) {
  float *residual = sample_memory(n * sizeof *residual);
  uint32_t *index = sample_memory((capacity + 1) * sizeof *index);
  index[capacity] = 12345;
  size_t found = kernels()->ef.accumulate_select(source, before, before != NULL ? residual : NULL,
                                                 n, threshold, 1000, index, capacity);
  size_t expected = 0;
  for (size_t i = 0; i < n; i++) {
    float acc = before ? source[i] + before[i] : source[i];
    if (before) {
      assert_memory_equal(&acc, &residual[i], sizeof acc);
    }
    if ((lcomm_f32_bits(acc) & 0x7fffffffu) < threshold) {
      continue;
    }
    if (expected < capacity) {
      assert_int_equal(index[expected], 1000 + i);
    }
    expected++;
  }
  assert_int_equal(found, expected);
  assert_int_equal(index[capacity], 12345);
  free(residual);
  free(index);
}

static void select_finds_what_reaches_the_threshold(void **state) {
  (void)state;
  uint64_t random = 6;
  const uint32_t thresholds[] = {0,           1,           0x3f800000u, 0x40000000u, 0x7f800000u,
                                 0x7f800001u, 0x7fffffffu, 0x80000000u, 0xffffffffu};
  float source[700], residual[700];
  for (size_t i = 0; i < 700; i++) {
    source[i] = sample_normal(&random);
    residual[i] = i % 7 == 0 ? 0.0f : sample_normal(&random);
  }
  source[3] = 1.0f, residual[3] = 0.0f; /* exactly at a threshold */
  source[130] = SAMPLE_NAN;
  source[131] = -SAMPLE_INFINITY;
  source[132] = lcomm_f32_from_bits(0xffffffffu);
  source[699] = -0.0f, residual[699] = -0.0f;
  for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++) {
    for (size_t n = 0; n <= 700; n += n < 20 ? 1 : 97) {
      const size_t capacities[] = {0, 1, 5, 50, 700};
      for (size_t c = 0; c < 5; c++) {
        check_select(source, NULL, n, thresholds[t], capacities[c]);
        check_select(source, residual, n, thresholds[t], capacities[c]);
      }
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(int8_error_is_within_half_a_step),
    cmocka_unit_test(int8_ties_go_to_even),
    cmocka_unit_test(int8_sends_a_tiny_block_as_zeros),
    cmocka_unit_test(int8_block_with_nan_or_inf_decodes_to_nothing_finite),
    cmocka_unit_test(every_fp8_code_decodes_as_specified),
    cmocka_unit_test(fp8_encodes_to_the_nearest_number),
    cmocka_unit_test(fp8_scale_is_the_smallest_that_fits),
    cmocka_unit_test(fp8_zeros_keep_their_sign_and_get_scale_one),
    cmocka_unit_test(fp8_block_with_nan_or_inf_decodes_to_nan),
    cmocka_unit_test(fp8_of_subnormals_is_within_a_step),
    cmocka_unit_test(add_is_decode_then_add_for_any_bytes),
    cmocka_unit_test(short_last_block_equals_a_padded_one),
    cmocka_unit_test(select_finds_what_reaches_the_threshold),
};
RUN_TESTS(tests)
