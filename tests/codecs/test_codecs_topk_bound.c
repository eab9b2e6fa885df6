/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The bound of a top-k payload: no payload exceeds it, and it is not far off. */

#include "codecs/codec_topk_payload.h"
#include "tests/codecs/topk_samples.h"
#include "tests/support/unit_tests.h"

static size_t values_size(int variant, uint64_t entries) {
  return (size_t)(variant == LCOMM_TOPK_INT8 ? (entries + 127) / 128 * 4 + entries : 2 * entries);
}

/* What was reserved before there was a bound: 4 bytes for every position. */
static size_t widest(int variant, uint64_t entries) {
  return 4 + (size_t)((entries + 31) / 32 + 4 * entries) + values_size(variant, entries);
}

/* The size of a payload with these positions. */
static size_t written(int variant, uint32_t *position, size_t entries) {
  float *value = sample_memory(entries * sizeof *value);
  uint8_t *payload = sample_memory(widest(variant, entries) + 64);
  lcomm_entries all = {.position = position, .value = value, .count = entries};
  size_t size = lcomm_topk_write(format_of(variant), &lcomm_kernels_scalar, &all, payload);
  free(value);
  free(payload);
  return size;
}

static void an_empty_payload_is_its_head(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    assert_int_equal(lcomm_topk_bound(format_of(variant), 0, 1000), 4);
    assert_int_equal(lcomm_topk_bound(format_of(variant), 1000, 0), 4);
  }
}

/* Every set of positions there is. */
static void no_set_of_positions_exceeds_it(void **state) {
  (void)state;
  for (uint32_t count = 1; count <= 13; count++) {
    for (uint32_t set = 0; set < 1u << count; set++) {
      uint32_t position[16];
      size_t entries = 0;
      for (uint32_t i = 0; i < count; i++) {
        if (set >> i & 1) {
          position[entries++] = i;
        }
      }
      for (int variant = 0; variant < VARIANTS; variant++) {
        assert_true(written(variant, position, entries) <=
                    lcomm_topk_bound(format_of(variant), entries, count));
      }
    }
  }
}

/* Every way to give widths to up to 3 blocks; the deltas sum up to less than
 * the count. */
static size_t most_index_bytes(uint32_t entries, uint64_t count) {
  uint32_t blocks = (entries + 31) / 32, last = entries - 32 * (blocks - 1);
  size_t most = 0;
  for (uint32_t code = 0; code < 12 * 12 * 12; code++) {
    const uint32_t width[] = {code % 12, code / 12 % 12, code / 144};
    uint64_t sum = 0;
    size_t bytes = blocks;
    for (uint32_t b = 0; b < blocks; b++) {
      sum += width[b] > 0 ? 1u << (width[b] - 1) : 0;
      bytes += ((b + 1 < blocks ? 32 : last) * width[b] + 7) / 8;
    }
    most = sum < count && bytes > most ? bytes : most;
  }
  return most;
}

static void it_is_the_best_choice_of_widths(void **state) {
  (void)state;
  for (uint32_t entries = 1; entries <= 96; entries += entries % 32 == 30 ? 1 : 3) {
    for (uint64_t count = entries; count < 1024; count += 1 + count / 9) {
      for (int variant = 0; variant < VARIANTS; variant++) {
        assert_int_equal(lcomm_topk_bound(format_of(variant), entries, count),
                         4 + most_index_bytes(entries, count) + values_size(variant, entries));
      }
    }
  }
}

static void it_grows_with_entries_and_count(void **state) {
  (void)state;
  const uint64_t counts[] = {1,       2,           31,          32,          33,
                             64,      100,         4095,        4096,        65537,
                             1000000, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu};
  for (int variant = 0; variant < VARIANTS; variant++) {
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      size_t before = 4;
      for (uint64_t entries = 1; entries <= 5000; entries++) {
        size_t bound = lcomm_topk_bound(format_of(variant), entries, counts[c]);
        uint64_t possible = entries < counts[c] ? entries : counts[c];
        assert_true(bound >= before);
        assert_true(bound <= widest(variant, possible));
        assert_true(c == 0 ||
                    bound >= lcomm_topk_bound(format_of(variant), entries, counts[c - 1]));
        before = bound;
      }
    }
  }
}

