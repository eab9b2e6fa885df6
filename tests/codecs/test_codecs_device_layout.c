/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Where the kernels of a device find the layout of a payload: compared with what
 * the codecs write there. */

#include "tests/kernels/kernel_samples.h"

#include <stdbool.h>

#include "codecs/device_layout.h"
#include "tests/codecs/listed_formats.h"
#include "tests/support/unit_tests.h"

static const uint64_t counts[] = {0, 1, 2, 31, 32, 33, 127, 128, 129, 1000, 1025, 4096, 10001};
enum { COUNTS = sizeof counts / sizeof *counts, MOST = 10001 };

static size_t code_size(lcomm_cuda_kind kind, uint64_t count) {
  static const unsigned bits[LCOMM_CUDA_KIND_COUNT] = {32, 16, 16, 16, 16, 8, 8, 8, 4, 1, 2};
  return (size_t)((count * bits[kind] + 7) / 8);
}

static void codes_end_where_the_payload_ends(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (size_t c = 0; c < COUNTS; c++) {
      size_t size = lcomm_payload_size(&formats[f], counts[c]);
      uint8_t *payload = sample_memory(size);
      lcomm_cuda_code layout;
      lcomm_device_layout(&formats[f], counts[c], payload, &layout);
      uint8_t *code = layout.code;
      assert_true(code + code_size(layout.kind, counts[c]) == payload + size);
      assert_int_equal((code - payload) % 8, 0);
      assert_true(!layout.scale || layout.scale == payload);
      assert_true(layout.scale || code == payload);
      free(payload);
    }
  }
}

static void the_format_is_told(void **state) {
  (void)state;
  static const lcomm_cuda_kind kinds[] = {
      [LCOMM_CODEC_NONE] = LCOMM_CUDA_F32,     [LCOMM_CODEC_FP16] = LCOMM_CUDA_F16,
      [LCOMM_CODEC_BF16] = LCOMM_CUDA_BF16,    [LCOMM_CODEC_FP8E4M3] = LCOMM_CUDA_E4M3,
      [LCOMM_CODEC_FP8E5M2] = LCOMM_CUDA_E5M2, [LCOMM_CODEC_INT8] = LCOMM_CUDA_INT8,
      [LCOMM_CODEC_INT4] = LCOMM_CUDA_INT4,    [LCOMM_CODEC_SIGN] = LCOMM_CUDA_SIGN,
      [LCOMM_CODEC_INT2] = LCOMM_CUDA_INT2};
  for (size_t f = 0; f < format_count; f++) {
    const lcomm_format *format = &formats[f];
    lcomm_cuda_kind kind = kinds[format->codec->id];
    uint64_t payload[2];
    lcomm_cuda_code layout;
    if (format->variant == LCOMM_FP16_FIXED) {
      kind = LCOMM_CUDA_F16_FIXED;
    }
    if (format->variant == LCOMM_FP16_BLOCK) {
      kind = LCOMM_CUDA_F16_BLOCK;
    }
    lcomm_device_layout(format, 1, (uint8_t *)payload, &layout);
    assert_int_equal(layout.kind, kind);
    assert_int_equal(layout.block, kind == LCOMM_CUDA_F16_BLOCK ? LCOMM_BLOCK : format->block);
    assert_int_equal(layout.exponent, format->exponent);
    assert_int_equal(layout.stochastic, format->stochastic);
    assert_int_equal(layout.seed, 0);
    assert_int_equal(layout.scale != NULL, format->block != 0 || format->variant != 0);
  }
}

/* -1.0 has a code that is not 0 in every format, and so have all scales. */
static void first_code_and_first_scale_are_there(void **state) {
  (void)state;
  static float ones[MOST];
  for (size_t i = 0; i < MOST; i++) {
    ones[i] = -1.0f;
  }
  for (size_t f = 0; f < format_count; f++) {
    size_t size = lcomm_payload_size(&formats[f], MOST);
    uint8_t *payload = sample_memory(size);
    lcomm_cuda_code layout;
    lcomm_device_layout(&formats[f], MOST, payload, &layout);
    lcomm_encode(&formats[f], lcomm_kernels_best(), ones, lcomm_range_whole(MOST), 1, payload);
    size_t one = code_size(layout.kind, 1);
    const uint8_t *code = layout.code, *last = payload + size - one;
    assert_true(code[0] != 0 || code[one - 1] != 0);
    bool is_shared = layout.kind == LCOMM_CUDA_INT4 || layout.kind == LCOMM_CUDA_SIGN ||
                     layout.kind == LCOMM_CUDA_INT2;
    if (!is_shared) {
      assert_memory_equal(code, last, one);
    }
    assert_true(!layout.scale || payload[0] != 0 || payload[3] != 0);
    free(payload);
  }
}

/* An address that nobody may look at. */
static void memory_is_not_touched(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    lcomm_cuda_code layout;
    uintptr_t place = (uintptr_t)1 << 40;
    lcomm_device_layout(&formats[f], MOST, (uint8_t *)place, &layout);
    assert_true((uintptr_t)layout.code >= place);
    assert_true((uintptr_t)layout.code < place + lcomm_payload_size(&formats[f], MOST));
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(codes_end_where_the_payload_ends),
    cmocka_unit_test(the_format_is_told),
    cmocka_unit_test(first_code_and_first_scale_are_there),
    cmocka_unit_test(memory_is_not_touched),
};
RUN_TESTS_WITHIN(tests, list_formats, NULL)
