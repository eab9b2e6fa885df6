/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Headers that were damaged on their way, and headers of other calls. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/engine/engine.h"
#include "libcomm/engine/header_check.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

enum { BITS = 8 * LCOMM_WIRE_HEADER_SIZE, CHECKSUM_BIT = 8 * 32, SIZE_BIT = 8 * 24 };

/* ------------------------------------------------------------ the verdict */

typedef struct expectation {
  const lcomm_codec *codec;
  unsigned block, variant, zstd, checksum;
  lcomm_dtype dtype;
  uint64_t count;
  bool as_they_are; /* elements of dtype */
} expectation;

static const expectation expectations[] = {
    {.codec = &lcomm_codec_none, .count = 1000},
    {.codec = &lcomm_codec_none, .count = 0},
    {.codec = &lcomm_codec_none, .dtype = LCOMM_INT64, .count = 77, .as_they_are = true},
    {.codec = &lcomm_codec_none, .dtype = LCOMM_BFLOAT16, .count = 77, .as_they_are = true},
    {.codec = &lcomm_codec_fp16, .count = 4096},
    {.codec = &lcomm_codec_fp16, .variant = 1, .count = 1},
    {.codec = &lcomm_codec_bf16, .dtype = LCOMM_BFLOAT16, .count = 1u << 20},
    {.codec = &lcomm_codec_fp8e4m3, .count = 129},
    {.codec = &lcomm_codec_int8, .block = 1, .count = 100000, .checksum = 1},
    {.codec = &lcomm_codec_int4, .count = 31},
    {.codec = &lcomm_codec_int8, .zstd = 1, .count = 100000},
    {.codec = &lcomm_codec_topk, .count = 1u << 24, .checksum = 1},
    {.codec = &lcomm_codec_topk, .variant = 1, .zstd = 1, .count = 5000},
};

enum { EXPECTATIONS = sizeof(expectations) / sizeof(expectations[0]) };

static size_t size_of(const expectation *it, const lcomm_format *format) {
  if (it->as_they_are) {
    return it->count * lcomm_dtype_size(it->dtype);
  }
  return lcomm_format_is_sparse(format) ? it->count / 8 : lcomm_payload_size(format, it->count);
}

/* What is expected, and the bytes of a message that is. */
static lcomm_header_expected expect(const expectation *it, uint8_t *bytes) {
  lcomm_format format = lcomm_format_of(it->codec);
  format.block = it->codec->blocks[it->block];
  format.variant = (uint8_t)it->variant;
  format.zstd = it->zstd != 0;
  lcomm_header_expected expected = {.header = {.version = LCOMM_WIRE_VERSION,
                                               .dtype = (uint8_t)it->dtype,
                                               .flags = it->checksum ? LCOMM_WIRE_CHECKSUM : 0,
                                               .parameters = 0x8badf00d,
                                               .sequence = 2 * 12345,
                                               .count = it->count,
                                               .payload_size = size_of(it, &format)},
                                    .exact_size = !lcomm_format_is_sparse(&format) && !format.zstd};
  lcomm_wire_set_format(&expected.header, &format);
  lcomm_wire_header sent = expected.header;
  sent.checksum = it->checksum ? UINT64_C(0x123456789abcdef0) : 0;
  lcomm_wire_pack(&sent, bytes);
  return expected;
}

static lcomm_header_verdict judge(const uint8_t *bytes, const lcomm_header_expected *expected) {
  lcomm_wire_header header;
  if (lcomm_wire_unpack(bytes, LCOMM_WIRE_HEADER_SIZE, &header, NULL) != LCOMM_OK) {
    return (lcomm_header_verdict){.status = LCOMM_ERR_WIRE, .field = LCOMM_HEADER_FIELD_COUNT};
  }
  return lcomm_header_check(&header, expected);
}

