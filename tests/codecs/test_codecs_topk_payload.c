/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The bytes of a top-k payload: layout, reading, and what is refused. */

#include "tests/codecs/topk_reference.h"

#include <math.h>

#include "codecs/topk_payload.h"

static uint8_t *write_entries(const uint32_t *position, const float *value, size_t count,
                              size_t *size) {
  uint32_t *bits = sample_memory(count * sizeof *bits);
  uint32_t *places = sample_memory(count * sizeof *places);
  memcpy(bits, value, count * sizeof *bits);
  memcpy(places, position, count * sizeof *places);
  lcomm_entries entries = {.position = places, .bits = bits, .count = count};
  uint8_t *room = sample_memory(lcomm_topk_bound(count));
  *size = lcomm_topk_write(&entries, room);
  assert_true(*size <= lcomm_topk_bound(count));
  uint8_t *payload = sample_memory(*size);
  memcpy(payload, room, *size);
  free(room);
  free(bits);
  free(places);
  return payload;
}

static void payload_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const uint32_t position[] = {2, 3, 9};
  const float value[] = {1.0f, -2.0f, 0.5f};
  /* deltas 2, 0, 5 in 3 bits: 101'000'010 */
  const uint8_t expected[] = {3, 0, 0, 0, 3, 0x42, 0x01, 0x80, 0x3f, 0x00, 0xc0, 0x00, 0x3f};
  size_t size;
  uint8_t *payload = write_entries(position, value, 3, &size);
  assert_int_equal(size, sizeof expected);
  assert_memory_equal(payload, expected, sizeof expected);
  free(payload);
}

static void consecutive_positions_need_no_bits(void **state) {
  (void)state;
  uint32_t position[64];
  float value[64] = {0};
  size_t size;
  for (uint32_t i = 0; i < 64; i++)
    position[i] = i;
  uint8_t *payload = write_entries(position, value, 64, &size);
  assert_int_equal(size, 4 + 2 + 2 * 64);
  free(payload);
}

/* Every width, block lengths around 32, and the largest position. */
static void every_width_survives_a_round_trip(void **state) {
  (void)state;
  uint64_t random = 3;
  for (uint32_t width = 0; width <= 32; width++) {
    for (size_t count = 1; count <= 70; count++) {
      uint32_t position[70];
      float value[70];
      uint64_t next = 0, limit = (((uint64_t)1 << width) - 1) / (width > 25 ? count : 1);
      for (size_t i = 0; i < count; i++) {
        next += limit > 0 ? sample_u64(&random) % (limit + 1) : 0;
        position[i] = (uint32_t)next++;
        value[i] = lcomm_bf16_to_f32(lcomm_f32_to_bf16(sample_normal(&random)));
      }
      if (width == 32)
        position[count - 1] = 0xfffffffeu;
      size_t size;
      uint64_t entries;
      uint8_t *payload = write_entries(position, value, count, &size);
      assert_int_equal(lcomm_topk_check(payload, size, 0xffffffffu, &entries), LCOMM_OK);
      assert_int_equal(entries, count);
      assert_int_equal(lcomm_topk_check(payload, size, (uint64_t)position[count - 1] + 1, NULL),
                       LCOMM_OK);
      assert_int_equal(lcomm_topk_check(payload, size, position[count - 1], NULL), LCOMM_ERR_WIRE);
      entry_list slow = read_payload(payload, size);
      lcomm_topk_reader reader = lcomm_topk_open(payload);
      lcomm_topk_block block = {.count = 0};
      for (size_t i = 0; i < count; i++) {
        if (i % LCOMM_TOPK_BLOCK == 0)
          lcomm_topk_read(&reader, &block);
        assert_int_equal(block.position[i % LCOMM_TOPK_BLOCK], position[i]);
        assert_true(block.value[i % LCOMM_TOPK_BLOCK] == value[i]);
        assert_int_equal(slow.entry[i].position, position[i]);
      }
      lcomm_topk_read(&reader, &block);
      assert_int_equal(block.count, 0);
      free(slow.entry);
      free(payload);
    }
  }
}

enum { VIEW = 9000 };

static uint8_t *encode_view(double density, size_t *size) {
  const uint64_t count = VIEW;
  lcomm_topk_shape shape = {.base_count = count,
                            .parts = 1,
                            .outputs = 1,
                            .density = density,
                            .segment_ends = &count,
                            .segments = 1};
  lcomm_topk *topk;
  assert_int_equal(lcomm_topk_create(&shape, &topk), LCOMM_OK);
  float *base = sample_memory(VIEW * sizeof *base);
  uint64_t random = 4;
  for (size_t i = 0; i < VIEW; i++)
    base[i] = sample_normal(&random);
  uint8_t *room = sample_memory(lcomm_topk_output_bound(topk, 0));
  lcomm_topk_encode(topk, lcomm_kernels_best(), base, NULL, LCOMM_TOPK_HOLD, &room, size);
  uint8_t *payload = sample_memory(*size);
  memcpy(payload, room, *size);
  free(room);
  free(base);
  lcomm_topk_destroy(topk);
  return payload;
}

/* A payload that passed is used as its readers use it: all of its positions
 * must lie inside the view, which a sanitizer watches. */
