/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums by top-k in parts, as codec_bench --owners measures them. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/support/unit_tests.h"
#include "tools/codec/codec_owners.h"
#include "tools/codec/codec_under_test.h"

enum { COUNT = 100000 };

static float source[COUNT], whole[COUNT], parts[COUNT];

static lcomm_codec_spec codec(const char *text) {
  lcomm_codec_spec made;
  lcomm_why why;
  assert_int_equal(lcomm_format_parse(text, &made, &why), LCOMM_OK);
  return made;
}

static void fill(void) {
  uint32_t random = 7;
  for (int i = 0; i < COUNT; i++) {
    random = random * 1664525u + 1013904223u;
    source[i] = (float)((int32_t)random >> 8) * 1e-3f;
  }
}

static lcomm_owners *encode(const char *text, uint32_t owners) {
  lcomm_owners *made = NULL;
  lcomm_codec_spec choice = codec(text);
  fill();
  assert_int_equal(lcomm_owners_create(&choice, COUNT, owners, &made), LCOMM_OK);
  lcomm_owners_encode(made, lcomm_kernels_best(), source);
  memset(parts, 0xff, sizeof parts);
  lcomm_owners_decode(made, parts);
  return made;
}

static void payloads_for_all_owners_are_the_selection_of_the_whole(void **state) {
  (void)state;
  lcomm_codec_spec choice = codec("topk:0.01+ef");
  lcomm_under_test_shape shape = {.choice = &choice, .count = COUNT};
  lcomm_under_test *tested = NULL;
  fill();
  assert_int_equal(lcomm_under_test_create(&shape, &tested), LCOMM_OK);
  lcomm_under_test_encode(tested, lcomm_kernels_best(), source, 1);
  assert_int_equal(lcomm_under_test_decode(tested, lcomm_kernels_best(), whole), LCOMM_OK);
  lcomm_under_test_destroy(tested);
  for (uint32_t owners = 2; owners <= 8; owners *= 2) {
    lcomm_owners *made = encode("topk:0.01+ef", owners);
    assert_memory_equal(parts, whole, sizeof whole);
    lcomm_owners_add(made, parts);
    for (int i = 0; i < COUNT; i++) {
      assert_true(!(fabsf(parts[i] - 2 * whole[i]) > 0));
    }
    lcomm_owners_destroy(made);
  }
}

static void each_owner_selects_from_its_part(void **state) {
  (void)state;
  enum { OWNERS = 4, TILE = 4096 };
  int entries[OWNERS] = {0};
  lcomm_owners *made = encode("topk:0.01", OWNERS);
  for (int i = 0; i < COUNT; i++) {
    entries[i / TILE % OWNERS] += parts[i] > 0 || parts[i] < 0;
    assert_true(!(fabsf(parts[i]) > 0) || fabsf(parts[i] - source[i]) <= 0.01f * fabsf(source[i]));
  }
  for (int i = 0; i < OWNERS; i++) {
    assert_in_range(entries[i], 200, 290); /* 1 % of 25,000, in tiles */
  }
  lcomm_owners_destroy(made);
}

static void what_cannot_be_owned_in_parts_is_refused(void **state) {
  (void)state;
  static const char *const bad[] = {"int8", "topk:0.01+ef+zstd"};
  lcomm_owners *made = NULL;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    lcomm_codec_spec choice = codec(bad[i]);
    assert_int_equal(lcomm_owners_create(&choice, COUNT, 4, &made), LCOMM_ERR_ARGUMENT);
    assert_null(made);
  }
  lcomm_codec_spec good = codec("topk:0.01");
  assert_int_equal(lcomm_owners_create(&good, COUNT, 1, &made), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_owners_create(&good, COUNT, LCOMM_OWNERS_MAX + 1, &made),
                   LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_owners_create(&good, 0, 4, &made), LCOMM_ERR_ARGUMENT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(payloads_for_all_owners_are_the_selection_of_the_whole),
    cmocka_unit_test(each_owner_selects_from_its_part),
    cmocka_unit_test(what_cannot_be_owned_in_parts_is_refused),
};
RUN_TESTS(tests)
