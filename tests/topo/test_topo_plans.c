/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Link classes of machines that are not there, and what plans send over them. */

#include "tests/topo/topo_fixtures.h"

#include "libcomm/plan/plan.h"
#include "tests/support/unit_tests.h"

enum { LARGE = 1 << 20 };

static const char *const fixtures[] = {"nvswitch.topo", "pairs.topo", "pcie.topo", "mixed.topo",
                                       "domain.topo"};
enum { FIXTURES = sizeof(fixtures) / sizeof *fixtures };

static void expect_links(const char *fixture, const char *const *rows) {
  lcomm_topo topo = topo_of_fixture(fixture);
  assert_links(&topo, rows);
  lcomm_topo_free(&topo);
}

static void gpus_behind_switches_have_nvlink_to_all_of_their_host(void **state) {
  (void)state;
  lcomm_topo topo = topo_of_fixture("nvswitch.topo");
  for (int a = 0; a < 16; a++) {
    for (int b = 0; b < 16; b++) {
      assert_int_equal(lcomm_topo_link(&topo, a, b), a == b           ? LCOMM_LINK_SELF
                                                     : a / 8 == b / 8 ? LCOMM_LINK_NVLINK
                                                                      : LCOMM_LINK_NET);
    }
  }
  assert_true(topo.cost[LCOMM_LINK_NVLINK].bandwidth_gb_s == 370);
  assert_true(topo.cost[LCOMM_LINK_SHM].assumed);
  lcomm_topo_free(&topo);
}

static void pairs_have_nvlink_and_else_pcie(void **state) {
  (void)state;
  expect_links("pairs.topo", (const char *const[]){"SNPP", "NSPP", "PPSN", "PPNS"});
}

static void gpus_that_may_not_reach_each_other_have_shm(void **state) {
  (void)state;
  expect_links("pcie.topo", (const char *const[]){"SPHH", "PSHH", "HHSP", "HHPS"});
}

static void nodes_may_differ(void **state) {
  (void)state;
  expect_links("mixed.topo",
               (const char *const[]){"SNPPTTTTTT", "NSPPTTTTTT", "PPSNTTTTTT", "PPNSTTTTTT",
                                     "TTTTSHTTTT", "TTTTHSTTTT", "TTTTTTSDDH", "TTTTTTDSDH",
                                     "TTTTTTDDSH", "TTTTTTHHHS"});
}

static void a_domain_of_nvlink_spans_hosts_but_not_its_parts(void **state) {
  (void)state;
  expect_links("domain.topo",
               (const char *const[]){"SNNNTT", "NSNNTT", "NNSNTT", "NNNSTT", "TTTTSN", "TTTTNS"});
}

static void links_are_the_same_from_both_ends(void **state) {
  (void)state;
  for (int i = 0; i < FIXTURES; i++) {
    lcomm_topo topo = topo_of_fixture(fixtures[i]);
    for (int a = 0; a < topo.size; a++) {
      for (int b = 0; b < topo.size; b++) {
        assert_int_equal(lcomm_topo_link(&topo, a, b), lcomm_topo_link(&topo, b, a));
      }
    }
    lcomm_topo_free(&topo);
  }
}

/* ------------------------------------------------------------------ plans */

static lcomm_plan *plan_on(const lcomm_topo *topo, const char *policy_text, int rank,
                           lcomm_plan_request request) {
  lcomm_why error = {""};
  lcomm_why why;
  lcomm_policy policy;
  lcomm_plan *plan = NULL;
  assert_int_equal(lcomm_policy_parse(policy_text, &policy, &error), LCOMM_OK);
  if (lcomm_plan_create(&request, &policy, topo, rank, &plan, &why) != LCOMM_OK) {
    fail_msg("%s", why.text);
  }
  return plan;
}

static lcomm_plan_request request_of(lcomm_collective collective, const lcomm_topo *topo) {
  uint64_t count = (uint64_t)topo->size * LARGE;
  return (lcomm_plan_request){.collective = collective, .count = count, .dtype = LCOMM_FLOAT32};
}

/* Every message that leaves a rank, and the link it takes. */
static void check_messages(const lcomm_plan *plan, const lcomm_topo *topo) {
  const lcomm_schedule *schedule = &plan->schedule;
  lcomm_plan_traffic traffic, expected = {0};
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind != LCOMM_STEP_SEND) {
      continue;
    }
    lcomm_link link = lcomm_topo_link(topo, schedule->rank, step->peer);
    bool inside = topo->node[schedule->rank] == topo->node[step->peer];
    lcomm_stage stage = schedule->slots[step->slot].stage;
    assert_true(link != LCOMM_LINK_SELF && !(inside && link == LCOMM_LINK_NET));
    assert_true(stage != LCOMM_STAGE_NODE || inside);
    expected.messages[link]++;
    expected.bytes[link] += plan->slot_sizes[step->slot].share;
  }
  lcomm_plan_count(plan, topo, &traffic);
  assert_memory_equal(&traffic, &expected, sizeof(traffic));
  assert_true(topo->nodes > 1 || traffic.messages[LCOMM_LINK_NET] == 0);
}

static void bytes_are_net_only_between_nodes(void **state) {
  (void)state;
  static const lcomm_collective collectives[] = {
      LCOMM_COLLECTIVE_ALLREDUCE, LCOMM_COLLECTIVE_REDUCE_SCATTER, LCOMM_COLLECTIVE_ALLGATHER,
      LCOMM_COLLECTIVE_BROADCAST, LCOMM_COLLECTIVE_BARRIER};
  for (int i = 0; i < FIXTURES; i++) {
    lcomm_topo topo = topo_of_fixture(fixtures[i]);
    for (size_t c = 0; c < sizeof(collectives) / sizeof *collectives; c++) {
      for (int rank = 0; rank < topo.size; rank++) {
        lcomm_plan_request request = request_of(collectives[c], &topo);
        request.count = collectives[c] == LCOMM_COLLECTIVE_BARRIER ? 0 : request.count;
        lcomm_plan *plan = plan_on(&topo, "net=int8", rank, request);
        check_messages(plan, &topo);
        lcomm_plan_destroy(plan);
      }
    }
    lcomm_topo_free(&topo);
  }
}

