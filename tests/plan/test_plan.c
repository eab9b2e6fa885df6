/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Choices of the planner, on machines that need not be there. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/plan/plan.h"
#include "tests/support/unit_tests.h"

static lcomm_plan *make_plan(const char *policy_text, int ranks, int nodes, int rank,
                             lcomm_plan_request request) {
  lcomm_why error = {""};
  lcomm_why why;
  static const lcomm_identity identities[64];
  lcomm_topo topo;
  lcomm_policy policy;
  lcomm_plan *plan = NULL;
  assert_int_equal(lcomm_policy_parse(policy_text, &policy, &error), LCOMM_OK);
  assert_int_equal(lcomm_topo_create(identities, ranks, nodes, &topo, &error), LCOMM_OK);
  lcomm_status status = lcomm_plan_create(&request, &policy, &topo, rank, &plan, &why);
  lcomm_topo_free(&topo);
  if (status != LCOMM_OK) {
    fail_msg("%s", why.text);
  }
  return plan;
}

static lcomm_plan_request allreduce_of(uint64_t count) {
  return (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = count,
                              .dtype = LCOMM_FLOAT32,
                              .error_feedback = true};
}

enum { LARGE = 10000000 };

static void two_sides_of_a_lossy_dense_codec_quantise_once(void **state) {
  (void)state;
  lcomm_plan *plan = make_plan("net=int8", 4, 2, 0, allreduce_of(LARGE));
  assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_GATHER);
  assert_true(plan->shape.hierarchical);
  lcomm_plan_destroy(plan);
  plan = make_plan("net=int8", 8, 4, 0, allreduce_of(LARGE));
  assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_DIRECT);
  lcomm_plan_destroy(plan);
}

static void two_sides_of_a_short_exact_sum_take_one_round(void **state) {
  (void)state;
  enum { LAST = (32 << 10) / sizeof(float) };
  static const struct {
    int ranks, nodes;
    uint64_t count;
    lcomm_exchange_kind exchange;
  } cases[] = {{2, 1, LAST, LCOMM_EXCHANGE_GATHER},         {2, 1, LAST + 1, LCOMM_EXCHANGE_DIRECT},
               {2, 2, LAST, LCOMM_EXCHANGE_GATHER},         {4, 2, 2 * LAST, LCOMM_EXCHANGE_GATHER},
               {4, 2, 2 * LAST + 2, LCOMM_EXCHANGE_DIRECT}, {3, 1, LAST, LCOMM_EXCHANGE_DIRECT},
               {3, 3, LAST, LCOMM_EXCHANGE_DIRECT}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    lcomm_plan *plan =
        make_plan("net=none", cases[i].ranks, cases[i].nodes, 0, allreduce_of(cases[i].count));
    assert_int_equal(plan->shape.exchange, cases[i].exchange);
    lcomm_plan_destroy(plan);
  }
}

/* Where a chunk's way along the chain costs more than the tree's root does, it is the tree. On one
 * node chunks are longer. */
static void a_long_broadcast_goes_in_chunks(void **state) {
  (void)state;
  enum { CHUNK = (256 << 10) / sizeof(float) };
  static const struct {
    int ranks, nodes;
    uint64_t count;
    uint32_t chunks;
  } cases[] = {{4, 4, 4 * CHUNK, 4},    {4, 4, 4 * CHUNK - 1, 1},      {3, 3, 2 * CHUNK, 2},
               {2, 2, 64 * CHUNK, 1},   {4, 2, 64 * CHUNK, 64},        {4, 1, 64 * CHUNK, 16},
               {4, 1, 8 * CHUNK, 2},    {4, 1, 8 * CHUNK - 1, 1},      {2, 1, 64 * CHUNK, 1},
               {64, 64, 24 * CHUNK, 1}, {64, 64, 25 * CHUNK + 99, 25}, {4, 4, 5000 * CHUNK, 1024}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    lcomm_plan_request request = {
        .collective = LCOMM_COLLECTIVE_BROADCAST, .count = cases[i].count, .dtype = LCOMM_FLOAT32};
    lcomm_plan *plan = make_plan("", cases[i].ranks, cases[i].nodes, 0, request);
    assert_int_equal(plan->shape.chunks, cases[i].chunks);
    lcomm_plan_destroy(plan);
  }
}

