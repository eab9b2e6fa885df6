/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The lossless stage: what goes in comes out, in the bytes that the format says. */

#include "tests/codecs/lossless_stages.h"
#include "tests/support/unit_tests.h"

static void check_small_counts(stage *s) {
  for (uint64_t n = 0; n <= 300; n += n < 140 ? 1 : 7) {
    for (content what = 0; what < CONTENTS; what++) {
      make(s, what, n);
      check_round_trip(s);
    }
  }
}

static void short_payloads_survive(void **state) {
  (void)state;
  for_each_stage(300, check_small_counts);
}

static void check_large_counts(stage *s) {
  static const uint64_t counts[] = {4096, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (content what = 0; what < CONTENTS; what++) {
      make(s, what, counts[i]);
      check_round_trip(s);
    }
  }
}

static void payloads_of_several_chunks_survive(void **state) {
  (void)state;
  for_each_stage(2 * CHUNK + 1, check_large_counts);
}

static void check_a_million(stage *s) {
  for (content what = 0; what <= GRADIENT; what++) {
    make(s, what, 1 << 20);
    check_round_trip(s);
  }
}

static void payloads_of_a_million_values_survive(void **state) {
  (void)state;
  for_each_stage(1 << 20, check_a_million);
}

/* Entries 2^width apart: every number of bytes that a delta can take. */
static void sparse_payloads_survive_at_every_width(void **state) {
  (void)state;
  for (uint8_t variant = 0; variant < 2; variant++) {
    for (uint32_t width = 0; width < 32; width++) {
      lcomm_format format = lcomm_format_of(&lcomm_codec_topk);
      format.variant = variant;
      stage s = make_stage(format, 2000);
      uint32_t position[1000], n = 0;
      float value[1000];
      uint64_t seed = width + 1, step = (uint64_t)1 << width;
      for (uint64_t next = step; next <= UINT32_MAX && n < 999; next += step, n++) {
        position[n] = (uint32_t)next - 1, value[n] = sample_bits(&seed);
      }
      lcomm_entries entries = {position, value, n};
      s.count = UINT32_MAX;
      s.size = lcomm_topk_write(&format, kernels(), &entries, s.payload);
      encode(&s);
      check_round_trip(&s);
      free_stage(&s);
    }
  }
}

/* What the stream is */

static void check_tables_agree(stage *s) {
  make(s, GRADIENT, 3000);
  uint8_t *other = sample_memory(s->stream_bound);
  for (size_t i = 0; lcomm_kernels_list[i] != NULL; i++) {
    if (!lcomm_kernels_runs(lcomm_kernels_list[i])) {
      continue;
    }
    size_t size = lcomm_lossless_encode(s->lossless, lcomm_kernels_list[i], s->payload, s->size,
                                        s->count, other);
    assert_int_equal(size, s->stream_size);
    assert_memory_equal(other, s->stream, size);
  }
  free(other);
}

static void all_kernel_tables_make_the_same_stream(void **state) {
  (void)state;
  for_each_stage(3000, check_tables_agree);
}

/* `size` bytes of a payload of `count` elements make this stream. */
static void expect_stream(const lcomm_codec *codec, uint64_t count, const void *payload,
                          size_t size, const uint8_t *expected, size_t expected_size) {
  stage s = make_stage(lcomm_format_of(codec), count);
  s.count = count, s.size = size;
  memcpy(s.payload, payload, size);
  encode(&s);
  assert_int_equal(s.stream_size, expected_size);
  assert_memory_equal(s.stream, expected, expected_size);
  free_stage(&s);
}

