/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Encoders of the device: the payloads and residuals of the codecs, byte by byte. */

#include "tests/kernels/cuda/dense_cases.h"

#include "codecs/codec_residual.h"
#include "tests/codecs/listed_formats.h"
#include "tests/support/emulated/emulated_blocks.h"
#include "tests/support/unit_tests.h"

static const lcomm_kernels *const scalar = &lcomm_kernels_scalar;

/* What the processor makes of a view: payload, and the residual in its place. */
static uint8_t *encode_by_codec(const lcomm_format *format, const view *v,
                                lcomm_cuda_feedback feedback, float weight, const float *source,
                                float *residual) {
  static float from[VIEW_MOST], kept[VIEW_MOST];
  uint64_t n = view_count(v);
  lcomm_range all = lcomm_range_whole(n);
  uint8_t *payload = payload_open(format, n);
  view_gather(v, source, from);
  if (feedback == LCOMM_CUDA_FEEDBACK_NONE) {
    lcomm_encode(format, scalar, from, all, SEED, payload);
    return payload;
  }
  view_gather(v, residual, kept);
  if (feedback == LCOMM_CUDA_FEEDBACK_SEND) {
    lcomm_residual_encode(format, scalar, from, kept, kept, all, SEED, payload);
  } else {
    lcomm_residual_encode_owner(format, scalar, from, kept, weight, all, SEED, payload);
  }
  view_scatter(v, kept, residual);
  return payload;
}

static void expect_codec_bytes(const lcomm_format *format, const view *v,
                               lcomm_cuda_feedback feedback, float weight, const float *source,
                               float *residual) {
  uint64_t n = view_count(v);
  float *expected = array_copy(v, residual, v->base);
  uint8_t *payload = payload_open(format, n);
  uint8_t *right = encode_by_codec(format, v, feedback, weight, source, expected);
  lcomm_cuda_encode a = {.source = source,
                         .residual = feedback == LCOMM_CUDA_FEEDBACK_NONE ? NULL : residual,
                         .feedback = feedback,
                         .weight = weight,
                         .n = n,
                         .parts = v->parts,
                         .part = v->part,
                         .code = parts_of(format, n, payload)};
  assert_int_equal(lcomm_cuda_run_encode(&a, NULL), 0);
  expect_equal_bytes(payload, right, lcomm_payload_size(format, n), format, v, "payload");
  expect_equal_bytes(residual, expected, (size_t)v->base * sizeof *residual, format, v, "residual");
  payload_free(payload);
  payload_free(right);
  array_free(v, expected);
}

static void encode_all_kinds(lcomm_cuda_feedback feedback, float weight, size_t step) {
  uint64_t random = 5;
  for (size_t f = 0; f < format_count; f++) {
    for (size_t i = f % step; i < COUNT(views); i += step) {
      for (int k = 0; k < KINDS; k++) {
        const view *v = &views[i];
        float *source = array_open(v, v->base), *residual = array_open(v, v->base);
        make_values((kind)k, source, (size_t)v->base, &random);
        make_values(KIND_GRADIENT, residual, (size_t)v->base, &random);
        expect_codec_bytes(&formats[f], v, feedback, weight, source, residual);
        array_free(v, source);
        array_free(v, residual);
      }
    }
  }
}

static void payloads_are_those_of_the_codecs(void **state) {
  (void)state;
  encode_all_kinds(LCOMM_CUDA_FEEDBACK_NONE, 1.0f, 1);
}

static void senders_keep_what_the_codecs_keep(void **state) {
  (void)state;
  encode_all_kinds(LCOMM_CUDA_FEEDBACK_SEND, 1.0f, 2);
}

static void owners_keep_what_the_codecs_keep(void **state) {
  (void)state;
  encode_all_kinds(LCOMM_CUDA_FEEDBACK_OWNER, 4.0f, 3);
  encode_all_kinds(LCOMM_CUDA_FEEDBACK_OWNER, 1.0f / 3.0f, 7);
}

