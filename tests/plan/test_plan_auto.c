/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* net=auto: what must hold of the choice whatever links and codecs cost. */

#include "libcomm/plan/auto.h"
#include "tests/plan/plans.h"
#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 5, NODES = 2, LONG = 1 << 20 };

static const char *const classes[] = {"",
                                      "net=auto",
                                      "net=auto:bf16",
                                      "net=auto:int8",
                                      "net=auto:int4",
                                      "net=auto:int2",
                                      "net=auto:sign",
                                      "net=auto:lowrank",
                                      "net=auto:topk"};

/* The codecs that auto chooses among; that of values beside low rank. */
static const char *const fixed[] = {"net=none", "net=none+zstd", "net=bf16",
                                    "net=int8", "net=int4",      "net=int2",
                                    "net=sign", "net=sign",      "net=topk:0.01+ef"};

/* Of a vector that is no matrix. */
static int coarsest_of(int class) {
  return class == LCOMM_AUTO_LOWRANK ? LCOMM_AUTO_SIGN : class;
}

static lcomm_topo topo_of(double latency_us, double bandwidth_gb_s) {
  return topo_over(RANKS, NODES,
                   (lcomm_link_cost){.latency_us = latency_us, .bandwidth_gb_s = bandwidth_gb_s});
}

static int candidate_on(double latency_us, double bandwidth_gb_s, const char *text, uint64_t count,
                        bool error_feedback) {
  lcomm_topo topo = topo_of(latency_us, bandwidth_gb_s);
  lcomm_plan *plan = allreduce_plan_over(&topo, text, 0, count, error_feedback);
  int candidate = plan->automatic.candidate;
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
  return candidate;
}

static void on_a_slow_link_the_coarsest_codec_of_the_class_is_taken(void **state) {
  (void)state;
  for (int class = LCOMM_AUTO_LOSSLESS; class < LCOMM_AUTO_COUNT; class ++) {
    assert_int_equal(candidate_on(100, 0.001, classes[class], LONG, true), coarsest_of(class));
  }
}

static void on_a_link_as_fast_as_memory_sums_stay_exact(void **state) {
  (void)state;
  for (int class = LCOMM_AUTO_LOSSLESS; class < LCOMM_AUTO_COUNT; class ++) {
    assert_int_equal(candidate_on(1, 1000, classes[class], LONG, true), 0);
  }
}

static void a_class_is_that_of_its_coarsest_codec(void **state) {
  (void)state;
  for (int class = LCOMM_AUTO_BF16; class < LCOMM_AUTO_COUNT; class ++) {
    lcomm_codec_spec choice = lcomm_auto_candidate(class);
    assert_int_equal(lcomm_auto_class_of(&choice), class);
  }
  lcomm_codec_spec none = {.format = lcomm_format_of(&lcomm_codec_none)};
  lcomm_codec_spec other = {.format = lcomm_format_of(&lcomm_codec_fp16)};
  assert_int_equal(lcomm_auto_class_of(&none), LCOMM_AUTO_NONE);
  assert_int_equal(lcomm_auto_class_of(&other), LCOMM_AUTO_COUNT);
}

static void no_class_is_exceeded_on_any_link_at_any_size(void **state) {
  (void)state;
  for (double bandwidth = 1e-4; bandwidth < 1e3; bandwidth *= 10) {
    for (uint64_t count = 16; count <= 1 << 22; count *= 8) {
      for (int class = LCOMM_AUTO_LOSSLESS; class < LCOMM_AUTO_COUNT; class ++) {
        assert_true(candidate_on(10, bandwidth, classes[class], count, true) <= coarsest_of(class));
      }
    }
  }
}

static void the_plan_that_is_taken_is_predicted_to_be_the_fastest_but_for_a_twentieth(void **s) {
  (void)s;
  for (double bandwidth = 1e-3; bandwidth < 1e3; bandwidth *= 4) {
    lcomm_topo topo = topo_of(20, bandwidth);
    lcomm_plan *chosen = allreduce_plan_over(&topo, "net=auto:topk", 0, LONG, true);
    double chosen_us = lcomm_auto_predict_us(chosen, &topo, chosen->automatic.candidate);
    for (int i = 0; i < LCOMM_AUTO_CODECS; i++) {
      lcomm_plan *other = allreduce_plan_over(&topo, fixed[i], 0, LONG, true);
      assert_true(0.95 * chosen_us <= lcomm_auto_predict_us(other, &topo, i) * (1 + 1e-9));
      lcomm_plan_destroy(other);
    }
    lcomm_plan_destroy(chosen);
    lcomm_topo_free(&topo);
  }
}

