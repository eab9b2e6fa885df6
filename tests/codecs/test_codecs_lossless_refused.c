/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The lossless stage given streams that are none: refused, within bounds. */

#include "tests/codecs/lossless_stages.h"
#include "tests/support/unit_tests.h"

static void check_cuts(stage *s) {
  for (content what = 0; what < CONTENTS; what++) {
    make(s, what, 300);
    for (size_t size = 0; size < s->stream_size; size++) {
      assert_non_null(refusal(s, s->stream, size));
    }
    uint8_t *longer = sample_memory(s->stream_size + 1);
    memcpy(longer, s->stream, s->stream_size);
    assert_string_equal(refusal(s, longer, s->stream_size + 1), "bytes behind the last plane");
    free(longer);
  }
}

static void a_stream_of_another_length_is_refused(void **state) {
  (void)state;
  for_each_stage(300, check_cuts);
}

static void check_bit_flips(stage *s) {
  const char *why;
  for (content what = GRADIENT; what <= CONSTANT; what++) {
    make(s, what, 150);
    for (size_t bit = 0; bit < 8 * s->stream_size; bit++) {
      s->stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
      size_t size = decode(s, s->stream, s->stream_size, s->bound, &why);
      if (!why && lcomm_format_is_sparse(&s->format)) {
        assert_int_equal(lcomm_topk_check(&s->format, s->back, size, s->count, NULL), LCOMM_OK);
      } else if (!why) {
        assert_int_equal(size, s->size);
      }
      s->stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
  }
}

static void a_flipped_bit_is_refused_or_stays_within_bounds(void **state) {
  (void)state;
  for_each_stage(150, check_bit_flips);
}

static void check_capacity(stage *s) {
  const char *why;
  make(s, GRADIENT, 200);
  for (size_t capacity = 0; capacity < s->size; capacity++) {
    decode(s, s->stream, s->stream_size, capacity, &why);
    assert_non_null(why);
  }
  for (unsigned shift = 0; shift < 4 && !lcomm_format_is_sparse(&s->format); shift++) {
    s->count = (uint64_t)1 << (60 + shift); /* four times that is 0 */
    assert_string_equal(refusal(s, s->stream, s->stream_size),
                        "more values than there is room for");
  }
}

static void a_payload_never_exceeds_its_room(void **state) {
  (void)state;
  for_each_stage(200, check_capacity);
}

/* One plane of 1000 equal codes as `size` bytes of frame. */
static const char *frame_refusal(const void *frame, size_t size) {
  stage s = make_stage(lcomm_format_of(&lcomm_codec_int8), 1000);
  uint8_t stream[256] = {32};
  uint32_t word = 0x80000000u | (uint32_t)size;
  s.count = 1000;
  memcpy(stream + 36, &word, sizeof word);
  memcpy(stream + 40, frame, size);
  const char *why = refusal(&s, stream, 40 + size);
  free_stage(&s);
  return why;
}

static void a_chunk_is_one_frame_that_declares_its_size(void **state) {
  (void)state;
  uint8_t plane[1001] = {0}, frame[200];
  static const uint8_t skippable[8] = {0x50, 0x2a, 0x4d, 0x18};
  size_t size = ZSTD_compress(frame, sizeof frame, plane, 1000, 1);
  assert_null(frame_refusal(frame, size));
  size_t empty = ZSTD_compress(frame + size, sizeof frame - size, plane, 0, 1);
  assert_string_equal(frame_refusal(frame, size + empty),
                      "a frame that does not end with its chunk");
  memcpy(frame + size, skippable, sizeof skippable);
  assert_non_null(frame_refusal(frame, size + sizeof skippable));
  for (size_t n = 999; n <= 1001; n += 2) {
    size = ZSTD_compress(frame, sizeof frame, plane, n, 1);
    assert_string_equal(frame_refusal(frame, size),
                        "a frame that does not declare the size of its chunk");
  }
  ZSTD_CCtx *context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  size = ZSTD_compress2(context, frame, sizeof frame, plane, 1000);
  ZSTD_freeCCtx(context);
  assert_non_null(frame_refusal(frame, size));
  assert_non_null(frame_refusal("no frame at all", 15));
  for (size_t i = 0; i < sizeof plane; i++) {
    plane[i] = (uint8_t)(i * i % 97 / 9);
  }
  size = ZSTD_compress(frame, sizeof frame, plane, 1000, 1);
  assert_null(frame_refusal(frame, size));
  frame[10] = 0xff; /* behind the headers of the frame and of its block */
  assert_string_equal(frame_refusal(frame, size), "a frame that zstd refuses");
  assert_non_null(frame_refusal("", 0));
}

/* A delta plane of n bytes for `entries` bf16 values of 0. */
static const char *delta_refusal(uint8_t entries, const uint8_t *delta, uint8_t n) {
  stage s = make_stage(lcomm_format_of(&lcomm_codec_topk), 100);
  uint8_t stream[64] = {entries, 0, 0, 0, n, 0, 0, 0, n}, *end = stream + 12;
  s.count = UINT64_MAX;
  memcpy(end, delta, n);
  end += n;
  for (int plane = 0; plane < 2; plane++, end += 4 + entries) {
    *end = entries;
  }
  const char *why = refusal(&s, stream, (size_t)(end - stream));
  free_stage(&s);
  return why;
}

static void deltas_have_one_form_only(void **state) {
  (void)state;
  assert_null(delta_refusal(2, (uint8_t[]){0xff, 0xff, 0xff, 0xff, 0x0f, 0x80, 0x01}, 7));
  static const char *const wide = "a delta of more than 32 bits";
  assert_string_equal(delta_refusal(1, (uint8_t[]){0xff, 0xff, 0xff, 0xff, 0x10}, 5), wide);
  assert_string_equal(delta_refusal(1, (uint8_t[]){0x80, 0x80, 0x80, 0x80, 0x81, 0x00}, 6), wide);
  static const char *const overlong = "a delta that is longer than it need be";
  assert_string_equal(delta_refusal(1, (uint8_t[]){0x80, 0x00}, 2), overlong);
  assert_string_equal(delta_refusal(1, (uint8_t[]){0xff, 0xff, 0xff, 0xff, 0x00}, 5), overlong);
  static const char *const ends = "a delta plane that ends before its entries do";
  assert_string_equal(delta_refusal(1, (uint8_t[]){0x80}, 1), ends);
  assert_string_equal(delta_refusal(2, (uint8_t[]){5}, 1), ends);
  static const char *const more = "a delta plane that goes on after its entries";
  assert_string_equal(delta_refusal(1, (uint8_t[]){5, 0}, 2), more);
}

/* Entries, and the size of the delta plane. */
static void numbers_in_the_head_are_not_believed(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_topk), 100);
  make(&s, GRADIENT, 100);
  s.count = UINT32_MAX;
  for (size_t field = 0; field < 8; field += 4) {
    for (uint32_t shift = 0; shift < 32; shift++) {
      uint32_t honest, word = UINT32_MAX >> shift;
      memcpy(&honest, s.stream + field, sizeof honest);
      memcpy(s.stream + field, &word, sizeof word);
      assert_non_null(refusal(&s, s.stream, s.stream_size));
      memcpy(s.stream + field, &honest, sizeof honest);
    }
  }
  check_round_trip(&s);
  uint32_t planes = (uint32_t)(s.bound + s.bound / 2);
  for (uint32_t size = planes - 100; size <= planes + 1; size += 101) {
    memcpy(s.stream + 4, &size, sizeof size);
    assert_string_equal(refusal(&s, s.stream, s.stream_size),
                        "larger planes than those of any payload");
  }
  s.count = 99;
  assert_string_equal(refusal(&s, s.stream, s.stream_size), "more entries than elements");
  free_stage(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stream_of_another_length_is_refused),
    cmocka_unit_test(a_flipped_bit_is_refused_or_stays_within_bounds),
    cmocka_unit_test(a_payload_never_exceeds_its_room),
    cmocka_unit_test(a_chunk_is_one_frame_that_declares_its_size),
    cmocka_unit_test(deltas_have_one_form_only),
    cmocka_unit_test(numbers_in_the_head_are_not_believed),
};
RUN_TESTS(tests)
