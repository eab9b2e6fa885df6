/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What operations cost their caller on a device, for worlds that are only supposed. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "kernels/cuda.h"
#include "libcomm/engine/tape_count.h"

enum { RANKS_MAX = 64 };

static lcomm_topo suppose(int ranks, int nodes, bool devices) {
  static lcomm_identity identities[RANKS_MAX];
  lcomm_topo topo;
  lcomm_why why;
  for (int i = 0; i < ranks; i++) {
    snprintf(identities[i].host, sizeof(identities[i].host), "host");
    identities[i].pid = i;
  }
  if (lcomm_topo_create(identities, ranks, nodes, &topo, &why) != LCOMM_OK) {
    fail_msg("%s", why.text);
  }
  topo.all_have_devices = devices;
  return topo;
}

static lcomm_plan *plan_of(const lcomm_plan_request *request, const char *policy_text,
                           const lcomm_topo *topo, int rank) {
  lcomm_policy policy;
  lcomm_plan *plan = NULL;
  lcomm_why why;
  if (lcomm_policy_parse(policy_text, &policy, &why) != LCOMM_OK ||
      lcomm_plan_create(request, &policy, topo, rank, &plan, &why) != LCOMM_OK) {
    fail_msg("%s: %s", policy_text, why.text);
  }
  return plan;
}

static lcomm_tape_calls count(lcomm_plan *plan) {
  lcomm_tape_calls calls;
  assert_int_equal(lcomm_tape_count(plan, &calls), LCOMM_OK);
  return calls;
}

static void require_most(lcomm_plan *plan, const char *what, uint64_t most) {
  lcomm_tape_calls calls = count(plan);
  if (lcomm_tape_calls_all(&calls) > most) {
    fail_msg("%s, rank %d: %llu launches, %llu copies, %llu of numbers, %llu of events", what,
             plan->schedule.rank, (unsigned long long)calls.launches,
             (unsigned long long)calls.copies, (unsigned long long)calls.numbers,
             (unsigned long long)calls.events);
  }
}

/* 100 MB on 4 nodes of 8 ranks. */
static void require_most_of_large(const char *policy, uint64_t most) {
  lcomm_topo topo = suppose(32, 4, true);
  for (int rank = 0; rank < topo.size; rank += 9) {
    lcomm_plan_request request = {.count = 25000000, .dtype = LCOMM_FLOAT32};
    lcomm_plan *plan = plan_of(&request, policy, &topo, rank);
    require_most(plan, policy, most);
    lcomm_plan_destroy(plan);
  }
  lcomm_topo_free(&topo);
}

static void large_sums_take_a_hundred_calls(void **state) {
  static const char *const policies[] = {
      "net=int8 min=1",       "net=bf16",           "net=fp8e4m3",   "net=int4",
      "net=none algo=direct", "net=int8 node=bf16", "net=bf16+zstd", "net=int8+zstd min=1",
  };
  (void)state;
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    require_most_of_large(policies[i], 100);
  }
}

/* Payloads of top-k are several launches each, and cross one by one. */
static void large_sums_of_topk_take_three_hundred(void **state) {
  (void)state;
  require_most_of_large("net=topk:0.01 min=1", 320);
  require_most_of_large("net=topk:0.01+zstd min=1", 320);
}

static void short_sums_take_few(void **state) {
  lcomm_topo topo = suppose(32, 4, true), flat = suppose(8, 8, true);
  lcomm_plan_request request = {.count = 250000, .dtype = LCOMM_FLOAT32};
  (void)state;
  lcomm_plan *plan = plan_of(&request, "net=int8 min=1", &topo, 3);
  require_most(plan, "1 MB on 4 nodes of 8", 40);
  lcomm_plan_destroy(plan);
  plan = plan_of(&request, "net=int8 min=1", &flat, 3);
  require_most(plan, "1 MB on 8 nodes", 28);
  lcomm_plan_destroy(plan);
  request.count = 2;
  plan = plan_of(&request, "net=none", &flat, 3);
  require_most(plan, "8 bytes on 8 nodes", 24);
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
  lcomm_topo_free(&flat);
}

/* A chunk has its calls, however many ranks there are. */
static void calls_grow_with_chunks_and_not_with_ranks(void **state) {
  lcomm_topo few = suppose(8, 4, true), many = suppose(32, 4, true);
  lcomm_plan_request request = {.count = 1 << 18, .dtype = LCOMM_FLOAT32};
  (void)state;
  lcomm_plan *one = plan_of(&request, "net=int8 min=1", &few, 1);
  lcomm_plan *other = plan_of(&request, "net=int8 min=1", &many, 1);
  lcomm_tape_calls here = count(one), there = count(other);
  assert_true(lcomm_tape_calls_all(&there) <= lcomm_tape_calls_all(&here) + 8);
  lcomm_plan_destroy(one);
  lcomm_plan_destroy(other);
  lcomm_topo_free(&few);
  lcomm_topo_free(&many);
}

static void chunks_of_devices_are_longer(void **state) {
  lcomm_topo with = suppose(8, 4, true), without = suppose(8, 4, false);
  lcomm_plan_request request = {.count = 25000000, .dtype = LCOMM_FLOAT32};
  (void)state;
  lcomm_plan *there = plan_of(&request, "net=int8", &with, 0);
  lcomm_plan *here = plan_of(&request, "net=int8", &without, 0);
  assert_int_equal(here->shape.chunks, 48);
  assert_int_equal(there->shape.chunks, 12);
  lcomm_plan_destroy(there);
  lcomm_plan_destroy(here);
  lcomm_topo_free(&with);
  lcomm_topo_free(&without);
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
    lcomm_plan *plan = plan_of(&request, policies[i / 20], &topo, i % 8);
    lcomm_tape_calls calls = count(plan);
    assert_true(lcomm_tape_calls_all(&calls) > 4);
    lcomm_plan_destroy(plan);
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
    lcomm_plan *plan = plan_of(&request, policies[i], &topo, 0);
    lcomm_tape_calls calls = count(plan);
    assert_true(calls.launches >= lcomm_cuda_topk_launches(1) + LCOMM_CUDA_TOPK_READS);
    require_most(plan, policies[i], 100);
    lcomm_plan_destroy(plan);
  }
  lcomm_topo_free(&topo);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_sums_take_a_hundred_calls),
      cmocka_unit_test(large_sums_of_topk_take_three_hundred),
      cmocka_unit_test(short_sums_take_few),
      cmocka_unit_test(calls_grow_with_chunks_and_not_with_ranks),
      cmocka_unit_test(chunks_of_devices_are_longer),
      cmocka_unit_test(all_collectives_and_types_are_counted),
      cmocka_unit_test(launches_of_topk_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