static void flip(uint8_t *bytes, int bit) {
  bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* The payload shows it: another checksum, or another length than it says. */
static bool shows_later(const lcomm_header_expected *expected, int bit) {
  bool checksum = (expected->header.flags & LCOMM_WIRE_CHECKSUM) && bit >= CHECKSUM_BIT;
  return checksum || (!expected->exact_size && bit >= SIZE_BIT && bit < CHECKSUM_BIT);
}

/* A line of cmocka's table: the property holds of each expectation, by its number. */
#define EXPECTATION_TEST(property)                                                                 \
  {                                                                                                \
    .name = #property, .test_func = test_each_expectation, .initial_state = &(header_property) {   \
      property                                                                                     \
    }                                                                                              \
  }

typedef struct header_property {
  void (*holds)(int number);
} header_property;

static void test_each_expectation(void **state) {
  const header_property *property = *state;
  for (int i = 0; i < EXPECTATIONS; i++) {
    property->holds(i);
  }
}

static void a_header_as_it_was_sent_is_accepted(int number) {
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_header_expected expected = expect(&expectations[number], bytes);
  assert_int_equal(judge(bytes, &expected).status, LCOMM_OK);
}

static void a_flipped_bit_is_damage_and_no_other_call(int number) {
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_header_expected expected = expect(&expectations[number], bytes);
  for (int bit = 0; bit < BITS; bit++) {
    flip(bytes, bit);
    lcomm_header_verdict verdict = judge(bytes, &expected);
    if (verdict.status == LCOMM_OK) {
      assert_true(shows_later(&expected, bit));
    } else {
      assert_int_equal(verdict.status, LCOMM_ERR_WIRE);
      assert_true(verdict.field == LCOMM_HEADER_FIELD_COUNT || verdict.theirs != verdict.ours);
    }
    flip(bytes, bit);
  }
}

static void two_flipped_bits_are_damage_and_no_other_call(int number) {
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_header_expected expected = expect(&expectations[number], bytes);
  for (int first = 0; first < BITS; first++) {
    flip(bytes, first);
    for (int second = first + 1; second < BITS; second++) {
      flip(bytes, second);
      lcomm_status status = judge(bytes, &expected).status;
      assert_int_not_equal(status, LCOMM_ERR_MISMATCH);
      assert_true(status != LCOMM_OK ||
                  (shows_later(&expected, first) && shows_later(&expected, second)));
      flip(bytes, second);
    }
    flip(bytes, first);
  }
}

/* Headers that another call would have sent in this place. */
static void a_header_of_another_call_is_a_mismatch_that_names_what_differs(int number) {
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_header_expected ours = expect(&expectations[number], bytes);
  for (int j = 0; j < EXPECTATIONS; j++) {
    lcomm_header_expected theirs = expect(&expectations[j], bytes);
    theirs.header.parameters = 0x13579bdf;
    lcomm_header_verdict verdict = lcomm_header_check(&theirs.header, &ours);
    assert_int_equal(verdict.status, LCOMM_ERR_MISMATCH);
    assert_true(verdict.theirs != verdict.ours);
    assert_true(verdict.field != LCOMM_HEADER_PAYLOAD_SIZE);
    assert_true(number != j || verdict.field == LCOMM_HEADER_PARAMETERS);
    assert_true(theirs.header.count == ours.header.count || verdict.field == LCOMM_HEADER_COUNT);
  }
}

static void a_size_that_is_not_that_of_its_count_is_damage(int number) {
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_header_expected ours = expect(&expectations[number], bytes);
  lcomm_wire_header theirs = ours.header;
  theirs.parameters = 0x13579bdf;
  theirs.payload_size += 3;
  lcomm_header_verdict verdict = lcomm_header_check(&theirs, &ours);
  assert_int_equal(verdict.status, ours.exact_size ? LCOMM_ERR_WIRE : LCOMM_ERR_MISMATCH);
}

