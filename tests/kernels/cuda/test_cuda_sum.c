/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums, minima and maxima of the device, with and without a payload of the result:
 * the bytes of the codecs. */

#include "tests/kernels/cuda/dense_cases.h"

#include "codecs/codec_sum.h"
#include "tests/codecs/listed_formats.h"
#include "tests/kernels/cuda/sum_cases.h"
#include "tests/support/unit_tests.h"

/* One of every few views, others for every format. */
static const view *view_of(size_t format, size_t turn) {
  return &views[(format * 5 + turn * 3) % COUNT(views)];
}

static void sums_are_those_of_the_codecs(void **state) {
  (void)state;
  static const uint32_t counts[] = {2, 3, 8, 9};
  for (size_t f = 0; f < format_count; f++) {
    for (size_t c = 0; c < COUNT(counts); c++) {
      for (int m = 0; m < MIXES; m++) {
        sum_case s = {.format = &formats[f], .count = counts[c], .factor = 1.0f / 3.0f};
        s.view = view_of(f, c + 2 * (size_t)m);
        s.mix = (mix)m;
        s.values = c % 2 ? KIND_TIES : KIND_GRADIENT;
        expect_sum_of_codecs(&s);
      }
    }
  }
}

static void sums_are_encoded_as_by_the_codecs(void **state) {
  (void)state;
  static const uint32_t counts[] = {1, 2, 5, 8};
  for (size_t f = 0; f < format_count; f++) {
    for (size_t c = 0; c < COUNT(counts); c++) {
      for (int m = 0; m < MIXES; m++) {
        sum_case s = {.format = &formats[f], .count = counts[c], .factor = 0.125f, .encodes = true};
        s.view = view_of(f, c + 2 * (size_t)m);
        s.mix = (mix)m;
        s.values = c % 2 ? KIND_LIMITS : KIND_GRADIENT;
        s.finite = true;
        expect_sum_of_codecs(&s);
      }
    }
  }
}

/* NaN and Inf in source `awkward` of the sum. */
static void expect_nan_to_go_on(size_t f, mix m, uint32_t count, uint32_t awkward) {
  sum_case s = {.format = &formats[f], .count = count, .factor = 0.5f, .finite = true, .mix = m};
  s.view = &views[(f + (size_t)m) % COUNT(views)];
  s.awkward = awkward + 1;
  s.encodes = count > 2 && awkward == 1;
  expect_sum_of_codecs(&s);
}

/* No two NaNs meet, so the bytes of each are known. Sums of two may be in place. */
static void nan_goes_on_with_its_bits(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (int m = 0; m < MIXES; m++) {
      for (uint32_t count = 2; count <= 3; count++) {
        for (uint32_t awkward = 0; awkward < count; awkward++) {
          expect_nan_to_go_on(f, (mix)m, count, awkward);
        }
      }
    }
  }
}

/* Infinity times what lies behind the last element would be NaN. */
static void what_lies_behind_the_last_element_does_not_matter(void **state) {
  (void)state;
  const view v = {TILE + 600, 1, 0, 1};
  for (size_t f = 0; f < format_count; f++) {
    sum_case s = {.format = &formats[f], .view = &v, .count = 2, .factor = SAMPLE_INFINITY};
    s.mix = MIX_PLAIN;
    s.values = KIND_GRADIENT;
    s.encodes = true;
    expect_sum_of_codecs(&s);
  }
}

static void one_source_is_a_decode(void **state) {
  (void)state;
  static const float factors[] = {1.0f, 0.125f, 1.0f / 3.0f, 1e-38f};
  for (size_t f = 0; f < format_count; f++) {
    for (size_t c = 0; c < COUNT(factors); c++) {
      for (int k = 0; k < KINDS; k++) {
        sum_case s = {.format = &formats[f], .count = 1, .factor = factors[c], .mix = MIX_CODED};
        s.view = view_of(f, c + (size_t)k);
        s.values = (kind)k;
        expect_sum_of_codecs(&s);
      }
    }
  }
}

/* Any bytes are a payload. */
static void hostile_bytes_are_decoded_as_by_the_codecs(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (uint32_t count = 1; count <= 4; count += 3) {
      sum_case s = {.format = &formats[f], .count = count, .factor = 3.0f, .mix = MIX_CODED};
      s.view = view_of(f, count);
      s.hostile = true;
      expect_sum_of_codecs(&s);
    }
  }
}