/* Positions with a delta of `wide` at the begin of every block and `other`
 * ones elsewhere, as many as fit. */
static size_t place_entries(uint32_t *position, size_t entries, uint64_t count, uint64_t wide,
                            uint64_t other) {
  uint64_t next = 0;
  for (size_t i = 0; i < entries; i++) {
    next += i % 32 == 0 ? wide : other;
    if (next >= count) {
      return i;
    }
    position[i] = (uint32_t)next++;
  }
  return entries;
}

/* One wide delta in each block costs the most; equal deltas cost most of that
 * when all are a power of two. */
static void hostile_and_random_payloads_keep_to_it(void **state) {
  (void)state;
  enum { MOST = 3000 };
  static uint32_t position[MOST];
  uint64_t random = 7;
  for (int round = 0; round < 4000; round++) {
    uint64_t count = 1 + (sample_u64(&random) >> (32 + sample_u64(&random) % 32)) % 0xffffffffu;
    size_t entries = 1 + (size_t)(sample_u64(&random) % MOST);
    uint64_t blocks = (entries + 31) / 32, room = count / blocks;
    uint64_t wide = (uint64_t)1 << sample_u64(&random) % 33;
    if (round % 3 == 0) { /* the widest that all blocks can have */
      for (wide = 1; wide * 2 + 31 < room; wide *= 2) {
        ;
      }
    }
    uint64_t other = round % 3 == 1 ? wide : sample_u64(&random) % 2;
    size_t placed = place_entries(position, entries, count, wide, other);
    for (int variant = 0; variant < VARIANTS; variant++) {
      size_t size = written(variant, position, placed);
      assert_true(size <= lcomm_topk_bound(format_of(variant), placed, count));
      assert_true(size <= lcomm_topk_bound(format_of(variant), entries, count));
    }
  }
}

/* So the bound could not be much smaller. */
static void hostile_payloads_reach_it(void **state) {
  (void)state;
  enum { ENTRIES = 2560, BLOCKS = ENTRIES / 32 };
  static uint32_t position[ENTRIES];
  for (unsigned bits = 8; bits < 25; bits++) {
    uint64_t wide = (uint64_t)1 << bits, count = BLOCKS * (wide + 32);
    assert_int_equal(place_entries(position, ENTRIES, count, wide, 0), ENTRIES);
    size_t bound = lcomm_topk_bound(format_of(0), ENTRIES, count);
    size_t size = written(LCOMM_VARIANT_PLAIN, position, ENTRIES);
    assert_true(size <= bound && bound - size <= 4 * (1 + BLOCKS * 32 / wide));
  }
}

/* At 1 % about 11 bits for a position, where 32 were reserved. */
static void a_hundredth_needs_half_of_what_was_reserved(void **state) {
  (void)state;
  const uint64_t entries = 671089, count = 67108864;
  size_t bound = lcomm_topk_bound(format_of(0), entries, count);
  assert_true((double)bound < 0.61 * (double)widest(0, entries));
  assert_true((double)bound < (double)entries * (2.0 + (1 + 4 * (6.65 + 5 + 1)) / 32));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_empty_payload_is_its_head),
    cmocka_unit_test(no_set_of_positions_exceeds_it),
    cmocka_unit_test(it_is_the_best_choice_of_widths),
    cmocka_unit_test(it_grows_with_entries_and_count),
    cmocka_unit_test(hostile_and_random_payloads_keep_to_it),
    cmocka_unit_test(hostile_payloads_reach_it),
    cmocka_unit_test(a_hundredth_needs_half_of_what_was_reserved),
};
RUN_TESTS(tests)
