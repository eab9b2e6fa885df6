/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* quorum=, stale= and late=: whom a sum waits for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void a_quorum_is_a_number_or_a_share_of_ranks(void **state) {
  (void)state;
  lcomm_policy policy = parse("net=int8+ef quorum=75% late=0");
  assert_int_equal(lcomm_policy_quorum(&policy.quorum, 8), 6);
  assert_int_equal(lcomm_policy_quorum(&policy.quorum, 3), 3);
  assert_int_equal(lcomm_policy_quorum(&policy.quorum, 1), 1);
  assert_int_equal(policy.quorum.late_ms, 0);
  policy = parse("quorum=7");
  assert_int_equal(lcomm_policy_quorum(&policy.quorum, 8), 7);
  assert_int_equal(policy.quorum.late_ms, 10);
  expect_canonical("late=10 quorum=7", "quorum=7");
  expect_canonical("late=20 quorum=100% net=topk:0.01+ef", "net=topk:0.01+ef quorum=100% late=20");
  expect_refusal("quorum=0", 8, "'0' is no quorum");
  expect_refusal("quorum=101%", 8, "from 1% to 100%");
  expect_refusal("quorum=%", 8, "'%' is no quorum");
  expect_refusal("quorum=7x", 8, "'7x' is no quorum");
  expect_refusal("quorum=7 late=-1", 15, "no time in milliseconds");
  expect_refusal("late=5", 1, "expected quorum= or stale=, too");
  expect_refusal("quorum=7 undo=on", 1, "expected no undo=on");
  expect_refusal("quorum=7 warmup=5", 1, "no warmup=");
  expect_refusal("quorum=7 guard=5", 1, "guard=");
  expect_refusal("quorum=7 node=bf16", 1, "expected node=none");
  expect_refusal("quorum=7 net=auto:int8", 1, "other than auto and lowrank");
  expect_refusal("quorum=7 net=int8+zstd", 1, "without +zstd");
  expect_refusal("quorum=7 net=topk:0.01+ef momentum=0.9", 1, "no momentum=");
}

static void staleness_is_a_number_of_steps(void **state) {
  (void)state;
  lcomm_policy policy = parse("net=int8+ef stale=2");
  assert_int_equal(policy.quorum.stale, 2);
  assert_false(policy.quorum.drops);
  assert_int_equal(lcomm_policy_quorum(&policy.quorum, 8), 8);
  assert_false(lcomm_policy_has_quorum(&policy));
  assert_true(lcomm_policy_has_owners(&policy));
  policy = parse("stale=7:drop late=0");
  assert_int_equal(policy.quorum.stale, 7);
  assert_true(policy.quorum.drops);
  expect_canonical("late=10 stale=1", "stale=1");
  expect_canonical("late=0 stale=3:drop net=int8", "net=int8 stale=3:drop late=0");
  expect_refusal("stale=0", 7, "from 1 to 7");
  expect_refusal("stale=8", 7, "from 1 to 7");
  expect_refusal("stale=2:dropped", 7, "with or without :drop");
  expect_refusal("stale=2:", 7, "'2:' is no bound");
  expect_refusal("stale=:drop", 7, "is no bound");
  expect_refusal("stale=2 quorum=3", 1, "expected one of the two");
  expect_refusal("undo=on stale=2", 9, "expected no undo=on");
  expect_refusal("stale=2 net=lowrank:4", 1, "other than auto and lowrank");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_quorum_is_a_number_or_a_share_of_ranks),
    cmocka_unit_test(staleness_is_a_number_of_steps),
};
RUN_TESTS(tests)