/* Partial sums travel around it; what error feedback keeps has another form. */
static void long_segments_of_several_nodes_go_around_a_ring(void **state) {
  (void)state;
  enum { SEGMENT = (64 << 10) / sizeof(float) };
  static const struct {
    const char *policy;
    lcomm_collective collective;
    int ranks, nodes;
    uint64_t count;
    bool error_feedback, ring;
  } cases[] = {
      {"", LCOMM_COLLECTIVE_REDUCE_SCATTER, 8, 4, SEGMENT, false, true},
      {"", LCOMM_COLLECTIVE_REDUCE_SCATTER, 8, 4, SEGMENT - 1, false, false},
      {"", LCOMM_COLLECTIVE_REDUCE_SCATTER, 8, 2, SEGMENT, false, false},
      {"net=int8", LCOMM_COLLECTIVE_REDUCE_SCATTER, 8, 4, SEGMENT, false, false},
      {"net=int8+ef warmup=9", LCOMM_COLLECTIVE_REDUCE_SCATTER, 8, 4, SEGMENT, true, false},
      {"net=int8", LCOMM_COLLECTIVE_ALLGATHER, 3, 3, SEGMENT, false, true},
      {"", LCOMM_COLLECTIVE_ALLGATHER, 3, 3, SEGMENT - 1, false, false},
      {"", LCOMM_COLLECTIVE_ALLTOALL, 3, 3, SEGMENT, false, false},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    lcomm_plan_request request = {.collective = cases[i].collective,
                                  .count = cases[i].count,
                                  .dtype = LCOMM_FLOAT32,
                                  .error_feedback = cases[i].error_feedback};
    lcomm_plan *plan = make_plan(cases[i].policy, cases[i].ranks, cases[i].nodes, 0, request);
    assert_true((plan->shape.exchange == LCOMM_EXCHANGE_RING) == cases[i].ring);
    lcomm_plan_destroy(plan);
  }
}

static void topk_over_many_nodes_is_sparse_and_in_one_chunk(void **state) {
  (void)state;
  lcomm_plan *plan = make_plan("net=topk:0.01+ef", 8, 4, 0, allreduce_of(LARGE));
  assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_SPARSE);
  assert_int_equal(plan->shape.chunks, 1);
  assert_int_equal(plan->stages[LCOMM_STAGE_RESULT].format.codec->id, LCOMM_CODEC_TOPK);
  lcomm_plan_destroy(plan);
}

/* One round, unless what all have picked adds up: a rank would receive it from each. */
static void short_topk_is_gathered_from_few_nodes(void **state) {
  (void)state;
  static const struct {
    const char *policy;
    int nodes;
    uint64_t count;
    lcomm_exchange_kind exchange;
  } cases[] = {{"net=topk:0.01+ef min=1", 4, 16000, LCOMM_EXCHANGE_GATHER},
               {"net=topk:0.1+ef min=1", 64, 2000, LCOMM_EXCHANGE_GATHER},
               {"net=topk:0.1+ef min=1", 64, 200000, LCOMM_EXCHANGE_SPARSE},
               {"net=topk:0.01+ef min=1", 64, 200000, LCOMM_EXCHANGE_SPARSE},
               {"net=topk:0.1+ef min=1 algo=gather", 64, 200000, LCOMM_EXCHANGE_GATHER}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    lcomm_plan *plan =
        make_plan(cases[i].policy, cases[i].nodes, cases[i].nodes, 0, allreduce_of(cases[i].count));
    assert_int_equal(plan->shape.exchange, cases[i].exchange);
    lcomm_plan_destroy(plan);
  }
}

/* The codec of a stage of a large sum of 8 ranks. */
static void expect_codec(const char *policy, int nodes, lcomm_stage stage, lcomm_codec_id codec) {
  lcomm_plan *plan = make_plan(policy, 8, nodes, 0, allreduce_of(LARGE));
  assert_int_equal(plan->stages[stage].format.codec->id, codec);
  lcomm_plan_destroy(plan);
}

static void a_dense_topk_result_travels_as_int8(void **state) {
  (void)state;
  expect_codec("net=topk:0.5+ef", 4, LCOMM_STAGE_RESULT, LCOMM_CODEC_INT8);
}

static void small_calls_are_exact_and_take_one_round(void **state) {
  (void)state;
  static const int ranks[] = {8, 3}, nodes[] = {1, 3};
  for (int i = 0; i < 2; i++) {
    lcomm_plan *plan = make_plan("net=int8", ranks[i], nodes[i], 0, allreduce_of(1000));
    assert_int_equal(plan->stages[LCOMM_STAGE_NET].format.codec->id, LCOMM_CODEC_NONE);
    assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_GATHER);
    assert_false(plan->shape.hierarchical);
    lcomm_plan_destroy(plan);
  }
}

