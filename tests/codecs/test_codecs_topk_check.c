/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k payloads from a peer: what is refused, and that what is not is safe. */

#include "tests/codecs/topk_reference.h"
#include "tests/codecs/topk_samples.h"
#include "tests/support/unit_tests.h"

enum { VIEW = 9000 };

static uint8_t *encode_view(double density, int variant, size_t *size) {
  const uint64_t count = VIEW;
  topk_encoder e = whole_encoder(&count, density, variant);
  float *base = sample_memory(VIEW * sizeof *base);
  fill(base, VIEW, normal, 4);
  lcomm_topk_encode(e.topk, lcomm_kernels_best(), base, NULL, NULL, LCOMM_TOPK_HOLD, &e.payload,
                    size);
  uint8_t *payload = sample_memory(*size);
  memcpy(payload, e.payload, *size);
  free(base);
  free_encoder(&e);
  return payload;
}

/* A payload that passed is used as its readers use it: all of its positions
 * must lie inside the view, which a sanitizer watches. */
static void use(const lcomm_format *format, const uint8_t *payload, uint64_t count,
                uint64_t entries) {
  float *value = sample_memory((size_t)count * sizeof *value);
  lcomm_topk_add(format, payload, 1, 0, 1.0f, value);
  lcomm_topk_commit(format, payload, payload, 1, 0, value);
  lcomm_topk_decode(format, payload, count, 1, 0, 1.0f, value);
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; i++) {
    found += value[i] != 0.0f;
  }
  assert_true(found <= entries);
  free(value);
}

static void check_copy(const lcomm_format *format, const uint8_t *payload, size_t size) {
  uint8_t *exact = malloc(size > 0 ? size : 1);
  assert_non_null(exact);
  memcpy(exact, payload, size);
  uint64_t entries = 77;
  lcomm_status status = lcomm_topk_check(format, exact, size, VIEW, &entries);
  if (status == LCOMM_OK) {
    assert_true(entries <= VIEW);
    use(format, exact, VIEW, entries);
  } else {
    assert_int_equal(status, LCOMM_ERR_WIRE);
    assert_int_equal(entries, 77);
  }
  free(exact);
}

static void payloads_of_another_size_are_refused(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    const lcomm_format *format = format_of(variant);
    size_t size;
    uint8_t *payload = encode_view(0.02, variant, &size);
    for (size_t length = 0; length < size; length++) {
      uint8_t *exact = sample_memory(length);
      memcpy(exact, payload, length);
      uint8_t *from = length > 0 ? exact : NULL;
      assert_int_equal(lcomm_topk_check(format, from, length, VIEW, NULL), LCOMM_ERR_WIRE);
      free(exact);
    }
    uint8_t *longer = sample_memory(size + 1);
    memcpy(longer, payload, size);
    assert_int_equal(lcomm_topk_check(format, longer, size + 1, VIEW, NULL), LCOMM_ERR_WIRE);
    assert_int_equal(lcomm_topk_check(format, longer, size, VIEW, NULL), LCOMM_OK);
    assert_int_equal(lcomm_topk_check(format_of(1 - variant), longer, size, VIEW, NULL),
                     LCOMM_ERR_WIRE);
    free(longer);
    free(payload);
  }
}

static void mutated_payloads_are_refused_or_harmless(void **state) {
  (void)state;
  const uint8_t flips[] = {0x01, 0x02, 0x10, 0x40, 0x80, 0xff};
  for (int variant = 0; variant < VARIANTS; variant++) {
    size_t size;
    uint8_t *payload = encode_view(0.005, variant, &size);
    for (size_t i = 0; i < size; i++) {
      for (size_t f = 0; f < sizeof flips; f++) {
        payload[i] ^= flips[f];
        check_copy(format_of(variant), payload, size);
        payload[i] ^= flips[f];
      }
    }
    free(payload);
  }
}

