/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plans of every type, operation and collective. */

#include "tests/plan/plans.h"
#include "tests/support/unit_tests.h"

/* ------------------------------------------------------------------- plain */

static void expect_plain(const char *policy, lcomm_dtype dtype, lcomm_op op, bool plain,
                         size_t element) {
  lcomm_plan *plan =
      make_plan(policy, 8, 2, 3, request_of(LCOMM_COLLECTIVE_ALLREDUCE, 100001, dtype, op));
  assert_int_equal(plan->plain, plain);
  assert_int_equal(plan->element_size, element);
  assert_int_equal(plan->vector_count, 100001);
  for (uint32_t i = 0; plain && i < plan->schedule.slot_count; i++) {
    assert_int_equal(plan->slot_sizes[i].bound, plan->schedule.slots[i].count * element);
  }
  lcomm_plan_destroy(plan);
}

static void sums_without_a_codec_are_plain(void **state) {
  (void)state;
  expect_plain("net=none", LCOMM_FLOAT32, LCOMM_SUM, true, 4);
  expect_plain("net=int8 min=1M", LCOMM_FLOAT32, LCOMM_AVG, true, 4);
  expect_plain("net=int8", LCOMM_FLOAT32, LCOMM_SUM, false, 4);
  expect_plain("node=int8", LCOMM_FLOAT32, LCOMM_SUM, false, 4);
  expect_plain("net=none+zstd", LCOMM_FLOAT32, LCOMM_SUM, false, 4);
  expect_plain("net=none", LCOMM_FLOAT16, LCOMM_SUM, false, 4);
  expect_plain("net=none", LCOMM_BFLOAT16, LCOMM_MIN, false, 4);
}

static void some_sums_are_plain_whatever_the_policy(void **state) {
  (void)state;
  static const char *const policies[] = {"net=none", "net=int8+zstd node=bf16 min=1",
                                         "net=topk:0.01 min=1", "net=none+zstd min=1"};
  for (int i = 0; i < 4; i++) {
    for (int op = LCOMM_SUM; op <= LCOMM_MAX; op++) {
      expect_plain(policies[i], LCOMM_FLOAT64, (lcomm_op)op, true, 8);
      expect_plain(policies[i], LCOMM_INT32, (lcomm_op)op, true, 4);
      expect_plain(policies[i], LCOMM_INT64, (lcomm_op)op, true, 8);
    }
    expect_plain(policies[i], LCOMM_FLOAT32, LCOMM_MIN, true, 4);
    expect_plain(policies[i], LCOMM_FLOAT32, LCOMM_MAX, true, 4);
  }
}

static void minima_of_16_bit_types_keep_their_exact_format(void **state) {
  (void)state;
  lcomm_plan *plan =
      make_plan("net=int8+zstd node=int8 min=1", 8, 4, 0,
                request_of(LCOMM_COLLECTIVE_ALLREDUCE, 100000, LCOMM_FLOAT16, LCOMM_MIN));
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    assert_int_equal(plan->stages[i].format.codec->id, LCOMM_CODEC_FP16);
    assert_int_equal(plan->stages[i].format.variant, LCOMM_VARIANT_PLAIN);
    assert_false(plan->stages[i].format.zstd);
  }
  assert_non_null(strstr(plan->reason, "minima and maxima"));
  lcomm_plan_destroy(plan);
}

/* ------------------------------------------------------------------- moves */

static void moves_are_of_the_callers_own_elements(void **state) {
  (void)state;
  static const lcomm_dtype types[] = {LCOMM_FLOAT16, LCOMM_FLOAT32, LCOMM_INT64};
  uint64_t parts[3] = {7, 0, 8};
  for (int i = 0; i < 3; i++) {
    lcomm_plan_request uneven = request_of(LCOMM_COLLECTIVE_ALLGATHERV, 15, types[i], LCOMM_SUM);
    uneven.part_counts = parts;
    lcomm_plan *plans[] = {
        make_plan("net=int8 min=1", 3, 1, 1, uneven),
        make_plan("net=int8 min=1", 3, 1, 1,
                  request_of(LCOMM_COLLECTIVE_ALLGATHER, 5, types[i], LCOMM_SUM)),
        make_plan("net=int8 min=1", 3, 1, 1,
                  request_of(LCOMM_COLLECTIVE_BROADCAST, 15, types[i], LCOMM_SUM)),
        make_plan("net=int8 min=1", 3, 1, 1,
                  request_of(LCOMM_COLLECTIVE_ALLTOALL, 5, types[i], LCOMM_SUM)),
    };
    for (int k = 0; k < 4; k++) {
      assert_true(plans[k]->plain && !plans[k]->lossy);
      assert_int_equal(plans[k]->element_size, lcomm_dtype_size(types[i]));
      assert_int_equal(plans[k]->vector_count, k == 3 ? 30 : 15);
      assert_int_equal(plans[k]->input_count, k == 3 ? 15 : 0);
      assert_int_equal(lcomm_plan_vector_size(plans[k]), 0);
      assert_int_equal(lcomm_plan_input_size(plans[k]), 0);
      lcomm_plan_destroy(plans[k]);
    }
  }
}

