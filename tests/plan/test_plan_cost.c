/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Predicted times: what must hold of them whatever links and codecs cost. Whether they are near
 * the time that an operation takes is for a benchmark. */

#include <math.h>

#include "libcomm/plan/cost.h"
#include "tests/plan/plans.h"
#include "tests/support/unit_tests.h"

typedef struct world {
  int ranks, nodes;
  const char *policy;
} world;

static const world worlds[] = {{8, 4, "net=none"},          {8, 2, "net=int8"},
                               {6, 6, "net=bf16"},          {5, 2, "net=int4"},
                               {16, 4, "net=topk:0.01+ef"}, {4, 1, "net=int8"},
                               {4, 1, "node=fp16"},         {8, 4, "net=int8+zstd algo=direct"}};

enum { WORLDS = sizeof(worlds) / sizeof(worlds[0]) };

static const lcomm_codec_speeds speeds = {.encode_gb_s = {5, 5, 5}, .decode_gb_s = {10, 10, 10}};

static lcomm_topo topo_of(const world *it) {
  static const lcomm_identity identities[PLANS_RANKS_MAX];
  lcomm_why error;
  lcomm_topo topo;
  assert_int_equal(lcomm_topo_create(identities, it->ranks, it->nodes, &topo, &error), LCOMM_OK);
  return topo;
}

static lcomm_plan *plan_of(const world *it, uint64_t count) {
  lcomm_plan_request request =
      request_of(LCOMM_COLLECTIVE_ALLREDUCE, count, LCOMM_FLOAT32, LCOMM_SUM);
  request.error_feedback = true;
  return make_plan(it->policy, it->ranks, it->nodes, 0, request);
}

static lcomm_plan_time time_of(const world *it, const lcomm_topo *topo, uint64_t count,
                               const lcomm_codec_speeds *codecs) {
  lcomm_plan *plan = plan_of(it, count);
  lcomm_plan_time time = lcomm_plan_predict(plan, topo, codecs);
  lcomm_plan_destroy(plan);
  return time;
}

static bool same_shape(const lcomm_plan *a, const lcomm_plan *b) {
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    if (!lcomm_format_equal(&a->stages[i].format, &b->stages[i].format)) {
      return false;
    }
  }
  return a->shape.exchange == b->shape.exchange && a->shape.hierarchical == b->shape.hierarchical &&
         a->shape.leaders == b->shape.leaders && a->shape.chunks == b->shape.chunks;
}

/* A plan of another shape may be faster: that is why it is chosen. */
static void a_longer_vector_never_takes_less_time_by_a_plan_of_the_same_shape(void **state) {
  (void)state;
  int compared = 0;
  for (const world *it = worlds; it < worlds + WORLDS; it++) {
    lcomm_topo topo = topo_of(it);
    lcomm_plan *before = plan_of(it, 1000);
    for (uint64_t count = 1500; count < 20000000; count += count / 2) {
      lcomm_plan *plan = plan_of(it, count);
      if (same_shape(before, plan)) {
        double shorter_us = lcomm_plan_predict(before, &topo, &speeds).total_us;
        assert_true(lcomm_plan_predict(plan, &topo, &speeds).total_us >= shorter_us);
        compared++;
      }
      lcomm_plan_destroy(before);
      before = plan;
    }
    lcomm_plan_destroy(before);
    lcomm_topo_free(&topo);
  }
  assert_true(compared > 20);
}

static void no_dense_sum_is_predicted_below_the_limit_of_the_wire(void **state) {
  (void)state;
  static const uint64_t counts[] = {20000, 300000, 1 << 22, 20000000};
  static const world dense[] = {
      {8, 4, "net=none"}, {8, 2, "net=none"}, {8, 4, "net=none algo=direct"}, {6, 6, "net=none"}};
  for (size_t i = 0; i < sizeof(dense) / sizeof(dense[0]); i++) {
    lcomm_topo topo = topo_of(&dense[i]);
    for (int n = 0; n < 4; n++) {
      double m = dense[i].nodes;
      double limit_us =
          2 * (m - 1) / m * 4 * (double)counts[n] / topo.cost[LCOMM_LINK_NET].bandwidth_gb_s / 1e3;
      double us = time_of(&dense[i], &topo, counts[n], NULL).total_us;
      assert_true(us >= limit_us * 0.999);
      assert_true(us <= limit_us * 2 + 1000);
    }
    lcomm_topo_free(&topo);
  }
}