/* Planes this short are stored. */
static void a_stream_has_the_bytes_the_format_says(void **state) {
  (void)state;
  static const uint8_t number[] = {0x01, 0x02, 0x03, 0x84}; /* rotated: 03 04 06 08 */
  static const uint8_t none[] = {1, 0, 0, 0, 3, 1, 0, 0, 0, 4, 1, 0, 0, 0, 6, 1, 0, 0, 0, 8};
  static const uint8_t bf16[] = {2, 0, 0, 0, 2, 7, 2, 0, 0, 0, 4, 8};
  expect_stream(&lcomm_codec_none, 1, number, sizeof number, none, sizeof none);
  expect_stream(&lcomm_codec_bf16, 2, number, sizeof number, bf16, sizeof bf16);
  stage s = make_stage(lcomm_format_of(&lcomm_codec_int4), 1); /* a scale, 4 zeros, one code */
  make(&s, CONSTANT, 1);
  assert_int_equal(s.stream_size, 4 + 8 + 4 + 1);
  assert_int_equal(s.stream[0], 8);
  free_stage(&s);
}

static void a_sparse_stream_has_the_bytes_the_format_says(void **state) {
  (void)state;
  uint32_t position[] = {5, 6, 206};
  float value[] = {1.0f, -127.0f, 2.0f};
  lcomm_entries entries = {position, value, 3};
  static const uint8_t bf16[] = {3, 0, 0, 0, 4, 0,    0,    0,    4, 0, 0, 0, 5,    0,    199,
                                 1, 3, 0, 0, 0, 0x00, 0xfd, 0x00, 3, 0, 0, 0, 0x7f, 0x85, 0x80};
  static const uint8_t int8[] = {3, 0, 0, 0, 4, 0, 0,    0,    4, 0, 0, 0, 5, 0,   199, 1,
                                 4, 0, 0, 0, 0, 0, 0x80, 0x3f, 3, 0, 0, 0, 1, 129, 2};
  for (uint8_t variant = 0; variant < 2; variant++) {
    lcomm_format format = lcomm_format_of(&lcomm_codec_topk);
    format.variant = variant;
    stage s = make_stage(format, 100);
    s.count = 207;
    s.size = lcomm_topk_write(&format, kernels(), &entries, s.payload);
    encode(&s);
    assert_int_equal(s.stream_size, variant == 0 ? sizeof bf16 : sizeof int8);
    assert_memory_equal(s.stream, variant == 0 ? bf16 : int8, s.stream_size);
    s.count = 206;
    assert_string_equal(refusal(&s, s.stream, s.stream_size), "a position outside the view");
    free_stage(&s);
  }
}

static void exponents_are_coded_and_mantissas_stored(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_bf16), 1 << 20);
  make(&s, GRADIENT, 1 << 20);
  uint32_t first;
  memcpy(&first, s.stream, sizeof first);
  assert_int_equal(first, CHUNK);
  assert_in_range(s.stream_size, s.size / 2, s.size * 3 / 4);
  make(&s, CONSTANT, 1 << 20);
  assert_in_range(s.stream_size, 1, 2000);
  free_stage(&s);
}

/* One chunk of random codes, one in `zeros` of which is 0. */
static size_t coded_size(unsigned zeros) {
  stage s = make_stage(lcomm_format_of(&lcomm_codec_fp8e4m3), CHUNK);
  uint64_t seed = 5;
  s.count = CHUNK, s.size = s.bound;
  for (size_t i = s.size - CHUNK; i < s.size; i++) {
    s.payload[i] = (sample_u64(&seed) >> 40) % zeros != 0 ? (uint8_t)(seed >> 20) : 0;
  }
  encode(&s);
  size_t size = s.stream_size;
  free_stage(&s);
  return size;
}

static void a_chunk_that_gains_less_than_5_percent_is_stored(void **state) {
  (void)state;
  assert_true(coded_size(11) > CHUNK);
  assert_true(coded_size(7) < CHUNK / 100 * 95);
}

/* The exponents behind random mantissas and behind zeros. */
static void a_plane_is_coded_alike_whatever_stands_before_it(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_bf16), 20000);
  make(&s, GRADIENT, 20000);
  size_t exponents = s.stream_size - (4 + 20000);
  uint8_t *first = sample_memory(exponents);
  memcpy(first, s.stream + 4 + 20000, exponents);
  for (size_t i = 0; i < s.size; i += 2) {
    s.payload[i] &= 0x80, s.payload[i + 1] &= 0x7f;
  }
  encode(&s);
  assert_true(s.stream_size < exponents + 100);
  assert_memory_equal(s.stream + s.stream_size - exponents, first, exponents);
  free(first);
  free_stage(&s);
}