static void random_bytes_are_refused_or_harmless(void **state) {
  (void)state;
  uint64_t random = 9;
  for (int round = 0; round < 3000; round++) {
    uint8_t bytes[200];
    size_t size = (size_t)(sample_u64(&random) % sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
      bytes[i] = (uint8_t)(sample_u64(&random) >> 20);
    }
    uint32_t entries = (uint32_t)(sample_u64(&random) % 40);
    memcpy(bytes, &entries, sizeof entries);
    bytes[4] %= 36; /* a likely width */
    check_copy(format_of(round % VARIANTS), bytes, size);
  }
}

static lcomm_status check_bytes(const uint8_t *bytes, size_t size, uint64_t count) {
  uint8_t *exact = sample_memory(size);
  memcpy(exact, bytes, size);
  lcomm_status status = lcomm_topk_check(format_of(0), exact, size, count, NULL);
  free(exact);
  return status;
}

static void impossible_numbers_are_refused(void **state) {
  (void)state;
  const uint8_t two[] = {2, 0, 0, 0, 0, 0, 0, 0, 0};
  assert_int_equal(check_bytes(two, sizeof two, 2), LCOMM_OK);
  assert_int_equal(check_bytes(two, sizeof two, 1), LCOMM_ERR_WIRE);
  uint8_t wide[5 + 33 + 2] = {1, 0, 0, 0, 33};
  assert_int_equal(check_bytes(wide, sizeof wide, 10), LCOMM_ERR_WIRE);
  /* Two deltas of 2^32 - 1 are past any view, not around it. */
  const uint8_t around[] = {2,    0,    0,    0,    32,   0xff, 0xff, 0xff, 0xff,
                            0xff, 0xff, 0xff, 0xff, 0x80, 0x3f, 0x80, 0x3f};
  assert_int_equal(check_bytes(around, sizeof around, 0xffffffffu), LCOMM_ERR_WIRE);
  const uint8_t most[] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0};
  assert_int_equal(check_bytes(most, sizeof most, 0xffffffffu), LCOMM_ERR_WIRE);
  const uint8_t empty[] = {0, 0, 0, 0};
  assert_int_equal(check_bytes(empty, sizeof empty, 0), LCOMM_OK);
}

/* Deltas 2, 0, 5 again, in 3 bits and in others. */
static void positions_have_one_representation(void **state) {
  (void)state;
  const uint8_t good[] = {3, 0, 0, 0, 3, 0x42, 0x01, 0, 0, 0, 0, 0, 0};
  const uint8_t wide[] = {3, 0, 0, 0, 4, 0x02, 0x05, 0, 0, 0, 0, 0, 0};
  assert_int_equal(check_bytes(good, sizeof good, 10), LCOMM_OK);
  assert_int_equal(check_bytes(wide, sizeof wide, 10), LCOMM_ERR_WIRE);
  for (int bit = 1; bit < 8; bit++) { /* behind the last delta */
    uint8_t padded[sizeof good];
    memcpy(padded, good, sizeof good);
    padded[6] |= (uint8_t)(1 << bit);
    assert_int_equal(check_bytes(padded, sizeof padded, 10), LCOMM_ERR_WIRE);
  }
  const uint8_t zeros[] = {2, 0, 0, 0, 1, 0x00, 0, 0, 0, 0};
  assert_int_equal(check_bytes(zeros, sizeof zeros, 10), LCOMM_ERR_WIRE);
  uint8_t full[4 + 1 + 8 + 64] = {32, 0, 0, 0, 2, 0x02}; /* a block without padding */
  assert_int_equal(check_bytes(full, sizeof full, 100), LCOMM_OK);
  full[5] = 0x01;
  assert_int_equal(check_bytes(full, sizeof full, 100), LCOMM_ERR_WIRE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(payloads_of_another_size_are_refused),
    cmocka_unit_test(mutated_payloads_are_refused_or_harmless),
    cmocka_unit_test(random_bytes_are_refused_or_harmless),
    cmocka_unit_test(impossible_numbers_are_refused),
    cmocka_unit_test(positions_have_one_representation),
};
RUN_TESTS(tests)
