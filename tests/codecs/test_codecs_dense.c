/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The registry, and the promises every dense codec makes. */

#include "tests/kernels/kernel_samples.h"

#include <math.h>
#include <stdbool.h>

#include "codecs/codec.h"
#include "tests/codecs/formats.h"
#include "tests/support/unit_tests.h"

static const lcomm_kernels *kernels(void) {
  return lcomm_kernels_best();
}

enum { SEED = 77 };

static uint8_t *encode_all(const lcomm_format *format, const float *source, uint64_t count) {
  uint8_t *payload = sample_memory(lcomm_payload_size(format, count));
  lcomm_encode(format, kernels(), source, lcomm_range_whole(count), SEED, payload);
  return payload;
}

static void decode_all(const lcomm_format *format, const uint8_t *payload, uint64_t count,
                       float *value) {
  lcomm_decode(format, kernels(), payload, lcomm_range_whole(count), 1.0f, value);
}

static float *normal_values(uint64_t count, uint64_t seed, float scale) {
  float *value = sample_memory((size_t)count * sizeof *value);
  for (uint64_t i = 0; i < count; i++) {
    value[i] = scale * sample_normal(&seed);
  }
  return value;
}

static const uint64_t counts[] = {0, 1, 2, 127, 128, 129, 255, 256, 257, 1000, 4096, 10001};
enum { COUNTS = sizeof counts / sizeof *counts };

/* Registry */

static void codecs_are_listed_in_wire_order_and_found(void **state) {
  (void)state;
  static const char *const names[] = {"none", "fp16", "bf16", "fp8e4m3", "fp8e5m2",
                                      "int8", "topk", "int4", "sign",    "int2"};
  for (unsigned id = 0; id < 10; id++) {
    const lcomm_codec *codec = lcomm_codec_list[id];
    assert_int_equal(codec->id, id);
    assert_string_equal(codec->name, names[id]);
    assert_non_null(codec->summary);
    lcomm_format format = lcomm_format_of(codec);
    assert_true(lcomm_format_bits(&format) > 0);
    assert_true(lcomm_format_equal(&format, &format));
    assert_ptr_equal(lcomm_codec_by_id(id), codec);
    assert_ptr_equal(lcomm_codec_by_name(names[id], strlen(names[id])), codec);
  }
  assert_null(lcomm_codec_list[10]);
  assert_null(lcomm_codec_by_id(10));
  assert_null(lcomm_codec_by_id(0xffffffffu));
  assert_null(lcomm_codec_by_name("int", 3));
  assert_null(lcomm_codec_by_name("int88", 5));
  assert_null(lcomm_codec_by_name("", 0));
  assert_ptr_equal(lcomm_codec_by_name("topk:0.01", 4), &lcomm_codec_topk);
  assert_null(lcomm_codec_topk.encode);
}

static void exact_codecs_carry_their_dtype(void **state) {
  (void)state;
  assert_ptr_equal(lcomm_format_exact(LCOMM_FLOAT32).codec, &lcomm_codec_none);
  assert_ptr_equal(lcomm_format_exact(LCOMM_FLOAT16).codec, &lcomm_codec_fp16);
  assert_ptr_equal(lcomm_format_exact(LCOMM_BFLOAT16).codec, &lcomm_codec_bf16);
  assert_int_equal(lcomm_format_exact(LCOMM_FLOAT16).variant, LCOMM_VARIANT_PLAIN);
}

/* Sizes */

static size_t size_of(const lcomm_codec *codec, uint16_t block, uint8_t variant, size_t count) {
  lcomm_format format = lcomm_format_of(codec);
  format.block = block > 0 ? block : format.block;
  format.variant = variant;
  return lcomm_payload_size(&format, count);
}