/* Chunks 0 and 8 are tried, those between are not. */
static void after_a_stored_chunk_seven_are_stored_untried(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_fp8e4m3), 10 * CHUNK);
  uint64_t seed = 3;
  s.count = 10 * CHUNK;
  s.size = s.bound;
  size_t head = s.size - 10 * CHUNK;
  for (size_t i = 0; i < CHUNK; i++) {
    s.payload[head + i] = (uint8_t)(sample_u64(&seed) >> 20);
  }
  encode(&s);
  assert_in_range(s.stream_size, 8 * CHUNK, 8 * CHUNK + 200);
  check_round_trip(&s);
  free_stage(&s);
}

/* zstd forgets a context's size when it thinks it too large for its work. */
static void many_short_payloads_leave_room_for_a_long_one(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_bf16), 1 << 17);
  make(&s, GRADIENT, 1 << 17);
  size_t size = s.stream_size;
  for (int i = 0; i < 1000; i++) {
    make(&s, CONSTANT, 100);
  }
  assert_true(s.stream_size < s.size / 2);
  make(&s, GRADIENT, 1 << 17);
  assert_int_equal(s.stream_size, size);
  free_stage(&s);
}

/* What is promised besides */

/* Of the sanitizers' runtime; not there in a build without one. */
extern int __sanitizer_install_malloc_and_free_hooks(void (*made)(const volatile void *, size_t),
                                                     void (*freed)(const volatile void *))
    __attribute__((weak));

static size_t allocations;

static void count_allocation(const volatile void *memory, size_t size) {
  (void)memory, (void)size;
  allocations++;
}

static void ignore_free(const volatile void *memory) {
  (void)memory;
}

static void check_no_allocation(stage *s) {
  make(s, GRADIENT, 100000);
  size_t size, before = allocations;
  encode(s);
  lcomm_lossless_decode(s->lossless, kernels(), s->stream, s->stream_size, s->count, s->back,
                        s->bound, &size, NULL);
  lcomm_lossless_decode(s->lossless, kernels(), s->stream, s->stream_size - 1, s->count, s->back,
                        s->bound, &size, NULL);
  assert_int_equal(allocations, before);
}

static void nothing_is_allocated(void **state) {
  (void)state;
  if (!__sanitizer_install_malloc_and_free_hooks) {
    skip();
  }
  assert_true(__sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free) > 0);
  for_each_stage(100000, check_no_allocation);
  assert_true(allocations > 0);
}

static void a_stage_that_cannot_be_is_no_memory(void **state) {
  (void)state;
  lcomm_lossless *lossless = NULL;
  lcomm_format format = lcomm_format_of(&lcomm_codec_topk);
  assert_int_equal(lcomm_lossless_create(&format, SIZE_MAX, &lossless), LCOMM_ERR_MEMORY);
  assert_null(lossless);
  lcomm_lossless_destroy(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(short_payloads_survive),
    cmocka_unit_test(payloads_of_several_chunks_survive),
    cmocka_unit_test(payloads_of_a_million_values_survive),
    cmocka_unit_test(sparse_payloads_survive_at_every_width),
    cmocka_unit_test(all_kernel_tables_make_the_same_stream),
    cmocka_unit_test(a_stream_has_the_bytes_the_format_says),
    cmocka_unit_test(a_sparse_stream_has_the_bytes_the_format_says),
    cmocka_unit_test(exponents_are_coded_and_mantissas_stored),
    cmocka_unit_test(a_chunk_that_gains_less_than_5_percent_is_stored),
    cmocka_unit_test(a_plane_is_coded_alike_whatever_stands_before_it),
    cmocka_unit_test(after_a_stored_chunk_seven_are_stored_untried),
    cmocka_unit_test(many_short_payloads_leave_room_for_a_long_one),
    cmocka_unit_test(nothing_is_allocated),
    cmocka_unit_test(a_stage_that_cannot_be_is_no_memory),
};
RUN_TESTS(tests)