static void all_ranks_choose_alike(void **state) {
  (void)state;
  for (double bandwidth = 1e-3; bandwidth < 1e2; bandwidth *= 3) {
    lcomm_topo topo = topo_of(20, bandwidth);
    lcomm_plan *first = allreduce_plan_over(&topo, "net=auto:topk", 0, LONG, true);
    for (int rank = 1; rank < RANKS; rank++) {
      lcomm_plan *other = allreduce_plan_over(&topo, "net=auto:topk", rank, LONG, true);
      assert_int_equal(other->automatic.candidate, first->automatic.candidate);
      assert_true(other->hash == first->hash);
      lcomm_plan_destroy(other);
    }
    lcomm_plan_destroy(first);
    lcomm_topo_free(&topo);
  }
}

/* Nothing would keep what they leave out of a plain call. */
static void plain_calls_take_no_codec_with_error_feedback(void **state) {
  (void)state;
  for (int class = LCOMM_AUTO_INT4; class < LCOMM_AUTO_COUNT; class ++) {
    assert_int_equal(candidate_on(100, 0.001, classes[class], LONG, false), LCOMM_AUTO_INT8);
  }
}

/* From the fastest link to the slowest; with the same speed for all codecs, bytes decide. */
static void the_slower_the_link_the_coarser_the_codec(void **state) {
  (void)state;
  bool taken[LCOMM_AUTO_COUNT] = {false};
  int before = 0;
  for (double bandwidth = 1000; bandwidth > 1e-4; bandwidth /= 1.1) {
    lcomm_topo topo = topo_of(20, bandwidth);
    for (int i = 1; i < LCOMM_AUTO_CODECS; i++) {
      topo.codec_cost[i] = (lcomm_codec_cost){.encode_gb_s = 12.0 / i, .decode_gb_s = 24.0 / i};
    }
    lcomm_plan *plan = allreduce_plan_over(&topo, "net=auto:topk", 0, LONG, true);
    assert_true(plan->automatic.candidate >= before);
    before = plan->automatic.candidate;
    taken[before] = true;
    lcomm_plan_destroy(plan);
    lcomm_topo_free(&topo);
  }
  assert_true(taken[0] && taken[LCOMM_AUTO_INT2] && taken[LCOMM_AUTO_SIGN] &&
              taken[LCOMM_AUTO_TOPK]);
}

/* Two hosts with links of a rate, as make run has them, and what one core of a server makes of each
 * codec: 4 MiB of a gradient. */
static void on_links_of_such_rates_such_codecs_are_taken(void **state) {
  static const struct {
    const char *policy;
    double gbit_s;
    int candidate;
  } cases[] = {
      {"net=auto:sign", 0.05, LCOMM_AUTO_SIGN},
      {"net=auto:sign", 1, LCOMM_AUTO_SIGN},
      {"net=auto:int2", 0.05, LCOMM_AUTO_INT2},
      {"net=auto:int2", 1, LCOMM_AUTO_INT2},
      {"net=auto:int4", 0.2, LCOMM_AUTO_INT4},
      {"net=auto:topk", 0.05, LCOMM_AUTO_TOPK},
      {"net=auto:sign", 4000, 0},
      {"net=auto:int2", 4000, 0},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int taken = candidate_on(20, cases[i].gbit_s / 8, cases[i].policy, LONG, true);
    if (taken != cases[i].candidate) {
      fail_msg("%s at %g Gbit/s takes candidate %d", cases[i].policy, cases[i].gbit_s, taken);
    }
  }
}

static void what_is_short_stays_exact(void **state) {
  (void)state;
  assert_int_equal(candidate_on(1, 0.001, "net=auto:int8", 10000, true), 0);
  assert_int_equal(candidate_on(1, 0.001, "net=auto:int8 min=1", 10000, true), LCOMM_AUTO_INT8);
}

static void what_hides_behind_the_computation_is_not_compressed_further(void **state) {
  (void)state;
  for (int hidden = 0; hidden < LCOMM_AUTO_CODECS; hidden++) {
    lcomm_topo topo = topo_of(100, 0.001);
    topo.hidden_from = hidden;
    lcomm_plan *plan = allreduce_plan_over(&topo, "net=auto:topk", 0, LONG, true);
    assert_int_equal(plan->automatic.candidate, coarsest_of(hidden));
    lcomm_plan_destroy(plan);
    lcomm_topo_free(&topo);
  }
}

static void a_plan_says_the_times_that_it_was_chosen_by(void **state) {
  (void)state;
  lcomm_topo topo = topo_of(100, 0.001);
  lcomm_plan *plan = allreduce_plan_over(&topo, "net=auto:int8", 0, LONG, true);
  assert_non_null(strstr(plan->reason, "predicted none "));
  assert_non_null(strstr(plan->reason, ", int8 "));
  lcomm_plan_destroy(plan);
  plan = allreduce_plan_over(&topo, "net=auto:topk", 0, LONG, true);
  assert_non_null(strstr(plan->reason, ", int8 "));
  assert_non_null(strstr(plan->reason, ", int4+ef "));
  assert_non_null(strstr(plan->reason, ", int2+ef "));
  assert_non_null(strstr(plan->reason, ", sign+ef "));
  assert_non_null(strstr(plan->reason, ", topk:0.01+ef "));
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
}