/* Not finite in the source, in the residual, and Inf on both sides. */
static void residuals_are_not_poisoned(void **state) {
  (void)state;
  const view v = {1500, 1, 0, 0};
  uint64_t random = 8;
  for (size_t f = 0; f < format_count; f++) {
    for (int feedback = LCOMM_CUDA_FEEDBACK_SEND; feedback < LCOMM_CUDA_FEEDBACK_COUNT;
         feedback++) {
      float *source = array_open(&v, v.base), *residual = array_open(&v, v.base);
      make_values(KIND_GRADIENT, source, (size_t)v.base, &random);
      make_values(KIND_AWKWARD, residual, (size_t)v.base, &random);
      source[7] = lcomm_f32_from_bits(0xffa12345u);
      residual[7] = 1.0f;
      source[400] = residual[400] = SAMPLE_INFINITY;
      source[800] = SAMPLE_INFINITY;
      residual[800] = -SAMPLE_INFINITY;
      source[1400] = residual[1400] = lcomm_f32_from_bits(0x7f7fffffu);
      expect_codec_bytes(&formats[f], &v, (lcomm_cuda_feedback)feedback,
                         feedback == LCOMM_CUDA_FEEDBACK_OWNER ? SAMPLE_INFINITY : 1.0f, source,
                         residual);
      for (uint64_t i = 0; i < v.base; i++) {
        assert_true(lcomm_f32_is_finite(residual[i]));
      }
      array_free(&v, source);
      array_free(&v, residual);
    }
  }
}

/* A kernel that lacks a barrier is right in one order only. */
static void order_of_threads_does_not_matter(void **state) {
  (void)state;
  for (uint64_t order = 1; order <= 2; order++) {
    lcomm_emulated_order = order;
    encode_all_kinds(LCOMM_CUDA_FEEDBACK_SEND, 1.0f, 9);
  }
  lcomm_emulated_order = 0;
}

static void no_elements_are_no_launch(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    lcomm_cuda_encode a = {.parts = 1, .code = parts_of(&formats[f], 0, NULL)};
    assert_int_equal(lcomm_cuda_run_encode(&a, NULL), 0);
  }
}

/* ------------------------------------------------------------------ refused */

static lcomm_cuda_encode small_encode(const float *source, float *residual, uint64_t *payload) {
  lcomm_format format = lcomm_format_of(&lcomm_codec_int8);
  return (lcomm_cuda_encode){.source = source,
                             .residual = residual,
                             .n = 8,
                             .parts = 1,
                             .code = parts_of(&format, 8, (uint8_t *)payload)};
}

static void expect_refused(const lcomm_cuda_encode *a, const uint64_t *payload) {
  assert_int_equal(lcomm_cuda_run_encode(a, NULL), LCOMM_CUDA_INVALID_VALUE);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(payload[i], 0);
  }
}

static void what_there_is_not_is_refused(void **state) {
  (void)state;
  const float source[9] = {1.0f};
  uint64_t payload[4] = {0};
  const lcomm_cuda_encode good = small_encode(source, NULL, payload);
  lcomm_cuda_encode bad[12];
  size_t count = 0;
  for (; count < COUNT(bad); count++) {
    bad[count] = good;
  }
  bad[0].code.kind = LCOMM_CUDA_KIND_COUNT;
  bad[1].code.block = 48;
  bad[2].code.block = 0;
  bad[3].code.code = (uint8_t *)payload + 12;
  bad[4].code.scale = NULL;
  bad[5].feedback = LCOMM_CUDA_FEEDBACK_COUNT;
  bad[6].feedback = LCOMM_CUDA_FEEDBACK_SEND;
  bad[7].source = (const float *)(const void *)((const uint8_t *)source + 2);
  bad[8].parts = 0;
  bad[9].part = 1;
  bad[10].n = (uint64_t)1 << 60;
  bad[11].code.kind = LCOMM_CUDA_F16_FIXED;
  bad[11].code.exponent = 127;
  for (size_t i = 0; i < count; i++) {
    expect_refused(&bad[i], payload);
  }
  assert_int_equal(lcomm_cuda_run_encode(&good, NULL), 0);
  assert_int_equal(((const uint8_t *)payload)[8], 127);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(payloads_are_those_of_the_codecs),
    cmocka_unit_test(senders_keep_what_the_codecs_keep),
    cmocka_unit_test(owners_keep_what_the_codecs_keep),
    cmocka_unit_test(residuals_are_not_poisoned),
    cmocka_unit_test(order_of_threads_does_not_matter),
    cmocka_unit_test(no_elements_are_no_launch),
    cmocka_unit_test(what_there_is_not_is_refused),
};
RUN_TESTS_WITHIN(tests, list_formats, NULL)
