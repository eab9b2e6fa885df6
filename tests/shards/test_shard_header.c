/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What messages about a piece begin with. */

#include <string.h>

#include "libcomm/shards/shard_header.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 10, SIZE = LCOMM_SHARD_HEADER_FIXED + 2 };

static const uint8_t expected[SIZE] = {'l', 'c', 's', 'h', 2, 2, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 5,
                                       0,   0,   0,   0,   0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 2,
                                       0,   0,   0,   0,   0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 5, 2};

static void a_result_has_the_bytes_of_the_format(void **state) {
  (void)state;
  static const uint8_t mask[2] = {5, 2};
  uint8_t bytes[SIZE];
  lcomm_shard_header read, header = {.kind = LCOMM_SHARD_RESULT,
                                     .vector = 7,
                                     .owner = 6,
                                     .used = 3,
                                     .round = 5,
                                     .closed = 9,
                                     .size = 512,
                                     .mask = mask};
  assert_int_equal(lcomm_shard_header_size(RANKS), SIZE);
  lcomm_shard_header_write(&header, RANKS, bytes);
  assert_memory_equal(bytes, expected, SIZE);
  assert_true(lcomm_shard_header_read(bytes, SIZE, RANKS, &read));
  assert_true(read.kind == header.kind && read.vector == 7 && read.owner == 6 && read.used == 3 &&
              read.round == 5 && read.closed == 9 && read.size == 512 &&
              memcmp(read.mask, mask, 2) == 0);
}

/* Of each kind: ranks that it is of, and bytes that follow. */
static void other_kinds_say_nothing_of_a_result(void **state) {
  (void)state;
  static const uint8_t mask[2] = {5, 0};
  static const lcomm_shard_header kinds[3] = {
      {.kind = LCOMM_SHARD_CONTRIBUTION, .round = 5, .size = 1, .used = 2, .mask = mask},
      {.kind = LCOMM_SHARD_NOTICE, .round = 5, .used = 2, .mask = mask},
      {.kind = LCOMM_SHARD_REQUEST, .round = 5}};
  static const size_t places[] = {12, 24, 32, 48, SIZE - 1};
  for (int kind = 0; kind < 3; kind++) {
    uint8_t bytes[SIZE];
    lcomm_shard_header read;
    lcomm_shard_header_write(&kinds[kind], RANKS, bytes);
    assert_true(lcomm_shard_header_read(bytes, SIZE, RANKS, &read));
    assert_true(read.kind == kinds[kind].kind && read.used == kinds[kind].used);
    for (size_t at = 0; at < sizeof(places) / sizeof(places[0]); at++) {
      lcomm_shard_header_write(&kinds[kind], RANKS, bytes);
      bytes[places[at]] ^= 1;
      assert_false(lcomm_shard_header_read(bytes, SIZE, RANKS, &read));
    }
  }
}

static void any_other_byte_where_it_matters_is_refused(void **state) {
  (void)state;
  static const struct {
    int at;
    uint8_t byte;
  } bad[] = {{0, 'L'}, {4, 1},  {5, 0},  {5, 1},    {5, 3},   {5, 4},  {5, 5},
             {6, 1},   {12, 2}, {12, 0}, {24, 5},   {24, 22}, {31, 1}, {33, 0},
             {40, 10}, {43, 1}, {44, 1}, {47, 128}, {48, 4},  {49, 6}, {49, 4}};
  lcomm_shard_header read;
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    uint8_t bytes[SIZE];
    memcpy(bytes, expected, SIZE);
    bytes[bad[i].at] = bad[i].byte;
    assert_false(lcomm_shard_header_read(bytes, SIZE, RANKS, &read));
  }
  for (size_t size = 0; size < SIZE; size++) {
    assert_false(lcomm_shard_header_read(expected, size, RANKS, &read));
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_result_has_the_bytes_of_the_format),
    cmocka_unit_test(other_kinds_say_nothing_of_a_result),
    cmocka_unit_test(any_other_byte_where_it_matters_is_refused),
};
RUN_TESTS(tests)