static void the_word_is_read_and_written(void **state) {
  (void)state;
  expect_canonical("net=auto", "net=auto:lossless");
  expect_canonical("net=auto:topk min=1K", "net=auto:topk min=1K");
  expect_refusal("node=auto:int8", 6, "expected it on net");
  expect_canonical("net=auto:int4", "net=auto:int4");
  expect_canonical("net=auto:sign net[w*]=auto:int2", "net[w*]=auto:int2 net=auto:sign");
  expect_refusal("net=auto:fp16", 9, "expected auto:lossless");
  expect_canonical("net=auto:lowrank min=1K warmup=50", "net=auto:lowrank min=1K warmup=50");
  expect_refusal("net=auto:int2+ef", 9, "auto:int2, auto:sign, auto:lowrank or auto:topk");
  expect_refusal("net=auto:lowrank:4", 9, "expected auto:lossless");
  expect_refusal("net=auto:lowrank momentum=0.9", 18, "expected net=topk:DENSITY+ef");
  expect_refusal("net=auto:lowrank adam=onebit warmup=9", 18, "and no topk or lowrank");
  expect_refusal("net=auto+ef", 9, "expected auto:lossless");
  expect_refusal("net=auto:topk ramp=0.1@5", 15, "expected net=topk");
  lcomm_why error;
  lcomm_codec_spec choice;
  assert_int_equal(lcomm_format_parse("auto:int8", &choice, &error), LCOMM_ERR_POLICY);
}

/* -------------------------------------------------- algorithms and chunks */

typedef struct world {
  int ranks, nodes;
} world;

static const world worlds[] = {{2, 2}, {5, 2}, {4, 4}, {8, 4}, {6, 6}, {12, 3}};

enum { WORLDS = sizeof(worlds) / sizeof(worlds[0]) };

static lcomm_topo topo_of_world(const world *it, double latency_us, double bandwidth_gb_s,
                                double message_us) {
  static const lcomm_identity identities[PLANS_RANKS_MAX];
  lcomm_why error;
  lcomm_topo topo;
  assert_int_equal(lcomm_topo_create(identities, it->ranks, it->nodes, &topo, &error), LCOMM_OK);
  topo.cost[LCOMM_LINK_NET] = (lcomm_link_cost){
      .latency_us = latency_us, .bandwidth_gb_s = bandwidth_gb_s, .message_us = message_us};
  return topo;
}

/* What a user could have asked for by algo=. */
static void no_algorithm_of_the_policy_is_predicted_to_be_more_than_a_tenth_faster(void **state) {
  (void)state;
  static const char *const asked[] = {
      "net=none algo=direct min=1",  "net=none algo=gather min=1",
      "net=none algo=ring min=1",    "net=none algo=doubling min=1",
      "net=none algo=halving min=1", "net=none min=1",
      "net=bf16 algo=direct min=1",  "net=bf16 algo=gather min=1",
      "net=int8 algo=direct min=1",  "net=int8 algo=gather min=1",
      "net=int2 algo=direct min=1",  "net=sign algo=gather min=1",
      "net=topk:0.01+ef min=1",      "net=topk:0.01+ef algo=gather min=1"};
  static const int candidates[] = {
      0, 0, 0, 0, 0, 0, 2, 2, 3, 3, 5, 6, LCOMM_AUTO_TOPK, LCOMM_AUTO_TOPK};
  for (const world *it = worlds; it < worlds + WORLDS; it++) {
    for (double bandwidth = 1e-3; bandwidth < 1e2; bandwidth *= 10) {
      for (uint64_t count = 1 << 12; count <= 1 << 22; count *= 32) {
        lcomm_topo topo = topo_of_world(it, 30, bandwidth, 8);
        lcomm_plan *chosen = allreduce_plan_over(&topo, "net=auto:topk min=1", 0, count, true);
        double us = lcomm_auto_predict_us(chosen, &topo, chosen->automatic.candidate);
        for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
          lcomm_plan *other = allreduce_plan_over(&topo, asked[i], 0, count, true);
          double other_us = lcomm_auto_predict_us(other, &topo, candidates[i]);
          if (0.95 * 0.9 * us > other_us * (1 + 1e-9)) {
            fail_msg("%d ranks, %d nodes, %g GB/s, %llu: %s takes %g us, %s %g us", it->ranks,
                     it->nodes, bandwidth, (unsigned long long)count, asked[i], other_us,
                     chosen->reason, us);
          }
          lcomm_plan_destroy(other);
        }
        lcomm_plan_destroy(chosen);
        lcomm_topo_free(&topo);
      }
    }
  }
}