/* Room for a payload whose size its count does not say is made for the largest one. */
static void a_payload_that_has_no_room_is_damage(int number) {
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_header_expected ours = expect(&expectations[number], bytes);
  lcomm_wire_header theirs = ours.header;
  theirs.payload_size++;
  lcomm_header_verdict verdict = lcomm_header_check(&theirs, &ours);
  assert_int_equal(verdict.status, LCOMM_ERR_WIRE);
  assert_int_equal(verdict.field, LCOMM_HEADER_PAYLOAD_SIZE);
}

/* -------------------------------------------------- on the way to a peer */

static const lcomm_transport_table *usual;
static uint8_t copies[64][1 << 14]; /* a message stays where it is until it is over */
static int flipped_bit, copied;

static lcomm_status send_damaged(lcomm_transport *transport, int peer, uint32_t tag,
                                 const void *bytes, size_t size, lcomm_transfer *transfer) {
  if (flipped_bit >= 0 && !(tag & LCOMM_TAG_CONTROL) && size <= sizeof(copies[0])) {
    uint8_t *copy = copies[copied++ % 64];
    memcpy(copy, bytes, size);
    flip(copy, flipped_bit);
    flipped_bit = -1;
    bytes = copy;
  }
  return usual->send(transport, peer, tag, bytes, size, transfer);
}

static void sum_with_a_damaged_header(forked *self, const char *policy, uint64_t count, int bit) {
  static float buffer[1 << 14];
  static lcomm_transport_table table;
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.policy = policy;
  config.transport = "shm";
  config.nodes = 2;
  lcomm_status status = lcomm_create(&self->boot, &config, &comm);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  flipped_bit = bit;
  if (self->rank == 0) {
    lcomm_transport *link = lcomm_comm_link(comm, 1);
    usual = link->table;
    table = *usual;
    table.send = send_damaged;
    link->table = &table;
  }
  status = lcomm_allreduce(comm, buffer, buffer, count, LCOMM_FLOAT32, LCOMM_SUM);
  status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
  const char *sentence = lcomm_last_error(comm);
  forked_require(self, status == LCOMM_ERR_WIRE, "bit %d, %s: %s: %s", bit, policy,
                 lcomm_status_name(status), sentence);
  forked_require(self, strstr(sentence, "damaged") || strstr(sentence, "malformed"), "bit %d: %s",
                 bit, sentence);
  forked_require(self, !strstr(sentence, "must call"), "bit %d: %s", bit, sentence);
  if (self->rank == 0) {
    lcomm_comm_link(comm, 1)->table = usual;
  }
  lcomm_destroy(comm);
}

static void a_bit_flipped_on_the_way_is_a_wire_error_on_both_ranks(forked *self) {
  for (int bit = 0; bit < BITS; bit++) {
    sum_with_a_damaged_header(self, "net=none", 8, bit);
  }
  for (int bit = 0; bit < BITS; bit += 3) {
    sum_with_a_damaged_header(self, "net=int8 min=1", 9000, bit);
    sum_with_a_damaged_header(self, "net=fp16 min=1 check=xxhash", 500, bit);
    sum_with_a_damaged_header(self, "net=topk:0.5 min=1", 9000, bit);
    sum_with_a_damaged_header(self, "net=int8+zstd min=1", 15000, bit);
  }
}

static const struct CMUnitTest tests[] = {
    EXPECTATION_TEST(a_header_as_it_was_sent_is_accepted),
    EXPECTATION_TEST(a_flipped_bit_is_damage_and_no_other_call),
    EXPECTATION_TEST(two_flipped_bits_are_damage_and_no_other_call),
    EXPECTATION_TEST(a_header_of_another_call_is_a_mismatch_that_names_what_differs),
    EXPECTATION_TEST(a_size_that_is_not_that_of_its_count_is_damage),
    EXPECTATION_TEST(a_payload_that_has_no_room_is_damage),
    FORKED_TEST(a_bit_flipped_on_the_way_is_a_wire_error_on_both_ranks, 2),
};
RUN_TESTS(tests)
