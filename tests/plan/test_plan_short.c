/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Short sums of 16-bit types go between nodes as those of float32 do; short all-gathers. */

#include "tests/plan/plans.h"
#include "tests/support/unit_tests.h"

static const lcomm_dtype halves[] = {LCOMM_FLOAT16, LCOMM_BFLOAT16};

static lcomm_plan_request sum_of(uint64_t count, lcomm_dtype dtype) {
  return request_of(LCOMM_COLLECTIVE_ALLREDUCE, count, dtype, LCOMM_SUM);
}

static void expect_payloads(const lcomm_plan *plan, lcomm_codec_id codec) {
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    assert_int_equal(plan->stages[i].format.codec->id, codec);
  }
  assert_false(plan->lossy);
}

/* Not a padding bit is looked at. */
static void expect_equal_shapes(const lcomm_plan *a, const lcomm_plan *b) {
  assert_int_equal(a->shape.exchange, b->shape.exchange);
  assert_int_equal(a->shape.hierarchical, b->shape.hierarchical);
  assert_int_equal(a->shape.leaders, b->shape.leaders);
  assert_int_equal(a->shape.tells_sum, b->shape.tells_sum);
  assert_int_equal(a->shape.chunks, b->shape.chunks);
  assert_int_equal(a->schedule.step_count, b->schedule.step_count);
}

static void short_sums_of_16_bits_have_the_shape_of_float32(void **state) {
  (void)state;
  static const int ranks[] = {8, 40, 6, 64, 64, 7, 16, 4}, nodes[] = {4, 20, 3, 8, 64, 4, 16, 4};
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
    for (uint64_t count = 1; count <= 1024; count *= 32) {
      for (int h = 0; h < 2; h++) {
        int rank = ranks[i] - 1;
        lcomm_plan *wide =
            make_plan("net=int8", ranks[i], nodes[i], rank, sum_of(count, LCOMM_FLOAT32));
        lcomm_plan *half =
            make_plan("net=int8", ranks[i], nodes[i], rank, sum_of(count, halves[h]));
        expect_equal_shapes(half, wide);
        expect_payloads(half, LCOMM_CODEC_NONE);
        assert_non_null(strstr(half->reason, "travel as float32"));
        lcomm_plan_destroy(half);
        lcomm_plan_destroy(wide);
      }
    }
  }
}

static void minima_and_averages_go_the_same_way(void **state) {
  (void)state;
  static const lcomm_op ops[] = {LCOMM_AVG, LCOMM_MIN, LCOMM_MAX};
  for (int i = 0; i < 3; i++) {
    lcomm_plan *plan = make_plan(
        "", 40, 20, 3, request_of(LCOMM_COLLECTIVE_ALLREDUCE, 100, LCOMM_FLOAT16, ops[i]));
    assert_int_equal(plan->shape.exchange, LCOMM_EXCHANGE_DOUBLING);
    assert_true(plan->shape.leaders);
    expect_payloads(plan, LCOMM_CODEC_NONE);
    lcomm_plan_destroy(plan);
  }
}

/* Where bytes count, or one round does it, they travel in 16 bits. */
static void other_sums_of_16_bits_keep_their_bytes(void **state) {
  (void)state;
  static const struct {
    const char *policy;
    int ranks, nodes;
    uint64_t count;
  } others[] = {{"", 4, 1, 1},      {"", 3, 3, 100},
                {"", 8, 4, 100000}, {"algo=direct", 8, 4, 100},
                {"", 8, 8, 2049},   {"algo=doubling", 8, 4, 100}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    lcomm_plan *plan = make_plan(others[i].policy, others[i].ranks, others[i].nodes, 0,
                                 sum_of(others[i].count, LCOMM_FLOAT16));
    expect_payloads(plan, LCOMM_CODEC_FP16);
    assert_false(plan->shape.leaders);
    lcomm_plan_destroy(plan);
  }
  lcomm_plan *plan = make_plan("net=none+zstd min=1", 8, 4, 0, sum_of(100, LCOMM_BFLOAT16));
  assert_true(plan->stages[LCOMM_STAGE_NET].format.zstd);
  assert_false(plan->shape.leaders);
  lcomm_plan_destroy(plan);
  plan = make_plan("net=int8 min=1", 8, 4, 0, sum_of(100, LCOMM_BFLOAT16));
  assert_int_equal(plan->stages[LCOMM_STAGE_NET].format.codec->id, LCOMM_CODEC_INT8);
  assert_false(plan->shape.leaders);
  lcomm_plan_destroy(plan);
}