static void payload_sizes_are_those_of_the_format(void **state) {
  (void)state;
  for (int i = 0; i < COUNTS; i++) {
    size_t count = (size_t)counts[i], blocks = (count + 127) / 128, small = (count + 31) / 32;
    assert_int_equal(size_of(&lcomm_codec_none, 0, 0, count), 4 * count);
    assert_int_equal(size_of(&lcomm_codec_fp16, 0, 0, count), 2 * count);
    assert_int_equal(size_of(&lcomm_codec_fp16, 0, LCOMM_FP16_FIXED, count),
                     count > 0 ? 8 + 2 * count : 0);
    assert_int_equal(size_of(&lcomm_codec_fp16, 0, LCOMM_FP16_BLOCK, count),
                     (blocks + 7) / 8 * 8 + 2 * count);
    assert_int_equal(size_of(&lcomm_codec_bf16, 0, 0, count), 2 * count);
    assert_int_equal(size_of(&lcomm_codec_int8, 0, 0, count), (4 * blocks + 7) / 8 * 8 + count);
    assert_int_equal(size_of(&lcomm_codec_int8, 32, 0, count), (4 * small + 7) / 8 * 8 + count);
    assert_int_equal(size_of(&lcomm_codec_int4, 0, 0, count),
                     (4 * small + 7) / 8 * 8 + (count + 1) / 2);
    assert_int_equal(size_of(&lcomm_codec_int4, 128, 0, count),
                     (4 * blocks + 7) / 8 * 8 + (count + 1) / 2);
    assert_int_equal(size_of(&lcomm_codec_sign, 0, 0, count),
                     (blocks + 7) / 8 * 8 + (count + 7) / 8);
    assert_int_equal(size_of(&lcomm_codec_int2, 32, 0, count),
                     (small + 7) / 8 * 8 + (count + 3) / 4);
    assert_int_equal(size_of(&lcomm_codec_fp8e4m3, 0, 0, count), (blocks + 7) / 8 * 8 + count);
    assert_int_equal(size_of(&lcomm_codec_fp8e5m2, 32, 0, count), (small + 7) / 8 * 8 + count);
  }
}

/* Eight bytes of scales, then codes, of which the first three and the last are looked at. */
static void expect_payload(const lcomm_codec *codec, const float *source, uint64_t count,
                           const uint8_t scales[8], const uint8_t codes[3], uint8_t last) {
  lcomm_format format = lcomm_format_of(codec);
  uint8_t *payload = encode_all(&format, source, count);
  assert_memory_equal(payload, scales, 8);
  assert_memory_equal(payload + 8, codes, 3);
  assert_int_equal(payload[lcomm_payload_size(&format, count) - 1], last);
  free(payload);
}