/* A message between hosts costs more than all inside them. */
static void small_exact_calls_between_nodes_have_leaders(void **state) {
  (void)state;
  static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_GATHER, LCOMM_EXCHANGE_DOUBLING};
  for (int i = 0; i < 2; i++) {
    lcomm_plan *short_plan = make_plan("net=int8", 6 + 2 * i, 3 + i, 0, allreduce_of(1000));
    assert_int_equal(short_plan->shape.exchange, kinds[i]);
    assert_true(short_plan->shape.leaders && short_plan->shape.tells_sum);
    lcomm_plan_destroy(short_plan);
  }
  lcomm_plan *plan = make_plan("net=int8", 8, 4, 0, allreduce_of(1000));
  assert_true(plan->shape.hierarchical);
  assert_non_null(strstr(plan->reason, "speaks for its node"));
  lcomm_plan_destroy(plan);
  plan = make_plan("net=none", 40, 20, 39, allreduce_of(100));
  assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_DOUBLING);
  assert_true(plan->shape.hierarchical && plan->shape.leaders && plan->shape.tells_sum);
  lcomm_plan_destroy(plan);
  plan = make_plan("net=none", 8, 4, 0, allreduce_of(100000));
  assert_true(plan->shape.hierarchical && !plan->shape.leaders && !plan->shape.tells_sum);
  lcomm_plan_destroy(plan);
}

/* What would lose something on the way, and what was asked for by name. */
static void small_calls_without_leaders_stay_as_they_were(void **state) {
  (void)state;
  lcomm_plan_request request = allreduce_of(1000);
  lcomm_plan *plan = make_plan("algo=direct", 8, 4, 0, request);
  assert_false(plan->shape.leaders);
  lcomm_plan_destroy(plan);
  plan = make_plan("net=int8 min=1", 8, 4, 0, request);
  assert_false(plan->shape.hierarchical);
  lcomm_plan_destroy(plan);
  request.dtype = LCOMM_BFLOAT16; /* others of 16 bits have them: test_plan_short.c */
  plan = make_plan("net=none+zstd min=1", 8, 4, 0, request);
  assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_GATHER);
  assert_false(plan->shape.hierarchical);
  lcomm_plan_destroy(plan);
}

static void links_inside_a_node_stay_exact_by_default(void **state) {
  (void)state;
  expect_codec("net=int8", 2, LCOMM_STAGE_NODE, LCOMM_CODEC_NONE);
  expect_codec("net=int8", 1, LCOMM_STAGE_RESULT, LCOMM_CODEC_NONE);
}

static void error_feedback_needs_data_that_lasts(void **state) {
  (void)state;
  uint64_t first = 0, count = 0;
  lcomm_plan_request plain = allreduce_of(LARGE);
  plain.error_feedback = false;
  lcomm_plan *plan = make_plan("net=topk:0.01+ef", 8, 4, 0, plain);
  assert_int_equal(plan->stages[LCOMM_STAGE_NET].format.codec->id, LCOMM_CODEC_NONE);
  assert_false(lcomm_plan_feedback(plan, &first, &count));
  assert_non_null(strstr(plan->reason, "tensor"));
  lcomm_plan_destroy(plan);
}

/* The shards whose residuals the ranks of a node keep cover the vector once. */
static void residuals_live_on_shards(void **state) {
  (void)state;
  uint64_t next = 0;
  for (int rank = 0; rank < 4; rank++) {
    uint64_t first = 0, count = 0;
    lcomm_plan *plan = make_plan("net=topk:0.01+ef", 8, 2, rank, allreduce_of(LARGE));
    assert_true(lcomm_plan_feedback(plan, &first, &count));
    assert_int_equal(first, next);
    next = first + count;
    lcomm_plan_destroy(plan);
  }
  assert_int_equal(next, LARGE);
}

static void all_ranks_make_plans_with_the_same_hash(void **state) {
  (void)state;
  lcomm_plan *first = make_plan("net=int8", 6, 3, 0, allreduce_of(LARGE));
  for (int rank = 1; rank < 6; rank++) {
    lcomm_plan *plan = make_plan("net=int8", 6, 3, rank, allreduce_of(LARGE));
    assert_int_equal(plan->hash, first->hash);
    lcomm_plan_destroy(plan);
  }
  lcomm_plan *other = make_plan("net=int8 min=1K", 6, 3, 0, allreduce_of(LARGE));
  assert_int_not_equal(other->hash, first->hash);
  lcomm_plan_destroy(other);
  other = make_plan("net=int8", 6, 3, 0, allreduce_of(LARGE + 1));
  assert_int_not_equal(other->hash, first->hash);
  lcomm_plan_destroy(other);
  lcomm_plan_destroy(first);
}