/* A shape in which partial sums travel rounds none of them, whoever asks for it. */
static void a_given_shape_that_passes_sums_on_is_of_float32(void **state) {
  (void)state;
  static const struct {
    lcomm_allreduce_shape shape;
    lcomm_codec_id codec;
  } given[] = {
      {{LCOMM_EXCHANGE_DOUBLING, .chunks = 1}, LCOMM_CODEC_NONE},
      {{LCOMM_EXCHANGE_HALVING, .hierarchical = true, .chunks = 1}, LCOMM_CODEC_NONE},
      {{LCOMM_EXCHANGE_RING, .hierarchical = true, .chunks = 1}, LCOMM_CODEC_NONE},
      {{LCOMM_EXCHANGE_GATHER, .hierarchical = true, .leaders = true, .tells_sum = true,
        .chunks = 1},
       LCOMM_CODEC_NONE},
      {{LCOMM_EXCHANGE_GATHER, .chunks = 1}, LCOMM_CODEC_BF16},
      {{LCOMM_EXCHANGE_DIRECT, .hierarchical = true, .chunks = 1}, LCOMM_CODEC_BF16},
  };
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    lcomm_plan_request request = sum_of(100, LCOMM_BFLOAT16);
    request.shape = &given[i].shape;
    lcomm_plan *plan = make_plan("", 8, 4, 5, request);
    expect_payloads(plan, given[i].codec);
    lcomm_plan_destroy(plan);
  }
}

static void all_ranks_make_the_same_plan(void **state) {
  (void)state;
  lcomm_plan *first = make_plan("net=int8", 10, 5, 0, sum_of(100, LCOMM_FLOAT16));
  lcomm_plan *wide = make_plan("net=int8", 10, 5, 0, sum_of(100, LCOMM_FLOAT32));
  assert_int_not_equal(first->hash, wide->hash);
  for (int rank = 1; rank < 10; rank++) {
    lcomm_plan *plan = make_plan("net=int8", 10, 5, rank, sum_of(100, LCOMM_FLOAT16));
    assert_int_equal(plan->hash, first->hash);
    lcomm_plan_destroy(plan);
  }
  lcomm_plan_destroy(wide);
  lcomm_plan_destroy(first);
}

static lcomm_exchange_kind gather_kind(int ranks, int nodes, uint64_t bytes) {
  lcomm_plan *plan =
      make_plan("", ranks, nodes, ranks - 1,
                request_of(LCOMM_COLLECTIVE_ALLGATHER, bytes, LCOMM_UINT8, LCOMM_SUM));
  lcomm_exchange_kind kind = plan->shape.exchange;
  lcomm_plan_destroy(plan);
  return kind;
}

static void short_all_gathers_between_many_nodes_take_log2_steps(void **state) {
  (void)state;
  static const int none[][2] = {{8, 1}, {4, 4}, {12, 6}},
                   all[][2] = {{7, 7}, {14, 7}, {64, 8}, {64, 64}};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(gather_kind(none[i][0], none[i][1], 8), LCOMM_EXCHANGE_DIRECT);
  }
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(gather_kind(all[i][0], all[i][1], 8), LCOMM_EXCHANGE_DOUBLING);
  }
  assert_int_equal(gather_kind(64, 8, 4096), LCOMM_EXCHANGE_DIRECT);
  assert_int_equal(gather_kind(64, 8, 64 << 10), LCOMM_EXCHANGE_RING);
  assert_int_equal(gather_kind(64, 64, 4096), LCOMM_EXCHANGE_DOUBLING);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(short_sums_of_16_bits_have_the_shape_of_float32),
    cmocka_unit_test(minima_and_averages_go_the_same_way),
    cmocka_unit_test(other_sums_of_16_bits_keep_their_bytes),
    cmocka_unit_test(a_given_shape_that_passes_sums_on_is_of_float32),
    cmocka_unit_test(all_ranks_make_the_same_plan),
    cmocka_unit_test(short_all_gathers_between_many_nodes_take_log2_steps),
};
RUN_TESTS(tests)