static void memory_is_taken_only_where_buffers_cannot_serve(void **state) {
  (void)state;
  lcomm_plan_request request = request_of(LCOMM_COLLECTIVE_ALLTOALL, 5, LCOMM_INT64, LCOMM_SUM);
  request.in_place = true;
  lcomm_plan *plan = make_plan("net=none", 3, 1, 0, request);
  assert_int_equal(lcomm_plan_input_size(plan), 15 * 8);
  assert_int_equal(lcomm_plan_vector_size(plan), 0);
  lcomm_plan_destroy(plan);
  request = request_of(LCOMM_COLLECTIVE_REDUCE_SCATTER, 5, LCOMM_INT64, LCOMM_SUM);
  plan = make_plan("net=none", 3, 1, 0, request);
  assert_int_equal(lcomm_plan_vector_size(plan), 15 * 8);
  lcomm_plan_destroy(plan);
  request = request_of(LCOMM_COLLECTIVE_ALLREDUCE, 5, LCOMM_FLOAT16, LCOMM_SUM);
  plan = make_plan("net=none", 3, 1, 0, request);
  assert_int_equal(lcomm_plan_vector_size(plan), 5 * 4);
  lcomm_plan_destroy(plan);
  request.error_feedback = true; /* a bucket brings it */
  plan = make_plan("net=none", 3, 1, 0, request);
  assert_int_equal(lcomm_plan_vector_size(plan), 0);
  lcomm_plan_destroy(plan);
}

/* ---------------------------------------------------------- equal and other */

static void averages_share_the_plan_of_sums(void **state) {
  (void)state;
  lcomm_plan_request sum = request_of(LCOMM_COLLECTIVE_ALLREDUCE, 9, LCOMM_INT32, LCOMM_SUM);
  lcomm_plan_request average = sum, least = sum, most = sum;
  average.op = LCOMM_AVG;
  least.op = LCOMM_MIN;
  most.op = LCOMM_MAX;
  lcomm_plan *plan = make_plan("net=none", 4, 2, 0, average);
  assert_true(lcomm_plan_fits(plan, &sum) && lcomm_plan_fits(plan, &average));
  assert_false(lcomm_plan_fits(plan, &least) || lcomm_plan_fits(plan, &most));
  lcomm_plan *others[] = {make_plan("net=none", 4, 2, 1, sum),
                          make_plan("net=none", 4, 2, 1, least),
                          make_plan("net=none", 4, 2, 1, most)};
  assert_int_equal(others[0]->hash, plan->hash);
  assert_int_not_equal(others[1]->hash, plan->hash);
  assert_int_not_equal(others[1]->hash, others[2]->hash);
  for (int i = 0; i < 3; i++) {
    lcomm_plan_destroy(others[i]);
  }
  lcomm_plan_destroy(plan);
}

static void other_parts_make_another_plan(void **state) {
  (void)state;
  uint64_t parts[2][3] = {{7, 0, 8}, {7, 1, 7}}, first[3];
  lcomm_plan_request request = request_of(LCOMM_COLLECTIVE_ALLGATHERV, 15, LCOMM_INT32, LCOMM_SUM);
  memcpy(first, parts[0], sizeof(first));
  request.part_counts = first;
  lcomm_plan *plan = make_plan("net=none", 3, 1, 0, request);
  memset(first, 0, sizeof(first)); /* they are copied */
  request.part_counts = parts[0];
  assert_true(lcomm_plan_fits(plan, &request));
  request.part_counts = parts[1];
  assert_false(lcomm_plan_fits(plan, &request));
  lcomm_plan *other = make_plan("net=none", 3, 1, 0, request);
  assert_int_not_equal(plan->hash, other->hash);
  lcomm_plan_destroy(other);
  lcomm_plan_destroy(plan);
}

static void being_in_place_is_each_ranks_own_affair(void **state) {
  (void)state;
  lcomm_plan_request request = request_of(LCOMM_COLLECTIVE_ALLTOALL, 5, LCOMM_INT32, LCOMM_SUM);
  lcomm_plan *plan = make_plan("net=none", 3, 1, 0, request);
  request.in_place = true;
  lcomm_plan *other = make_plan("net=none", 3, 1, 1, request);
  assert_int_equal(plan->hash, other->hash);
  assert_false(lcomm_plan_fits(plan, &request));
  lcomm_plan_destroy(other);
  lcomm_plan_destroy(plan);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_without_a_codec_are_plain),
    cmocka_unit_test(some_sums_are_plain_whatever_the_policy),
    cmocka_unit_test(minima_of_16_bit_types_keep_their_exact_format),
    cmocka_unit_test(moves_are_of_the_callers_own_elements),
    cmocka_unit_test(memory_is_taken_only_where_buffers_cannot_serve),
    cmocka_unit_test(averages_share_the_plan_of_sums),
    cmocka_unit_test(other_parts_make_another_plan),
    cmocka_unit_test(being_in_place_is_each_ranks_own_affair),
};
RUN_TESTS(tests)