static lcomm_exchange_kind exchange_of(const char *policy, int ranks, int nodes, uint64_t count) {
  lcomm_plan *plan = make_plan(policy, ranks, nodes, 0, allreduce_of(count));
  lcomm_exchange_kind exchange = plan->shape.exchange;
  lcomm_plan_destroy(plan);
  return exchange;
}

static void a_ring_is_only_taken_for_exact_bytes(void **state) {
  (void)state;
  assert_int_equal(exchange_of("algo=ring", 8, 4, LARGE), LCOMM_EXCHANGE_RING);
  assert_int_equal(exchange_of("node=int8 algo=ring", 4, 1, LARGE), LCOMM_EXCHANGE_DIRECT);
}

static void long_exact_sums_between_many_nodes_go_around_a_ring(void **state) {
  (void)state;
  lcomm_plan *plan = make_plan("net=none", 8, 4, 0, allreduce_of(LARGE));
  assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_RING);
  assert_true(plan->shape.hierarchical);
  lcomm_plan_destroy(plan);
  assert_int_equal(exchange_of("net=none", 8, 4, 50000), LCOMM_EXCHANGE_HALVING);
  assert_int_equal(exchange_of("net=none", 10, 5, 50000), LCOMM_EXCHANGE_DIRECT);
  assert_int_equal(exchange_of("net=none", 8, 2, LARGE), LCOMM_EXCHANGE_DIRECT);
}

/* Their partial sums would be rounded at every hop. */
static void sums_of_16_bit_types_never_go_around_a_ring(void **state) {
  (void)state;
  static const char *const policies[] = {"net=none", "algo=ring"};
  for (int i = 0; i < 2; i++) {
    lcomm_plan_request request = allreduce_of(LARGE);
    request.dtype = i == 0 ? LCOMM_BFLOAT16 : LCOMM_FLOAT16;
    lcomm_plan *plan = make_plan(policies[i], 8, 4, 0, request);
    assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_DIRECT);
    lcomm_plan_destroy(plan);
  }
}

static void a_plan_is_printed_with_its_reason(void **state) {
  (void)state;
  char text[2048], tiny[8];
  lcomm_why error;
  lcomm_topo topo;
  static const lcomm_identity identities[8];
  assert_int_equal(lcomm_topo_create(identities, 8, 4, &topo, &error), LCOMM_OK);
  lcomm_plan *plan = make_plan("net=int8", 8, 4, 0, allreduce_of(LARGE));
  size_t length = lcomm_plan_describe(plan, &topo, text, sizeof(text));
  assert_int_equal(length, strlen(text));
  assert_non_null(strstr(text, "hier(direct)"));
  assert_non_null(strstr(text, "as the policy asks"));
  assert_int_equal(lcomm_plan_describe(plan, &topo, tiny, sizeof(tiny)), length);
  assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_sides_of_a_lossy_dense_codec_quantise_once),
    cmocka_unit_test(two_sides_of_a_short_exact_sum_take_one_round),
    cmocka_unit_test(topk_over_many_nodes_is_sparse_and_in_one_chunk),
    cmocka_unit_test(long_segments_of_several_nodes_go_around_a_ring),
    cmocka_unit_test(a_long_broadcast_goes_in_chunks),
    cmocka_unit_test(short_topk_is_gathered_from_few_nodes),
    cmocka_unit_test(a_dense_topk_result_travels_as_int8),
    cmocka_unit_test(small_calls_are_exact_and_take_one_round),
    cmocka_unit_test(small_exact_calls_between_nodes_have_leaders),
    cmocka_unit_test(small_calls_without_leaders_stay_as_they_were),
    cmocka_unit_test(links_inside_a_node_stay_exact_by_default),
    cmocka_unit_test(error_feedback_needs_data_that_lasts),
    cmocka_unit_test(residuals_live_on_shards),
    cmocka_unit_test(all_ranks_make_plans_with_the_same_hash),
    cmocka_unit_test(a_ring_is_only_taken_for_exact_bytes),
    cmocka_unit_test(long_exact_sums_between_many_nodes_go_around_a_ring),
    cmocka_unit_test(sums_of_16_bit_types_never_go_around_a_ring),
    cmocka_unit_test(a_plan_is_printed_with_its_reason),
};
RUN_TESTS(tests)
