/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What operations cost their caller on a device, for worlds that are only supposed. */

#include "tests/engine/supposed_devices.h"

/* 100 MB on 4 nodes of 8 ranks. */
static void require_most_of_large(counting function, const char *policy, uint64_t most) {
  lcomm_topo topo = suppose(4 * EACH, 4, true);
  for (int rank = 0; rank < topo.size; rank += 9) {
    lcomm_tape_calls calls = count_by(function, &large_call, policy, &topo, rank);
    require_most(&calls, policy, rank, most);
    assert_int_equal(calls.stay, 0);
  }
  lcomm_topo_free(&topo);
}

/* The same where payloads stay on devices inside nodes; `stay` of them. */
static void require_most_of_near(counting function, const char *policy, const lcomm_topo *topo,
                                 uint64_t most, uint64_t stay) {
  for (int rank = 0; rank < topo->size; rank += EACH - 1) {
    lcomm_tape_calls calls = count_by(function, &large_call, policy, topo, rank);
    require_most(&calls, policy, rank, most);
    assert_int_equal(calls.stay, stay);
    assert_int_equal(calls.gates, function == lcomm_tape_count_captured ? stay : 0);
  }
}

/* And their chunks: one selection of top-k is of all. */
static const struct {
  const char *policy;
  uint64_t chunks;
} large[] = {
    {"net=int8 min=1", 3},
    {"net=bf16", 3},
    {"net=fp8e4m3", 3},
    {"net=int4", 3},
    {"net=none algo=direct", 3},
    {"net=int8 node=bf16", 3},
    {"net=bf16+zstd", 3},
    {"net=int8+zstd min=1", 3},
    {"net=none", 3},
    {"node=int8 min=1", 3},
    {"net=topk:0.01 min=1", 1},
    {"net=topk:0.01+zstd min=1", 1},
};

enum { LARGE = sizeof large / sizeof *large };

static void large_sums_take_a_hundred_calls(void **state) {
  (void)state;
  for (size_t i = 0; i < LARGE; i++) {
    require_most_of_large(lcomm_tape_count, large[i].policy, 100);
  }
}

static void large_sums_in_graphs_through_the_host_take_a_hundred_calls(void **state) {
  (void)state;
  for (size_t i = 0; i < LARGE; i++) {
    require_most_of_large(lcomm_tape_count_captured, large[i].policy, 100);
  }
}

/* Contributions inside nodes stay. Results go on as they come from other nodes, by the host. */
static void require_hundred_of_near(counting function) {
  lcomm_topo topo = suppose_nvlink(4, EACH);
  for (size_t i = 0; i < LARGE; i++) {
    require_most_of_near(function, large[i].policy, &topo, 100, large[i].chunks * (EACH - 1));
  }
  lcomm_topo_free(&topo);
}

static void large_sums_take_a_hundred_calls_where_payloads_stay(void **state) {
  (void)state;
  require_hundred_of_near(lcomm_tape_count);
}

static void large_sums_in_graphs_take_a_hundred_calls(void **state) {
  (void)state;
  require_hundred_of_near(lcomm_tape_count_captured);
}

/* There everything stays. */
static void large_sums_inside_a_node_take_seventy(void **state) {
  lcomm_topo topo = suppose_nvlink(1, EACH);
  (void)state;
  require_most_of_near(lcomm_tape_count, "", &topo, 70, 3 * 2 * (EACH - 1));
  require_most_of_near(lcomm_tape_count, "node=int8 min=1", &topo, 70, 3 * 2 * (EACH - 1));
  require_most_of_near(lcomm_tape_count_captured, "", &topo, 70, 3 * 2 * (EACH - 1));
  lcomm_topo_free(&topo);
}

static void nothing_stays_where_that_is_off(void **state) {
  lcomm_topo topo = suppose_nvlink(1, EACH);
  (void)state;
  setenv("LCOMM_CUDA_IPC", "off", 1);
  require_most_of_near(lcomm_tape_count, "", &topo, 70, 0);
  require_most_of_near(lcomm_tape_count_captured, "", &topo, 70, 0);
  unsetenv("LCOMM_CUDA_IPC");
  lcomm_topo_free(&topo);
}

/* A ring sends on what it has received, from the host. */
static void what_is_sent_on_does_not_stay(void **state) {
  lcomm_topo topo = suppose_nvlink(1, EACH);
  lcomm_plan_request request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE, .count = 100000};
  (void)state;
  lcomm_tape_calls ring = count(&request, "algo=ring", &topo, 3);
  lcomm_tape_calls direct = count(&request, "algo=direct", &topo, 3);
  assert_true(ring.stay < direct.stay);
  lcomm_topo_free(&topo);
}

static void require_few(const char *what, uint64_t elements, const char *policy,
                        const lcomm_topo *topo, uint64_t most) {
  lcomm_plan_request request = {.count = elements, .dtype = LCOMM_FLOAT32};
  lcomm_tape_calls calls = count(&request, policy, topo, 3);
  require_most(&calls, what, 3, most);
}

static void short_sums_take_few(void **state) {
  lcomm_topo topo = suppose(32, 4, true), flat = suppose(8, 8, true);
  (void)state;
  require_few("1 MB on 4 nodes of 8", 250000, "net=int8 min=1", &topo, 40);
  require_few("1 MB on 8 nodes", 250000, "net=int8 min=1", &flat, 28);
  require_few("8 bytes on 8 nodes", 2, "net=none", &flat, 24);
  lcomm_topo_free(&topo);
  lcomm_topo_free(&flat);
}