static void int8_payload_has_the_bytes_the_format_says(void **state) {
  (void)state;
  float source[129] = {127.0f, -3.0f, [128] = 254.0f};
  const uint8_t scales[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, codes[] = {127, 0xfd, 0};
  expect_payload(&lcomm_codec_int8, source, 129, scales, codes, 127);
}

static void fp8_payload_has_the_bytes_the_format_says(void **state) {
  (void)state;
  float source[129] = {448.0f, -1.0f, [128] = 896.0f};
  const uint8_t scales[] = {127, 128, 0, 0, 0, 0, 0, 0}, codes[] = {0x7e, 0xb8, 0};
  expect_payload(&lcomm_codec_fp8e4m3, source, 129, scales, codes, 0x7e);
}

static void sign_payload_has_the_bytes_the_format_says(void **state) {
  (void)state;
  float source[129];
  for (int i = 0; i < 128; i++) { /* root mean square 1 */
    source[i] = i % 3 == 1 ? -1.0f : 1.0f;
  }
  source[128] = -4.0f;
  const uint8_t scales[] = {127, 129, 0, 0, 0, 0, 0, 0}, codes[] = {0x92, 0x24, 0x49};
  expect_payload(&lcomm_codec_sign, source, 129, scales, codes, 1);
}

static void int2_payload_has_the_bytes_the_format_says(void **state) {
  (void)state;
  float source[129] = {5.0f, -5.0f, 2.5f, -2.5f, 2.75f, -0.5f, -0.0f, [128] = -10.0f};
  const uint8_t scales[] = {127, 128, 0, 0, 0, 0, 0, 0}, codes[] = {0x4e, 0x16, 0};
  expect_payload(&lcomm_codec_int2, source, 129, scales, codes, 3);
}

static void lowbit_blocks_of_zeros_are_sent_as_zeros(void **state) {
  (void)state;
  const lcomm_codec *const codecs[] = {&lcomm_codec_sign, &lcomm_codec_int2};
  float source[130] = {1e-40f, -1e-37f, -0.0f, [128] = -1.0f, [129] = 1.0f}, value[130];
  for (int c = 0; c < 2; c++) {
    lcomm_format format = lcomm_format_of(codecs[c]);
    uint8_t *payload = encode_all(&format, source, 130);
    assert_int_equal(payload[0], 0);
    decode_all(&format, payload, 130, value);
    for (int i = 0; i < 128; i++) {
      assert_true(value[i] == 0.0f && !signbit(value[i]) == !signbit(source[i]));
    }
    assert_true(value[128] < 0.0f && value[129] > 0.0f);
    free(payload);
  }
}

static void int4_payload_has_the_bytes_the_format_says(void **state) {
  (void)state;
  float source[33] = {7.0f, -3.0f, -7.0f, [32] = -14.0f};
  const uint8_t scales[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, codes[] = {0xd7, 0x09, 0};
  expect_payload(&lcomm_codec_int4, source, 33, scales, codes, 0x09);
}

static void fp16_carries_its_scale(void **state) {
  (void)state;
  float source[129] = {1e-6f, -2e-6f}, value[129];
  source[128] = 3.0f;
  lcomm_format format = lcomm_format_of(&lcomm_codec_fp16);
  format.variant = LCOMM_FP16_FIXED;
  format.exponent = 12;
  uint8_t *payload = encode_all(&format, source, 129);
  const uint8_t head[] = {0, 0, 0x80, 0x39, 0, 0, 0, 0}; /* 2^-12 */
  assert_memory_equal(payload, head, 8);
  format.exponent = 0; /* a reader goes by the payload */
  decode_all(&format, payload, 129, value);
  assert_true(fabsf(value[0] - 1e-6f) < 1e-9f && fabsf(value[128] - 3.0f) < 1e-2f);
  free(payload);
}

static void a_fixed_scale_turns_overflow_into_inf(void **state) {
  (void)state;
  float source[3] = {20.0f, -20.0f, 1.0f}, value[3];
  lcomm_format format = lcomm_format_of(&lcomm_codec_fp16);
  format.variant = LCOMM_FP16_FIXED;
  format.exponent = 12;
  uint8_t *payload = encode_all(&format, source, 3);
  decode_all(&format, payload, 3, value);
  assert_true(value[0] == SAMPLE_INFINITY && value[1] == -SAMPLE_INFINITY && value[2] == 1.0f);
  free(payload);
}

static void stochastic_rounding_is_right_on_average(void **state) {
  (void)state;
  enum { N = 1 << 17 };
  const lcomm_codec *codecs[] = {&lcomm_codec_fp8e4m3, &lcomm_codec_fp8e5m2};
  for (int c = 0; c < 2; c++) {
    lcomm_format format = lcomm_format_of(codecs[c]);
    format.stochastic = true;
    float *source = sample_memory(N * sizeof *source), *value = sample_memory(N * sizeof *value);
    for (int i = 0; i < N; i++) { /* 1.09375 lies between two codes of both formats */
      source[i] = i % 128 == 0 ? 400.0f : i % 2 ? 1.09375f : -0.001f;
    }
    uint8_t *payload = encode_all(&format, source, N);
    decode_all(&format, payload, N, value);
    double sum[2] = {0};
    for (int i = 0; i < N; i++) {
      sum[i % 2] += i % 128 == 0 ? 0 : (double)value[i];
    }
    assert_true(fabs(sum[1] / (N / 2) - 1.09375) < 0.003);
    assert_true(fabs(sum[0] / (N / 2 - N / 128) + 0.001) < 0.0001);
    free(source);
    free(value);
    free(payload);
  }
}

static void another_seed_rounds_otherwise(void **state) {
  (void)state;
  lcomm_format format = lcomm_format_of(&lcomm_codec_fp8e4m3);
  format.stochastic = true;
  float *source = normal_values(1000, 5, 1.0f);
  size_t size = lcomm_payload_size(&format, 1000);
  uint8_t *one = sample_memory(size), *two = sample_memory(size);
  lcomm_encode(&format, kernels(), source, lcomm_range_whole(1000), 1, one);
  lcomm_encode(&format, kernels(), source, lcomm_range_whole(1000), 2, two);
  assert_memory_not_equal(one, two, size);
  lcomm_encode(&format, kernels(), source, lcomm_range_whole(1000), 1, two);
  assert_memory_equal(one, two, size);
  free(source);
  free(one);
  free(two);
}

/* Values */

static double nmse(const lcomm_codec *codec) {
  lcomm_format standard = lcomm_format_of(codec), *format = &standard;
  enum { N = 1 << 18 };
  float *source = normal_values(N, 1, 3e-4f), *value = sample_memory(N * sizeof *value);
  for (size_t i = 0; i < N; i++) { /* rows of different size, as in a gradient */
    source[i] *= (float)(1 + i / 640 % 13);
  }
  uint8_t *payload = encode_all(format, source, N);
  decode_all(format, payload, N, value);
  double error = 0, power = 0;
  for (size_t i = 0; i < N; i++) {
    error += ((double)value[i] - (double)source[i]) * ((double)value[i] - (double)source[i]);
    power += (double)source[i] * (double)source[i];
  }
  free(source);
  free(value);
  free(payload);
  return error / power;
}

static void mean_square_errors_are_those_of_the_formats(void **state) {
  (void)state;
  assert_true(nmse(&lcomm_codec_none) == 0.0);
  assert_true(nmse(&lcomm_codec_bf16) <= 3e-6);
  assert_true(nmse(&lcomm_codec_int8) <= 6e-5);
  assert_true(nmse(&lcomm_codec_fp8e4m3) <= 7.5e-4);
  assert_true(nmse(&lcomm_codec_fp8e5m2) <= 3e-3);
  assert_true(nmse(&lcomm_codec_int4) <= 1.5e-2);
  assert_true(nmse(&lcomm_codec_int2) <= 0.2);
  assert_true(nmse(&lcomm_codec_sign) <= 0.45);
}

/* Bits of a long vector. */
static void sign_and_int2_take_a_sixteenth_of_a_bit_for_scales(void **state) {
  (void)state;
  lcomm_format sign = lcomm_format_of(&lcomm_codec_sign), int2 = lcomm_format_of(&lcomm_codec_int2);
  assert_true(lcomm_format_bits(&sign) == 1.0625 && lcomm_format_bits(&int2) == 2.0625);
}

/* Largest error of one value, given the largest magnitude of its block. */
static double error_bound(const lcomm_format *format, double value, double amax) {
  double size = fabs(value), stochastic = format->stochastic ? 2 : 1;
  switch (format->codec->id) {
  case LCOMM_CODEC_FP16:
    if (format->variant == LCOMM_FP16_BLOCK) {
      return fmax(ldexp(size, -11), fmax(amax / 28672 * ldexp(1, -25), ldexp(1, -149)));
    }
    return fmax(ldexp(size, -11), ldexp(1, -25 - format->exponent));
  case LCOMM_CODEC_BF16:
    return fmax(ldexp(size, -8), ldexp(1, -134));
  case LCOMM_CODEC_INT8:
    return amax < ldexp(1, -119) ? amax : amax / 127 * 0.50001;
  case LCOMM_CODEC_INT4:
    return amax < ldexp(1, -119) ? amax : amax / 7 * 0.50001;
  case LCOMM_CODEC_INT2: /* 4 * scale is at least half of amax, and at most all of it */
    return amax < ldexp(1, -119) ? amax : 0.5 * amax;
  case LCOMM_CODEC_SIGN: /* the scale is at most 4/3 of the root mean square */
    return amax < ldexp(1, -119) ? amax : 1.34 * amax;
  case LCOMM_CODEC_FP8E4M3: /* the scale at most doubles amax / 448 */
    return stochastic * fmax(ldexp(size, -4), fmax(amax / 224 * ldexp(1, -10), ldexp(1, -137)));
  case LCOMM_CODEC_FP8E5M2:
    return stochastic * fmax(ldexp(size, -3), fmax(amax / 28672 * ldexp(1, -17), ldexp(1, -144)));
  default:
    return 0;
  }
}

/* Elements that share a scale. */
static int block_of(const lcomm_format *format) {
  return format->block > 0 ? format->block : LCOMM_BLOCK;
}

static void errors_stay_within_the_bound_of_the_codec(const lcomm_format *format) {
  for (int exponent = -148; exponent <= 6; exponent += 6) {
    enum { N = 1000 };
    float *source = normal_values(N, (uint64_t)(exponent + 200), 1.0f), value[N];
    for (int i = 0; i < N; i++) {
      source[i] = ldexpf(source[i], exponent);
    }
    uint8_t *payload = encode_all(format, source, N);
    decode_all(format, payload, N, value);
    for (int i = 0; i < N; i++) {
      double amax = 0;
      int block = block_of(format), first = i / block * block;
      for (int j = first; j < N && j < first + block; j++) {
        amax = fmax(amax, fabs((double)source[j]));
      }
      double error = fabs((double)value[i] - (double)source[i]);
      assert_true(error <= error_bound(format, (double)source[i], amax));
    }
    free(source);
    free(payload);
  }
}

static void one_element_is_enough(const lcomm_format *format) {
  const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.25f, -1536.0f, 127.0f * 16};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    uint8_t *payload = encode_all(format, &values[i], 1);
    float value;
    decode_all(format, payload, 1, &value);
    double bound = error_bound(format, (double)values[i], fabs((double)values[i]));
    assert_true(fabs((double)value - (double)values[i]) <= bound);
    if (values[i] == 0.0f) {
      assert_true(value == 0.0f);
    }
    free(payload);
  }
}

