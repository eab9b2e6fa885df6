/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/support/unit_tests.h"
#include "trainer/train_peers.h"

static void a_rank_with_other_weights_is_named(void **state) {
  (void)state;
  const uint64_t same[] = {7, 7, 7}, other[] = {7, 8, 7, 9};
  char text[256];
  assert_int_equal(replicas_describe(same, 3, text, sizeof text), 0);
  assert_string_equal(text, "");
  assert_int_equal(replicas_describe(other, 4, text, sizeof text), 2);
  assert_non_null(strstr(text, "rank 1"));
  assert_null(strstr(text, "rank 2"));
  assert_non_null(strstr(text, "rank 3"));
  assert_int_equal(replicas_describe(other, 4, text, 10), 2);
  assert_true(strlen(text) < 10);
}

static void traffic_is_subtracted_and_added(void **state) {
  (void)state;
  traffic before = {.encode_us = 3}, after = {.encode_us = 5, .wire_us = 7, .wait_us = 9};
  before.sent_bytes[LCOMM_LINK_NET] = 100;
  after.sent_bytes[LCOMM_LINK_NET] = 350;
  after.exact_bytes[LCOMM_LINK_NET] = 1000;
  traffic between = traffic_since(&after, &before);
  assert_int_equal(between.sent_bytes[LCOMM_LINK_NET], 250);
  assert_int_equal(between.encode_us, 2);
  assert_int_equal(between.wire_us, 7);
  assert_int_equal(between.wait_us, 9);
  assert_true(traffic_ratio(&between, LCOMM_LINK_NET) == 4.0);
  assert_true(traffic_ratio(&between, LCOMM_LINK_SHM) == 0.0);
  traffic_add(&before, &between);
  assert_int_equal(before.sent_bytes[LCOMM_LINK_NET], 350);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_rank_with_other_weights_is_named),
    cmocka_unit_test(traffic_is_subtracted_and_added),
};
RUN_TESTS(tests)