static void use(const uint8_t *payload, uint64_t count, uint64_t entries) {
  float *value = sample_memory((size_t)count * sizeof *value);
  lcomm_topk_add(payload, 1, 0, 1.0f, value);
  lcomm_topk_settle(payload, payload, 1, 0, value);
  lcomm_topk_decode(payload, count, 1, 0, 1.0f, value);
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; i++)
    found += value[i] != 0.0f;
  assert_true(found <= entries);
  free(value);
}

static void check_copy(const uint8_t *payload, size_t size) {
  uint8_t *exact = malloc(size > 0 ? size : 1);
  assert_non_null(exact);
  memcpy(exact, payload, size);
  uint64_t entries = 77;
  lcomm_status status = lcomm_topk_check(exact, size, VIEW, &entries);
  if (status == LCOMM_OK) {
    assert_true(entries <= VIEW);
    use(exact, VIEW, entries);
  } else {
    assert_int_equal(status, LCOMM_ERR_WIRE);
    assert_int_equal(entries, 77);
  }
  free(exact);
}

static void truncated_payloads_are_refused(void **state) {
  (void)state;
  size_t size;
  uint8_t *payload = encode_view(0.01, &size);
  for (size_t length = 0; length < size; length++) {
    uint8_t *exact = sample_memory(length);
    memcpy(exact, payload, length);
    uint8_t *from = length > 0 ? exact : NULL;
    assert_int_equal(lcomm_topk_check(from, length, VIEW, NULL), LCOMM_ERR_WIRE);
    free(exact);
  }
  uint8_t *longer = sample_memory(size + 1);
  memcpy(longer, payload, size);
  assert_int_equal(lcomm_topk_check(longer, size + 1, VIEW, NULL), LCOMM_ERR_WIRE);
  assert_int_equal(lcomm_topk_check(longer, size, VIEW, NULL), LCOMM_OK);
  free(longer);
  free(payload);
}

static void mutated_payloads_are_refused_or_harmless(void **state) {
  (void)state;
  size_t size;
  uint8_t *payload = encode_view(0.005, &size);
  const uint8_t flips[] = {0x01, 0x02, 0x10, 0x40, 0x80, 0xff};
  for (size_t i = 0; i < size; i++) {
    for (size_t f = 0; f < sizeof flips; f++) {
      payload[i] ^= flips[f];
      check_copy(payload, size);
      payload[i] ^= flips[f];
    }
  }
  free(payload);
}

static void random_bytes_are_refused_or_harmless(void **state) {
  (void)state;
  uint64_t random = 9;
  for (int round = 0; round < 3000; round++) {
    uint8_t bytes[200];
    size_t size = (size_t)(sample_u64(&random) % sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (uint8_t)(sample_u64(&random) >> 20);
    uint32_t entries = (uint32_t)(sample_u64(&random) % 40);
    memcpy(bytes, &entries, sizeof entries);
    bytes[4] %= 36; /* a likely width */
    check_copy(bytes, size);
  }
}

static void impossible_numbers_are_refused(void **state) {
  (void)state;
  const uint8_t too_many[] = {2, 0, 0, 0, 0, 0, 0, 0, 0};
  assert_int_equal(lcomm_topk_check(too_many, sizeof too_many, 2, NULL), LCOMM_OK);
  assert_int_equal(lcomm_topk_check(too_many, sizeof too_many, 1, NULL), LCOMM_ERR_WIRE);
  uint8_t wide[5 + 33 + 2] = {1, 0, 0, 0, 33};
  assert_int_equal(lcomm_topk_check(wide, sizeof wide, 10, NULL), LCOMM_ERR_WIRE);
  /* Two deltas of 2^32 - 1 are past any view, not around it. */
  const uint8_t around[] = {2,    0,    0,    0,    32,   0xff, 0xff, 0xff, 0xff,
                            0xff, 0xff, 0xff, 0xff, 0x80, 0x3f, 0x80, 0x3f};
  assert_int_equal(lcomm_topk_check(around, sizeof around, 0xffffffffu, NULL), LCOMM_ERR_WIRE);
  const uint8_t empty[] = {0, 0, 0, 0};
  assert_int_equal(lcomm_topk_check(empty, sizeof empty, 0, NULL), LCOMM_OK);
}

static void add_scales_and_reaches_only_its_part(void **state) {
  (void)state;
  const uint32_t position[] = {0, 5, LCOMM_TILE - 1, LCOMM_TILE, 2 * LCOMM_TILE + 1};
  const float value[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
  enum { N = 9 * LCOMM_TILE };
  size_t size;
  uint8_t *payload = write_entries(position, value, 5, &size);
  static float base[N];
  for (uint32_t part = 0; part < 3; part++) {
    for (size_t i = 0; i < N; i++)
      base[i] = 7.0f;
    lcomm_topk_decode(payload, N, 3, part, 0.5f, base);
    lcomm_topk_add(payload, 3, part, 2.0f, base);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(payload_has_the_bytes_the_format_says),
      cmocka_unit_test(consecutive_positions_need_no_bits),
      cmocka_unit_test(every_width_survives_a_round_trip),
      cmocka_unit_test(truncated_payloads_are_refused),
      cmocka_unit_test(mutated_payloads_are_refused_or_harmless),
      cmocka_unit_test(random_bytes_are_refused_or_harmless),
      cmocka_unit_test(impossible_numbers_are_refused),
      cmocka_unit_test(add_scales_and_reaches_only_its_part),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