static void nan_and_inf_are_never_lost(const lcomm_format *format) {
  const float bad[] = {SAMPLE_NAN, SAMPLE_INFINITY, -SAMPLE_INFINITY};
  for (size_t b = 0; b < 3; b++) {
    float *source = normal_values(700, 3, 1.0f), value[700];
    source[300] = bad[b];
    uint8_t *payload = encode_all(format, source, 700);
    decode_all(format, payload, 700, value);
    assert_false(isfinite(value[300]));
    for (int i = 0; i < 700; i++) { /* other blocks do not suffer */
      if (i / block_of(format) != 300 / block_of(format)) {
        assert_true(isfinite(value[i]));
      }
    }
    free(source);
    free(payload);
  }
}

static void zeros_stay_zeros(const lcomm_format *format) {
  float source[300] = {0}, value[300];
  uint8_t *payload = encode_all(format, source, 300);
  decode_all(format, payload, 300, value);
  for (int i = 0; i < 300; i++) {
    assert_true(value[i] == 0.0f);
  }
  free(payload);
}

static void none_keeps_every_bit(void **state) {
  (void)state;
  uint64_t random = 8;
  float source[1000], value[1000];
  for (int i = 0; i < 1000; i++) {
    source[i] = sample_bits(&random);
  }
  lcomm_format format = lcomm_format_of(&lcomm_codec_none);
  uint8_t *payload = encode_all(&format, source, 1000);
  decode_all(&format, payload, 1000, value);
  assert_memory_equal(value, source, sizeof source);
  free(payload);
}

