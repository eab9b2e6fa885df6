/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plans of more elements than 32 bits can count. */

#include "tests/plan/plans.h"
#include "tests/support/unit_tests.h"

/* Half of the elements, dealt out to all but rank 1; the last rank has the rest. */
static void parts_of(uint64_t count, int ranks, uint64_t *parts) {
  uint64_t left = count;
  for (int i = 0; i < ranks; i++) {
    parts[i] = i == 1 ? 0 : count / 2 / (uint64_t)ranks;
    parts[i] = i == ranks - 1 ? left : parts[i];
    left -= parts[i];
  }
}

/* The schedules of all ranks fit, and no slot has lost a digit of its size. */
static void check_large(const char *policy, int ranks, int nodes, lcomm_plan_request request) {
  lcomm_why why;
  uint64_t parts[PLANS_RANKS_MAX];
  lcomm_plan *plans[PLANS_RANKS_MAX];
  lcomm_schedule schedules[PLANS_RANKS_MAX] = {{0}};
  parts_of(request.count, ranks, parts);
  request.part_counts = parts;
  for (int rank = 0; rank < ranks; rank++) {
    plans[rank] = make_plan(policy, ranks, nodes, rank, request);
    schedules[rank] = plans[rank]->schedule;
    assert_int_equal(plans[rank]->hash, plans[0]->hash);
    for (uint32_t i = 0; i < plans[rank]->schedule.slot_count; i++) {
      const lcomm_slot *slot = &plans[rank]->schedule.slots[i];
      const lcomm_format *format = &plans[rank]->stages[slot->stage].format;
      size_t bound = plans[rank]->plain               ? slot->count * plans[rank]->element_size
                     : lcomm_format_is_sparse(format) ? plans[rank]->slot_sizes[i].bound
                                                      : lcomm_payload_size(format, slot->count);
      assert_int_equal(plans[rank]->slot_sizes[i].bound, bound);
      assert_true(slot->count <= plans[rank]->vector_count);
    }
  }
  if (lcomm_schedule_verify_all(schedules, ranks, &why) != LCOMM_OK) {
    fail_msg("%s: %s", policy, why.text);
  }
  for (int rank = 0; rank < ranks; rank++) {
    lcomm_plan_destroy(plans[rank]);
  }
}

static void counts_of_more_than_32_bits_can_be_planned(void **state) {
  (void)state;
  static const uint64_t counts[] = {(UINT64_C(1) << 31) + 5, (UINT64_C(1) << 32) + 7,
                                    (UINT64_C(1) << 33) - 1, UINT64_C(1) << 40};
  static const lcomm_dtype types[] = {LCOMM_FLOAT32, LCOMM_BFLOAT16, LCOMM_FLOAT64, LCOMM_INT64};
  static const char *const policies[] = {"net=none", "net=int8 node=bf16", "algo=ring",
                                         "net=fp8e4m3 algo=gather"};
  for (int i = 0; i < 16; i++) {
    for (int collective = 0; collective < LCOMM_COLLECTIVE_COUNT; collective++) {
      lcomm_plan_request request =
          request_of((lcomm_collective)collective, counts[i % 4], types[i / 4], LCOMM_SUM);
      check_large(policies[(i + collective) % 4], 6, 1 + i % 3, request);
    }
  }
}

/* Every element comes to a rank exactly once. */
static void nothing_of_a_large_gather_is_left_out(void **state) {
  (void)state;
  uint64_t count = (UINT64_C(1) << 32) + 7, received = 0;
  lcomm_plan *plan = make_plan("net=none", 6, 2, 4,
                               request_of(LCOMM_COLLECTIVE_ALLGATHER, count, LCOMM_BFLOAT16, 0));
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    received += step->kind == LCOMM_STEP_DECODE ? step->span.count : 0;
  }
  assert_true(received == 5 * count);
  assert_true(plan->vector_count == 6 * count);
  lcomm_plan_destroy(plan);
}

static void topk_of_many_elements_is_bounded_or_left_out(void **state) {
  (void)state;
  uint64_t most = UINT32_MAX - UINT64_C(1);
  lcomm_plan_request request = request_of(LCOMM_COLLECTIVE_ALLREDUCE, most, LCOMM_FLOAT32, 0);
  lcomm_plan *plan = make_plan("net=topk:0.01", 2, 2, 0, request);
  assert_true(lcomm_format_is_sparse(&plan->stages[LCOMM_STAGE_NET].format));
  double entries = 0.01 * (double)most, bound = (double)plan->slot_sizes[0].bound;
  assert_true(bound > 2 * entries && bound < 8 * entries);
  lcomm_plan_destroy(plan);
  request.count = UINT64_C(1) << 32;
  plan = make_plan("net=topk:0.01", 2, 2, 0, request);
  assert_true(plan->plain);
  assert_non_null(strstr(plan->reason, "32-bit"));
  lcomm_plan_destroy(plan);
}

static void counts_without_addresses_are_refused(void **state) {
  (void)state;
  static const uint64_t counts[] = {UINT64_C(1) << 46, UINT64_C(1) << 61, UINT64_MAX / 8 + 1,
                                    UINT64_MAX};
  for (int i = 0; i < 4; i++) {
    for (int collective = 0; collective < LCOMM_COLLECTIVE_COUNT; collective++) {
      lcomm_why why;
      uint64_t parts[3] = {counts[i], 0, 0};
      lcomm_plan *plan = NULL;
      lcomm_plan_request request =
          request_of((lcomm_collective)collective, counts[i], LCOMM_FLOAT32, LCOMM_SUM);
      request.part_counts = parts;
      assert_int_equal(try_plan("net=none", 3, 1, 0, &request, &plan, &why), LCOMM_ERR_ARGUMENT);
      assert_non_null(strstr(why.text, "memory"));
      assert_null(plan);
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_of_more_than_32_bits_can_be_planned),
    cmocka_unit_test(nothing_of_a_large_gather_is_left_out),
    cmocka_unit_test(topk_of_many_elements_is_bounded_or_left_out),
    cmocka_unit_test(counts_without_addresses_are_refused),
};
RUN_TESTS(tests)