/* A chunk has its calls, however many ranks there are. */
static void calls_grow_with_chunks_and_not_with_ranks(void **state) {
  lcomm_topo few = suppose(8, 4, true), many = suppose(32, 4, true);
  lcomm_plan_request request = {.count = 1 << 18, .dtype = LCOMM_FLOAT32};
  (void)state;
  lcomm_tape_calls here = count(&request, "net=int8 min=1", &few, 1);
  lcomm_tape_calls there = count(&request, "net=int8 min=1", &many, 1);
  assert_true(lcomm_tape_calls_all(&there) <= lcomm_tape_calls_all(&here) + 8);
  lcomm_topo_free(&few);
  lcomm_topo_free(&many);
}

static lcomm_plan *plan_of(const lcomm_plan_request *request, const char *policy_text,
                           const lcomm_topo *topo, int rank) {
  lcomm_policy policy = policy_of(policy_text);
  lcomm_plan *plan = NULL;
  lcomm_why why;
  if (lcomm_plan_create(request, &policy, topo, rank, &plan, &why) != LCOMM_OK) {
    fail_msg("%s: %s", policy_text, why.text);
  }
  return plan;
}

static void chunks_of_devices_are_longer(void **state) {
  lcomm_topo with = suppose(8, 4, true), without = suppose(8, 4, false), one = suppose(8, 1, true);
  lcomm_plan_request request = {.count = 25000000, .dtype = LCOMM_FLOAT32};
  (void)state;
  lcomm_plan *there = plan_of(&request, "net=int8", &with, 0);
  lcomm_plan *here = plan_of(&request, "net=int8", &without, 0);
  assert_int_equal(here->shape.chunks, 48);
  assert_int_equal(there->shape.chunks, 12);
  lcomm_plan_destroy(there);
  there = plan_of(&request, "algo=direct", &one, 0); /* a piece of each rank is as long there */
  assert_int_equal(there->shape.chunks, 3);
  lcomm_plan_destroy(there);
  lcomm_plan_destroy(here);
  lcomm_topo_free(&with);
  lcomm_topo_free(&without);
  lcomm_topo_free(&one);
}

static void all_collectives_and_types_are_counted(void **state) {
  static const lcomm_collective kinds[] = {
      LCOMM_COLLECTIVE_ALLREDUCE, LCOMM_COLLECTIVE_REDUCE_SCATTER, LCOMM_COLLECTIVE_ALLGATHER,
      LCOMM_COLLECTIVE_BROADCAST, LCOMM_COLLECTIVE_ALLTOALL};
  static const lcomm_dtype types[] = {LCOMM_FLOAT32, LCOMM_FLOAT64, LCOMM_INT8, LCOMM_FLOAT16};
  static const char *const policies[] = {"net=int8 min=1", "net=none+zstd min=1", "algo=ring"};
  lcomm_topo topo = suppose(8, 4, true);
  (void)state;
  for (int i = 0; i < 5 * 4 * 3; i++) {
    lcomm_plan_request request = {
        .collective = kinds[i % 5], .count = 100000, .dtype = types[i / 5 % 4]};
    lcomm_tape_calls calls = count(&request, policies[i / 20], &topo, i % 8);
    assert_true(lcomm_tape_calls_all(&calls) > 4);
  }
  lcomm_topo_free(&topo);
}

/* A payload that is made or read is several launches. */
static void launches_of_topk_are_counted(void **state) {
  static const char *const policies[] = {"net=topk:0.01+ef min=1",
                                         "net=topk:0.01 min=1 algo=gather",
                                         "net=topk:0.1,values=int8+zstd min=1 algo=direct"};
  lcomm_topo topo = suppose(4, 2, true);
  (void)state;
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    lcomm_plan_request request = {.count = 100000, .dtype = LCOMM_FLOAT32, .error_feedback = true};
    lcomm_tape_calls calls = count(&request, policies[i], &topo, 0);
    assert_true(calls.launches >= lcomm_cuda_topk_launches(1) + lcomm_cuda_topk_reads(1));
    require_most(&calls, policies[i], 0, 100);
  }
  lcomm_topo_free(&topo);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(large_sums_take_a_hundred_calls),
    cmocka_unit_test(large_sums_in_graphs_through_the_host_take_a_hundred_calls),
    cmocka_unit_test(large_sums_take_a_hundred_calls_where_payloads_stay),
    cmocka_unit_test(large_sums_in_graphs_take_a_hundred_calls),
    cmocka_unit_test(large_sums_inside_a_node_take_seventy),
    cmocka_unit_test(nothing_stays_where_that_is_off),
    cmocka_unit_test(what_is_sent_on_does_not_stay),
    cmocka_unit_test(short_sums_take_few),
    cmocka_unit_test(calls_grow_with_chunks_and_not_with_ranks),
    cmocka_unit_test(chunks_of_devices_are_longer),
    cmocka_unit_test(all_collectives_and_types_are_counted),
    cmocka_unit_test(launches_of_topk_are_counted),
};
RUN_TESTS(tests)