static void all_ranks_choose_the_same_shape(void **state) {
  (void)state;
  for (const world *it = worlds; it < worlds + WORLDS; it++) {
    for (uint64_t count = 1 << 12; count <= 1 << 20; count *= 16) {
      lcomm_topo topo = topo_of_world(it, 300, 0.5, 2);
      lcomm_plan *first = allreduce_plan_over(&topo, "net=auto:int8 min=1", 0, count, true);
      for (int rank = 1; rank < it->ranks; rank++) {
        lcomm_plan *other = allreduce_plan_over(&topo, "net=auto:int8 min=1", rank, count, true);
        assert_true(other->hash == first->hash);
        lcomm_plan_destroy(other);
      }
      lcomm_plan_destroy(first);
      lcomm_topo_free(&topo);
    }
  }
}

static uint32_t chunks_where_messages_cost(double message_us, const char **reason) {
  static char text[512];
  static const world two = {2, 2};
  lcomm_topo topo = topo_of_world(&two, 10, 1, message_us);
  topo.codec_cost[LCOMM_AUTO_INT8] = (lcomm_codec_cost){.encode_gb_s = 1, .decode_gb_s = 1};
  lcomm_plan *plan = allreduce_plan_over(&topo, "net=auto:int8", 0, LONG, true);
  uint32_t chunks = plan->shape.chunks;
  snprintf(text, sizeof(text), "%s", plan->reason);
  *reason = text;
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
  return chunks;
}

static void the_more_a_message_costs_the_fewer_chunks_are_made(void **state) {
  (void)state;
  const char *reason;
  uint32_t before = UINT32_MAX, first = 0;
  for (double message_us = 0.01; message_us < 1e5; message_us *= 10) {
    uint32_t chunks = chunks_where_messages_cost(message_us, &reason);
    assert_true(chunks <= before);
    first = before == UINT32_MAX ? chunks : first;
    before = chunks;
  }
  assert_true(first > 4); /* as the rules would have it */
  assert_int_equal(before, 1);
}

static void a_plan_says_why_it_has_another_shape_than_the_rules_give(void **state) {
  (void)state;
  const char *reason;
  (void)chunks_where_messages_cost(0.01, &reason);
  assert_non_null(strstr(reason, "; gather in "));
  assert_non_null(strstr(reason, " chunks, for gather in 4 chunks would take "));
}

static void an_algorithm_that_the_policy_names_stays(void **state) {
  (void)state;
  for (const world *it = worlds; it < worlds + WORLDS; it++) {
    lcomm_topo topo = topo_of_world(it, 1e4, 1, 1e4); /* one round would be best */
    lcomm_plan *plan =
        allreduce_plan_over(&topo, "net=auto:int8 algo=direct min=1", 0, 1 << 12, true);
    assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_DIRECT);
    lcomm_plan_destroy(plan);
    lcomm_topo_free(&topo);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(on_a_slow_link_the_coarsest_codec_of_the_class_is_taken),
    cmocka_unit_test(on_a_link_as_fast_as_memory_sums_stay_exact),
    cmocka_unit_test(a_class_is_that_of_its_coarsest_codec),
    cmocka_unit_test(no_class_is_exceeded_on_any_link_at_any_size),
    cmocka_unit_test(the_plan_that_is_taken_is_predicted_to_be_the_fastest_but_for_a_twentieth),
    cmocka_unit_test(all_ranks_choose_alike),
    cmocka_unit_test(plain_calls_take_no_codec_with_error_feedback),
    cmocka_unit_test(the_slower_the_link_the_coarser_the_codec),
    cmocka_unit_test(on_links_of_such_rates_such_codecs_are_taken),
    cmocka_unit_test(what_is_short_stays_exact),
    cmocka_unit_test(what_hides_behind_the_computation_is_not_compressed_further),
    cmocka_unit_test(a_plan_says_the_times_that_it_was_chosen_by),
    cmocka_unit_test(the_word_is_read_and_written),
    cmocka_unit_test(no_algorithm_of_the_policy_is_predicted_to_be_more_than_a_tenth_faster),
    cmocka_unit_test(all_ranks_choose_the_same_shape),
    cmocka_unit_test(the_more_a_message_costs_the_fewer_chunks_are_made),
    cmocka_unit_test(a_plan_says_why_it_has_another_shape_than_the_rules_give),
    cmocka_unit_test(an_algorithm_that_the_policy_names_stays),
};
RUN_TESTS(tests)