static void as_many_as_there_may_be(void **state) {
  (void)state;
  const view v = {700, 1, 0, 0};
  for (size_t f = 0; f < format_count; f++) {
    for (int m = 0; m < MIXES; m++) {
      sum_case s = {.format = &formats[f], .view = &v, .factor = 1.0f, .mix = (mix)m};
      s.count = LCOMM_CUDA_SOURCES_MAX;
      s.values = KIND_GRADIENT;
      expect_sum_of_codecs(&s);
    }
  }
}

/* The first NaN in the order of the sources wins, with its bits. */
static void minima_and_maxima_are_those_of_plain_kernels(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (int m = 0; m < MIXES; m++) {
      for (uint32_t count = 1; count <= 5; count += 2) {
        sum_case s = {.format = &formats[f], .count = count, .factor = 1.0f, .mix = (mix)m};
        s.view = view_of(f, count + (size_t)m);
        s.values = KIND_AWKWARD;
        s.op = count % 4 == 1 ? LCOMM_CUDA_MIN : LCOMM_CUDA_MAX;
        expect_extremes(&s);
        s.op = s.op == LCOMM_CUDA_MIN ? LCOMM_CUDA_MAX : LCOMM_CUDA_MIN;
        s.values = KIND_BITS;
        expect_extremes(&s);
      }
    }
  }
}

/* ------------------------------------------------------------------- refused */

static void expect_refused(const lcomm_cuda_sum *good, const lcomm_cuda_code *sources,
                           const lcomm_cuda_code *encoded, float *destination) {
  lcomm_cuda_sum a = *good;
  a.sources = sources;
  a.encoded = encoded;
  assert_int_equal(lcomm_cuda_run_sum(&a, NULL), LCOMM_CUDA_INVALID_VALUE);
  assert_true(destination[0] == 7.0f);
}

static void what_there_is_not_is_refused(void **state) {
  (void)state;
  uint64_t payload[2][4] = {{0}};
  float destination[9] = {7.0f};
  lcomm_format int8 = lcomm_format_of(&lcomm_codec_int8),
               e4m3 = lcomm_format_of(&lcomm_codec_fp8e4m3);
  lcomm_cuda_code sources[2] = {parts_of(&int8, 8, (uint8_t *)payload[0]),
                                parts_of(&int8, 8, (uint8_t *)payload[1])};
  lcomm_cuda_code other[2] = {sources[0], parts_of(&e4m3, 8, (uint8_t *)payload[1])};
  lcomm_cuda_code smaller[2] = {sources[0], sources[1]};
  smaller[1].block = 32;
  lcomm_cuda_sum good = {
      .sources = sources, .count = 2, .factor = 1, .destination = destination, .n = 8, .parts = 1};
  expect_refused(&good, other, NULL, destination);
  expect_refused(&good, smaller, NULL, destination);
  expect_refused(&good, sources, &other[1], destination);
  lcomm_cuda_sum bad[6] = {good, good, good, good, good, good};
  bad[0].count = 0;
  bad[1].count = LCOMM_CUDA_SOURCES_MAX + 1;
  bad[2].op = (lcomm_cuda_op)3;
  bad[3].destination = NULL;
  bad[4].part = 1;
  bad[5].n = UINT64_MAX;
  for (size_t i = 0; i < COUNT(bad); i++) {
    expect_refused(&bad[i], sources, NULL, destination);
  }
  assert_int_equal(lcomm_cuda_run_sum(&good, NULL), 0);
  assert_true(destination[0] == 0.0f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_are_those_of_the_codecs),
    cmocka_unit_test(sums_are_encoded_as_by_the_codecs),
    cmocka_unit_test(nan_goes_on_with_its_bits),
    cmocka_unit_test(what_lies_behind_the_last_element_does_not_matter),
    cmocka_unit_test(one_source_is_a_decode),
    cmocka_unit_test(hostile_bytes_are_decoded_as_by_the_codecs),
    cmocka_unit_test(as_many_as_there_may_be),
    cmocka_unit_test(minima_and_maxima_are_those_of_plain_kernels),
    cmocka_unit_test(what_there_is_not_is_refused),
};
RUN_TESTS_WITHIN(tests, list_formats, NULL)
