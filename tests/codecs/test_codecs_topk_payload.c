/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The bytes of a top-k payload: layout and reading. */

#include "codecs/codec_topk_payload.h"
#include "tests/codecs/topk_reference.h"
#include "tests/codecs/topk_samples.h"
#include "tests/support/unit_tests.h"

/* A payload in memory of exactly its size. */
static uint8_t *write_entries(int variant, const uint32_t *position, const float *value,
                              size_t count, size_t *size) {
  float *values = sample_memory(count * sizeof *values);
  uint32_t *places = sample_memory(count * sizeof *places);
  memcpy(values, value, count * sizeof *values);
  memcpy(places, position, count * sizeof *places);
  lcomm_entries entries = {.position = places, .value = values, .count = count};
  size_t bound =
      lcomm_topk_bound(format_of(variant), count, count > 0 ? places[count - 1] + 1ull : 0);
  uint8_t *room = sample_memory(bound);
  *size = lcomm_topk_write(format_of(variant), lcomm_kernels_best(), &entries, room);
  assert_true(*size <= bound);
  uint8_t *payload = sample_memory(*size);
  memcpy(payload, room, *size);
  free(room);
  free(values);
  free(places);
  return payload;
}

/* Of entries 2, 3 and 9: deltas 2, 0, 5 in 3 bits, 101'000'010. */
static void expect_payload(int variant, const float value[3], const uint8_t *expected,
                           size_t expected_size) {
  const uint32_t position[] = {2, 3, 9};
  size_t size;
  uint8_t *payload = write_entries(variant, position, value, 3, &size);
  assert_int_equal(size, expected_size);
  assert_memory_equal(payload, expected, expected_size);
  free(payload);
}

static void payload_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const float value[] = {1.0f, -2.0f, 0.5f};
  const uint8_t expected[] = {3, 0, 0, 0, 3, 0x42, 0x01, 0x80, 0x3f, 0x00, 0xc0, 0x00, 0x3f};
  expect_payload(LCOMM_VARIANT_PLAIN, value, expected, sizeof expected);
}

static void int8_payload_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const float value[] = {1.0f, -127.0f, 0.5f};
  /* scale 1, codes 1, -127 and 0: a half goes to the even neighbour */
  const uint8_t expected[] = {3, 0, 0, 0, 3, 0x42, 0x01, 0x00, 0x00, 0x80, 0x3f, 0x01, 0x81, 0x00};
  expect_payload(LCOMM_TOPK_INT8, value, expected, sizeof expected);
}

static void consecutive_positions_need_no_bits(void **state) {
  (void)state;
  uint32_t position[64];
  float value[64] = {0};
  size_t size;
  for (uint32_t i = 0; i < 64; i++) {
    position[i] = i;
  }
  uint8_t *payload = write_entries(LCOMM_VARIANT_PLAIN, position, value, 64, &size);
  assert_int_equal(size, 4 + 2 + 2 * 64);
  free(payload);
  payload = write_entries(LCOMM_TOPK_INT8, position, value, 64, &size);
  assert_int_equal(size, 4 + 2 + 4 + 64);
  free(payload);
}

/* The payload against the bit-by-bit reader, whose values are right by the
 * tests of the encoder. */
static void check_written(int variant, const uint32_t *position, const float *value, size_t count) {
  const lcomm_format *format = format_of(variant);
  uint64_t entries, end = (uint64_t)position[count - 1] + 1;
  size_t size;
  uint8_t *payload = write_entries(variant, position, value, count, &size);
  assert_int_equal(lcomm_topk_check(format, payload, size, 0xffffffffu, &entries), LCOMM_OK);
  assert_int_equal(entries, count);
  assert_int_equal(lcomm_topk_check(format, payload, size, end, NULL), LCOMM_OK);
  assert_int_equal(lcomm_topk_check(format, payload, size, end - 1, NULL), LCOMM_ERR_WIRE);
  entry_list slow = read_payload(format, payload, size);
  lcomm_topk_reader reader = lcomm_topk_open(format, payload);
  lcomm_topk_block block = {.count = 0};
  for (size_t i = 0; i < count; i++) {
    if (i % LCOMM_TOPK_BLOCK == 0) {
      lcomm_topk_read(&reader, &block);
    }
    assert_int_equal(block.position[i % LCOMM_TOPK_BLOCK], position[i]);
    assert_int_equal(slow.entry[i].position, position[i]);
    assert_same_float(block.value[i % LCOMM_TOPK_BLOCK], slow.entry[i].sent);
    if (variant == LCOMM_VARIANT_PLAIN) {
      assert_same_float(slow.entry[i].sent, value[i]);
    }
  }
  lcomm_topk_read(&reader, &block);
  assert_int_equal(block.count, 0);
  free(slow.entry);
  free(payload);
}