/* Decoding what was decoded before changes nothing: replicas that pass values
 * on do not drift. */
static void encoding_a_decoded_payload_is_stable(const lcomm_format *format) {
  float *source = normal_values(1000, 12, 0.01f), value[1000], again[1000];
  uint8_t *payload = encode_all(format, source, 1000);
  decode_all(format, payload, 1000, value);
  uint8_t *second = encode_all(format, value, 1000);
  decode_all(format, second, 1000, again);
  for (int i = 0; i < 1000; i++) {
    assert_true(fabsf(again[i] - value[i]) <= 1e-6f * fabsf(value[i]));
  }
  free(source);
  free(payload);
  free(second);
}

/* Ranges */

static void ranges_give_the_bytes_of_the_whole(const lcomm_format *format) {
  for (int c = 0; c < COUNTS; c++) {
    uint64_t count = counts[c], step = 3 * LCOMM_BLOCK;
    size_t size = lcomm_payload_size(format, count);
    float *source = normal_values(count, 20, 1.0f);
    float *whole = sample_memory((size_t)count * 4), *pieces = sample_memory((size_t)count * 4);
    uint8_t *payload = encode_all(format, source, count), *ranged = sample_memory(size);
    memset(ranged, 0x5a, size);
    for (uint64_t first = 0; first < count; first += step) {
      uint64_t n = count - first < step ? count - first : step;
      lcomm_encode(format, kernels(), source + first, (lcomm_range){count, first, n}, SEED, ranged);
    }
    assert_memory_equal(ranged, payload, size);
    lcomm_decode(format, kernels(), payload, lcomm_range_whole(count), 0.5f, whole);
    for (uint64_t first = 0; first < count; first += step) {
      uint64_t n = count - first < step ? count - first : step;
      lcomm_decode(format, kernels(), payload, (lcomm_range){count, first, n}, 0.5f,
                   pieces + first);
    }
    assert_memory_equal(pieces, whole, (size_t)count * 4);
    free(source);
    free(whole);
    free(pieces);
    free(payload);
    free(ranged);
  }
}