static void a_slower_link_takes_longer_in_proportion(void **state) {
  (void)state;
  for (const world *it = worlds; it < worlds + WORLDS; it++) {
    lcomm_topo topo = topo_of(it);
    lcomm_plan_time fast = time_of(it, &topo, 1 << 20, &speeds);
    for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
      topo.cost[link].bandwidth_gb_s /= 10;
      lcomm_plan_time slow = time_of(it, &topo, 1 << 20, &speeds);
      assert_true(slow.total_us >= fast.total_us);
      assert_true(fabs(slow.link_us[link] - 10 * fast.link_us[link]) <= 1e-6 * slow.link_us[link]);
      topo.cost[link].bandwidth_gb_s *= 10;
    }
    lcomm_topo_free(&topo);
  }
}

static void a_codec_costs_time_where_it_is_used_and_nowhere_else(void **state) {
  (void)state;
  static const lcomm_codec_speeds slow = {.encode_gb_s = {0.5, 0.5, 0.5}, .decode_gb_s = {1, 1, 1}};
  lcomm_topo topo = topo_of(&worlds[1]);
  lcomm_plan_time fast_time = time_of(&worlds[1], &topo, 1 << 20, &speeds);
  lcomm_plan_time slow_time = time_of(&worlds[1], &topo, 1 << 20, &slow);
  assert_true(fast_time.codec_us > 0);
  assert_true(fabs(slow_time.codec_us - 10 * fast_time.codec_us) < 1e-6 * slow_time.codec_us);
  assert_true(slow_time.total_us > fast_time.total_us);
  assert_true(time_of(&worlds[1], &topo, 1 << 20, NULL).codec_us == 0);
  lcomm_topo_free(&topo);
}

static void only_links_that_are_used_can_be_assumed(void **state) {
  (void)state;
  char text[LCOMM_PLAN_TIME_MAX];
  lcomm_topo topo = topo_of(&worlds[0]);
  topo.cost[LCOMM_LINK_NET].assumed = false;
  assert_true(time_of(&worlds[0], &topo, 1 << 20, NULL).assumed); /* shm is used, too */
  topo.cost[LCOMM_LINK_SHM].assumed = false;
  lcomm_plan_time time = time_of(&worlds[0], &topo, 1 << 20, NULL);
  assert_false(time.assumed);
  assert_non_null(strstr(lcomm_plan_time_format(&time, text), "links measured"));
  lcomm_topo_free(&topo);
}

static void a_policy_for_links_between_nodes_says_that_there_is_none(void **state) {
  (void)state;
  static const struct {
    world it;
    const char *words;
  } examples[] = {{{8, 1, "net=int8"}, "there is no link between nodes"},
                  {{2, 1, "net=topk:0.01+ef"}, "there is no link between nodes"},
                  {{8, 1, "net=none+zstd"}, "there is no link between nodes"},
                  {{1, 1, "net=int8"}, "a rank alone sends nothing"},
                  {{8, 1, "net=int8 node=bf16"}, "as the policy asks"},
                  {{8, 1, "net=none"}, "the policy asks for no codec"},
                  {{8, 2, "node=int8"}, "the policy asks for no codec"},
                  {{8, 2, "net=int8"}, "as the policy asks"}};
  for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
    lcomm_plan *plan = plan_of(&examples[i].it, 1 << 20);
    if (!strstr(plan->reason, examples[i].words)) {
      fail_msg("'%s': '%s' is not in '%s'", examples[i].it.policy, examples[i].words, plan->reason);
    }
    lcomm_plan_destroy(plan);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_longer_vector_never_takes_less_time_by_a_plan_of_the_same_shape),
    cmocka_unit_test(no_dense_sum_is_predicted_below_the_limit_of_the_wire),
    cmocka_unit_test(a_slower_link_takes_longer_in_proportion),
    cmocka_unit_test(a_codec_costs_time_where_it_is_used_and_nowhere_else),
    cmocka_unit_test(only_links_that_are_used_can_be_assumed),
    cmocka_unit_test(a_policy_for_links_between_nodes_says_that_there_is_none),
};
RUN_TESTS(tests)