/* Every width, block lengths around 32, and the largest position. */
static void every_width_survives_a_round_trip(void **state) {
  (void)state;
  enum { MOST = 140 };
  uint64_t random = 3;
  for (uint32_t width = 0; width <= 32; width++) {
    for (size_t count = 1; count <= MOST; count += count < 70 ? 1 : 29) {
      uint32_t position[MOST];
      float value[MOST];
      uint64_t next = 0, limit = (((uint64_t)1 << width) - 1) / (width > 24 ? count : 1);
      for (size_t i = 0; i < count; i++) {
        next += limit > 0 ? sample_u64(&random) % (limit + 1) : 0;
        position[i] = (uint32_t)next++;
        value[i] = lcomm_bf16_to_f32(lcomm_f32_to_bf16(sample_normal(&random)));
      }
      if (width == 32) {
        position[count - 1] = 0xfffffffeu;
      }
      check_written(LCOMM_VARIANT_PLAIN, position, value, count);
      check_written(LCOMM_TOPK_INT8, position, value, count);
    }
  }
}

/* One delta needs the width, the others hardly any of it: each in turn. */
static void a_wide_delta_may_stand_anywhere(void **state) {
  (void)state;
  enum { COUNT = 45 };
  uint32_t position[COUNT];
  float value[COUNT] = {0};
  for (uint32_t width = 1; width <= 32; width++) {
    for (size_t place = 0; place < COUNT; place++) {
      uint64_t next = 0, wide = width < 32 ? ((uint64_t)1 << width) - 1 : 0xffffff00u;
      for (size_t i = 0; i < COUNT; i++) {
        next += i == place ? wide : i % 2 * (width > 1);
        position[i] = (uint32_t)next++;
      }
      check_written(LCOMM_VARIANT_PLAIN, position, value, COUNT);
    }
  }
}

static void add_scales_and_reaches_only_its_part(void **state) {
  (void)state;
  const uint32_t position[] = {0, 5, LCOMM_TILE - 1, LCOMM_TILE, 2 * LCOMM_TILE + 1};
  const float value[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
  enum { N = 9 * LCOMM_TILE };
  size_t size;
  uint8_t *payload = write_entries(LCOMM_VARIANT_PLAIN, position, value, 5, &size);
  static float base[N];
  for (uint32_t part = 0; part < 3; part++) {
    for (size_t i = 0; i < N; i++) {
      base[i] = 7.0f;
    }
    lcomm_topk_decode(format_of(0), payload, N, 3, part, 0.5f, base);
    lcomm_topk_add(format_of(0), payload, 3, part, 2.0f, base);
    size_t next = 0;
    for (size_t i = 0; i < N; i++) {
      if (lcomm_stripe_owner(i, 3) != part) {
        assert_true(base[i] == 7.0f);
        continue;
      }
      bool hit = next < 5 && lcomm_stripe_local(i, 3) == position[next];
      assert_true(base[i] == (hit ? 2.5f * value[next] : 0.0f));
      next += hit;
    }
    assert_int_equal(next, 5);
  }
  free(payload);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(payload_has_the_bytes_the_format_says),
    cmocka_unit_test(int8_payload_has_the_bytes_the_format_says),
    cmocka_unit_test(consecutive_positions_need_no_bits),
    cmocka_unit_test(every_width_survives_a_round_trip),
    cmocka_unit_test(a_wide_delta_may_stand_anywhere),
    cmocka_unit_test(add_scales_and_reaches_only_its_part),
};
RUN_TESTS(tests)