static void accumulate_is_decode_then_add(const lcomm_format *format) {
  for (int c = 0; c < COUNTS; c++) {
    uint64_t count = counts[c];
    float *source = normal_values(count, 30, 1.0f), *sum = normal_values(count, 31, 1.0f);
    float *value = sample_memory((size_t)count * 4), *expected = sample_memory((size_t)count * 4);
    uint8_t *payload = encode_all(format, source, count);
    lcomm_decode(format, kernels(), payload, lcomm_range_whole(count), 0.3f, value);
    for (uint64_t i = 0; i < count; i++) {
      expected[i] = sum[i] + value[i];
    }
    lcomm_accumulate(format, kernels(), payload, lcomm_range_whole(count), 0.3f, sum);
    assert_memory_equal(sum, expected, (size_t)count * 4);
    free(source);
    free(sum);
    free(value);
    free(expected);
    free(payload);
  }
}

static void any_bytes_of_the_right_size_decode(const lcomm_format *format) {
  uint64_t random = 40;
  float value[333];
  size_t size = lcomm_payload_size(format, 333);
  uint8_t *payload = sample_memory(size);
  for (int round = 0; round < 50; round++) {
    for (size_t i = 0; i < size; i++) {
      payload[i] = (uint8_t)(sample_u64(&random) >> 20);
    }
    decode_all(format, payload, 333, value);
    lcomm_accumulate(format, kernels(), payload, lcomm_range_whole(333), -2.0f, value);
  }
  free(payload);
}

static void test_each_dense(void **state) {
  const format_property *property = *state;
  lcomm_format list[FORMATS_MAX];
  size_t count = dense_formats(list);
  assert_true(count == 28);
  for (size_t i = 0; i < count; i++) {
    property->holds(&list[i]);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(codecs_are_listed_in_wire_order_and_found),
    cmocka_unit_test(exact_codecs_carry_their_dtype),
    cmocka_unit_test(payload_sizes_are_those_of_the_format),
    cmocka_unit_test(int8_payload_has_the_bytes_the_format_says),
    cmocka_unit_test(fp8_payload_has_the_bytes_the_format_says),
    cmocka_unit_test(sign_payload_has_the_bytes_the_format_says),
    cmocka_unit_test(int2_payload_has_the_bytes_the_format_says),
    cmocka_unit_test(lowbit_blocks_of_zeros_are_sent_as_zeros),
    cmocka_unit_test(sign_and_int2_take_a_sixteenth_of_a_bit_for_scales),
    cmocka_unit_test(int4_payload_has_the_bytes_the_format_says),
    cmocka_unit_test(fp16_carries_its_scale),
    cmocka_unit_test(a_fixed_scale_turns_overflow_into_inf),
    cmocka_unit_test(stochastic_rounding_is_right_on_average),
    cmocka_unit_test(another_seed_rounds_otherwise),
    cmocka_unit_test(mean_square_errors_are_those_of_the_formats),
    FORMAT_TEST(test_each_dense, errors_stay_within_the_bound_of_the_codec),
    FORMAT_TEST(test_each_dense, one_element_is_enough),
    FORMAT_TEST(test_each_dense, nan_and_inf_are_never_lost),
    FORMAT_TEST(test_each_dense, zeros_stay_zeros),
    cmocka_unit_test(none_keeps_every_bit),
    FORMAT_TEST(test_each_dense, encoding_a_decoded_payload_is_stable),
    FORMAT_TEST(test_each_dense, ranges_give_the_bytes_of_the_whole),
    FORMAT_TEST(test_each_dense, accumulate_is_decode_then_add),
    FORMAT_TEST(test_each_dense, any_bytes_of_the_right_size_decode),
};
RUN_TESTS(tests)