/* Whatever the near links are, a host sends between nodes what one of its kind
 * with other links would. */
static void near_links_change_no_schedule(void **state) {
  (void)state;
  lcomm_topo topo = topo_of_fixture("nvswitch.topo");
  lcomm_topo plain = topo_of_text("node 0 host a ranks 0 1 2 3 4 5 6 7\n"
                                  "node 1 host b ranks 8 9 10 11 12 13 14 15\n");
  assert_true(topo.all_have_devices && !plain.all_have_devices);
  plain.all_have_devices = true; /* chunks are as long */
  for (int rank = 0; rank < topo.size; rank++) {
    lcomm_plan_request request = request_of(LCOMM_COLLECTIVE_ALLREDUCE, &topo);
    lcomm_plan *plan = plan_on(&topo, "net=int8", rank, request);
    lcomm_plan *other = plan_on(&plain, "net=int8", rank, request);
    lcomm_plan_traffic traffic, other_traffic;
    lcomm_plan_count(plan, &topo, &traffic);
    lcomm_plan_count(other, &plain, &other_traffic);
    assert_int_equal(plan->hash, other->hash);
    assert_int_equal(traffic.bytes[LCOMM_LINK_NET], other_traffic.bytes[LCOMM_LINK_NET]);
    assert_int_equal(traffic.bytes[LCOMM_LINK_NVLINK], other_traffic.bytes[LCOMM_LINK_SHM]);
    assert_true(traffic.bytes[LCOMM_LINK_NET] > 0 && traffic.bytes[LCOMM_LINK_NVLINK] > 0);
    assert_int_equal(traffic.bytes[LCOMM_LINK_SHM], 0);
    lcomm_plan_destroy(plan);
    lcomm_plan_destroy(other);
  }
  lcomm_topo_free(&plain);
  lcomm_topo_free(&topo);
}

/* One host: whatever net= says, nothing is lost on the near links. */
static void near_links_stay_exact_by_default(void **state) {
  (void)state;
  static const char *const one_host[] = {"pairs.topo", "pcie.topo"};
  for (int i = 0; i < 2; i++) {
    lcomm_topo topo = topo_of_fixture(one_host[i]);
    lcomm_plan_request request = request_of(LCOMM_COLLECTIVE_ALLREDUCE, &topo);
    lcomm_plan *plan = plan_on(&topo, "net=int4 min=0", 0, request);
    for (int stage = 0; stage < LCOMM_STAGE_COUNT; stage++) {
      assert_int_equal(plan->stages[stage].format.codec->id, LCOMM_CODEC_NONE);
    }
    lcomm_plan_destroy(plan);
    plan = plan_on(&topo, "node=int8 min=0", 0, request);
    assert_int_equal(plan->stages[LCOMM_STAGE_NODE].format.codec->id, LCOMM_CODEC_INT8);
    lcomm_plan_destroy(plan);
    lcomm_topo_free(&topo);
  }
}

static void traffic_is_printed_by_rank_and_link(void **state) {
  (void)state;
  char text[8192];
  lcomm_why error;
  lcomm_why why = {""};
  lcomm_policy policy;
  lcomm_topo topo = topo_of_fixture("mixed.topo");
  lcomm_plan_request request = request_of(LCOMM_COLLECTIVE_ALLREDUCE, &topo);
  assert_int_equal(lcomm_policy_parse("net=int8", &policy, &error), LCOMM_OK);
  assert_int_equal(lcomm_plan_traffic_print(&request, &policy, &topo, text, sizeof(text), &why),
                   LCOMM_OK);
  assert_non_null(strstr(text, "# rank         same-device           nvlink             pcie"
                               "              shm              net\n# 0 "));
  assert_non_null(strstr(text, "\n# 9 "));
  assert_non_null(strstr(text, "\n# all "));
  char plan_text[4096];
  lcomm_plan *plan = plan_on(&topo, "net=int8", 0, request);
  lcomm_plan_describe(plan, &topo, plan_text, sizeof(plan_text));
  assert_non_null(strstr(plan_text, "\n  nvlink      "));
  assert_non_null(strstr(plan_text, "\n  pcie        "));
  lcomm_plan_destroy(plan);
  request.count = UINT64_MAX;
  assert_int_equal(lcomm_plan_traffic_print(&request, &policy, &topo, text, sizeof(text), &why),
                   LCOMM_ERR_ARGUMENT);
  assert_true(why.text[0] != '\0');
  lcomm_topo_free(&topo);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gpus_behind_switches_have_nvlink_to_all_of_their_host),
    cmocka_unit_test(pairs_have_nvlink_and_else_pcie),
    cmocka_unit_test(gpus_that_may_not_reach_each_other_have_shm),
    cmocka_unit_test(nodes_may_differ),
    cmocka_unit_test(a_domain_of_nvlink_spans_hosts_but_not_its_parts),
    cmocka_unit_test(links_are_the_same_from_both_ends),
    cmocka_unit_test(bytes_are_net_only_between_nodes),
    cmocka_unit_test(near_links_change_no_schedule),
    cmocka_unit_test(near_links_stay_exact_by_default),
    cmocka_unit_test(traffic_is_printed_by_rank_and_link),
};
RUN_TESTS(tests)
