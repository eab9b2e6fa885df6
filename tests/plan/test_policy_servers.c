/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* algo=servers and servers=: who owns all pieces. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void servers_are_ranks_or_nodes_and_have_shares(void **state) {
  (void)state;
  lcomm_policy policy = parse("net=int8 algo=servers servers=7,2@3");
  const lcomm_servers_policy *servers = &policy.quorum.servers;
  assert_int_equal(policy.algorithm, LCOMM_ALGO_SERVERS);
  assert_int_equal(servers->count, 2);
  assert_false(servers->are_nodes);
  assert_true(servers->number[0] == 2 && servers->share[0] == 3);
  assert_true(servers->number[1] == 7 && servers->share[1] == 1);
  policy = parse("servers=nodes:1 algo=servers");
  assert_true(policy.quorum.servers.are_nodes);
  assert_int_equal(policy.quorum.servers.count, 1);
}

static void without_a_quorum_all_workers_are_waited_for(void **state) {
  (void)state;
  lcomm_policy policy = parse("algo=servers servers=0");
  assert_false(lcomm_policy_has_quorum(&policy));
  assert_true(lcomm_policy_has_owners(&policy));
  assert_int_equal(lcomm_policy_quorum(&policy.quorum, 6), 6);
  policy = parse("algo=servers servers=0 quorum=50%");
  assert_int_equal(lcomm_policy_quorum(&policy.quorum, 6), 3);
}

static void workers_may_go_on_for_some_steps(void **state) {
  (void)state;
  lcomm_policy policy = parse("algo=servers servers=0 stale=2:drop late=5");
  assert_true(policy.quorum.stale == 2 && policy.quorum.drops);
  assert_true(lcomm_policy_has_servers(&policy));
  assert_int_equal(lcomm_policy_quorum(&policy.quorum, 6), 6);
}

static void servers_have_one_text(void **state) {
  (void)state;
  expect_canonical("servers=7,2@3,0@1 algo=servers net=int8",
                   "net=int8 algo=servers servers=0,2@3,7");
  expect_canonical("servers=nodes:1,0@2 algo=servers", "algo=servers servers=nodes:0@2,1");
  expect_canonical("servers=0 quorum=3 late=5 algo=servers",
                   "algo=servers quorum=3 late=5 servers=0");
  expect_canonical("servers=0 late=5 stale=2 algo=servers",
                   "algo=servers stale=2 late=5 servers=0");
}

static void what_servers_cannot_be_is_refused(void **state) {
  (void)state;
  char text[512] = "algo=servers servers=0";
  expect_refusal("algo=servers", 1, "does not say which ranks");
  expect_refusal("servers=0", 1, "with algo=servers");
  expect_refusal("algo=direct servers=0", 13, "with algo=servers");
  expect_refusal("algo=servers servers=", 22, "'' is no number");
  expect_refusal("algo=servers servers=1,", 24, "'' is no number");
  expect_refusal("algo=servers servers=-1", 22, "'-1' is no number");
  expect_refusal("algo=servers servers=1@0", 24, "'0' is no share");
  expect_refusal("algo=servers servers=1@1001", 24, "'1001' is no share");
  expect_refusal("algo=servers servers=1,2,1", 26, "a server already");
  expect_refusal("algo=servers servers=node:1", 22, "is no number");
  for (int rank = 1; rank <= LCOMM_POLICY_SERVERS_MAX; rank++) {
    snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", rank);
  }
  assert_non_null(strstr(refusal(text), "too many servers"));
}

static void what_does_not_go_with_a_quorum_does_not_go_with_servers(void **state) {
  (void)state;
  expect_refusal("algo=servers servers=0 undo=on", 14, "expected no undo=on");
  expect_refusal("algo=servers servers=0 warmup=5", 14, "no warmup=");
  expect_refusal("algo=servers servers=0 net=lowrank:4", 14, "other than auto and lowrank");
  expect_refusal("algo=servers servers=0 node=bf16", 14, "expected node=none");
  expect_refusal("algo=servers servers=0 late=5", 24, "expected quorum= or stale=, too");
  expect_refusal("algo=servers servers=0 stale=2 quorum=3", 24, "expected one of the two");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(servers_are_ranks_or_nodes_and_have_shares),
    cmocka_unit_test(without_a_quorum_all_workers_are_waited_for),
    cmocka_unit_test(workers_may_go_on_for_some_steps),
    cmocka_unit_test(servers_have_one_text),
    cmocka_unit_test(what_servers_cannot_be_is_refused),
    cmocka_unit_test(what_does_not_go_with_a_quorum_does_not_go_with_servers),
};
RUN_TESTS(tests)
