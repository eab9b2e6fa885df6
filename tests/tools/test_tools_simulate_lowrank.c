/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Matrices that travel by low rank in a simulation: two sums, one after the other, and products. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codecs/wire.h"
#include "tests/support/unit_tests.h"
#include "tests/tools/posed_world.h"
#include "tools/simulation/simulate_engine.h"

enum { ROWS = 4096, COLUMNS = 1024, NODES = 3 };

#define MATRIX "{\"name\": \"w\", \"count\": 4194304, \"rows\": 4096, \"columns\": 1024}"

static const simulate_lowrank_speed free_products = {0, 0, 0};

/* Codecs, copies and sums are free. */
static void begin(posed *it, const char *policy, const char *workload,
                  const simulate_lowrank_speed *products) {
  lcomm_why error;
  *it = (posed){.why = ""};
  it->speeds.lowrank = *products;
  assert_int_equal(lcomm_policy_parse(policy, &it->policy, &error), LCOMM_OK);
  assert_int_equal(simulate_world_pose(NODES, 2, &it->topo, it->why), LCOMM_OK);
  if (!simulate_workload_parse(workload, strlen(workload), &it->workload, it->why)) {
    fail_msg("%s", it->why);
  }
}

static simulate_settings settings_of(void) {
  simulate_settings settings = {.cards = 1, .steps = 1};
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    settings.links[i] = (simulate_link){.latency = 1000, .bytes_per_s = 1e12};
  }
  settings.links[LCOMM_LINK_NET] = (simulate_link){.latency = 10000000, .bytes_per_s = 1e9};
  return settings;
}

static simulate_result run(posed *it, simulate_symmetry symmetry, int steps) {
  simulate_settings settings = settings_of();
  simulate_result result = {0};
  settings.steps = steps;
  if (!make_world(it, symmetry) ||
      !simulate_engine_run(&it->world, &it->workload, &settings, NULL, &result, it->why)) {
    fail_msg("%s", it->why);
  }
  return result;
}

static simulate_result simulate(const char *policy, const char *workload,
                                const simulate_lowrank_speed *products) {
  posed it;
  begin(&it, policy, workload, products);
  simulate_result result = run(&it, SIMULATE_SYMMETRY_AUTO, 1);
  free_posed(&it);
  return result;
}

static bool are_near(double a, double b) {
  return fabs(a - b) <= 1e-3 * fmax(fabs(a), fabs(b));
}

/* Of a vector of so many elements that is summed exactly. */
static simulate_result simulate_vector(uint64_t count) {
  char text[64];
  snprintf(text, sizeof text, "{\"tensors\": [{\"count\": %llu}]}", (unsigned long long)count);
  return simulate("net=none min=1", text, &free_products);
}

static void a_matrix_takes_the_bytes_and_the_time_of_both_factors(void **state) {
  (void)state;
  simulate_result left = simulate_vector(4 * ROWS), right = simulate_vector(4 * COLUMNS);
  simulate_result both = simulate("net=lowrank:4", "{\"tensors\": [" MATRIX "]}", &free_products);
  assert_true(are_near(both.node_bytes, left.node_bytes + right.node_bytes));
  assert_true(are_near(both.card_messages, left.card_messages + right.card_messages));
  assert_true(are_near(both.step_s, left.step_s + right.step_s));
}

/* 16 MiB at so many GB/s before, between and behind the sums. */
static void products_take_their_time(void **state) {
  (void)state;
  static const simulate_lowrank_speed products = {4, 2, 1};
  const char *workload = "{\"tensors\": [" MATRIX "]}";
  double bytes = 4.0 * ROWS * COLUMNS;
  double without_s = simulate("net=lowrank:4", workload, &free_products).step_s;
  double with_s = simulate("net=lowrank:4", workload, &products).step_s;
  assert_true(are_near(with_s, without_s + bytes * (1.0 / 4 + 1.0 / 2 + 1) / 1e9));
  double larger_s = simulate("net=lowrank:8", workload, &products).step_s -
                    simulate("net=lowrank:8", workload, &free_products).step_s;
  assert_true(are_near(larger_s, 2 * (with_s - without_s)));
}

/* Others before, between and behind; over several steps, on one node that stands for all and on
 * all. */
static void others_go_on_around_them(void **state) {
  (void)state;
  static const simulate_lowrank_speed products = {6, 8, 4};
  static const char workload[] =
      "{\"tensors\": [{\"count\": 5000, \"backward_us\": 10}, " MATRIX
      ", {\"count\": 7000, \"backward_us\": 20}, {\"count\": 1048576, \"rows\": 1024, "
      "\"columns\": 1024, \"backward_us\": 3000}, {\"count\": 9000000, \"backward_us\": 30}]}";
  posed all, one;
  begin(&all, "net=lowrank:4 bucket=4M", workload, &products);
  begin(&one, "net=lowrank:4 bucket=4M", workload, &products);
  simulate_result by_all = run(&all, SIMULATE_SYMMETRY_OFF, 3);
  simulate_result by_one = run(&one, SIMULATE_SYMMETRY_ON, 3);
  assert_int_equal(by_all.simulated_ranks, 2 * NODES);
  assert_int_equal(by_one.simulated_ranks, 2);
  assert_true(fabs(by_all.step_s - by_one.step_s) < 0.02 * by_all.step_s);
  assert_true(are_near(by_all.node_bytes, by_one.node_bytes));
  free_posed(&all);
  free_posed(&one);
}

/* Sums of each bucket of the world: 1, or 2 of low rank. */
static void expect_buckets(const char *policy, double gb_s, const char *workload, uint32_t whole,
                           uint32_t factored) {
  posed it;
  uint32_t found[3] = {0};
  static const simulate_lowrank_speed products = {6, 8, 4};
  begin(&it, policy, workload, &products);
  it.topo.cost[LCOMM_LINK_NET] = (lcomm_link_cost){.latency_us = 20, .bandwidth_gb_s = gb_s};
  if (!make_world(&it, SIMULATE_SYMMETRY_AUTO)) {
    fail_msg("%s", it.why);
  }
  for (uint32_t i = 0; i < it.world.bucket_count; i++) {
    const simulate_bucket *bucket = &it.world.buckets[i];
    found[bucket->sum]++;
    assert_true(bucket->sum != SIMULATE_SUM_SECOND ||
                (i > 0 && bucket[-1].sum == SIMULATE_SUM_FIRST));
  }
  assert_int_equal(found[SIMULATE_SUM_WHOLE], whole);
  assert_int_equal(found[SIMULATE_SUM_FIRST], factored);
  assert_int_equal(found[SIMULATE_SUM_SECOND], factored);
  free_posed(&it);
}

static void matrices_that_gain_are_two_sums_and_nothing_else(void **state) {
  (void)state;
  static const char workload[] = "{\"tensors\": [" MATRIX ", {\"count\": 64, \"rows\": 8, "
                                 "\"columns\": 8}, {\"count\": 100000}]}";
  expect_buckets("net=lowrank:4", 1, workload, 1, 1);
  expect_buckets("net=int8", 1, workload, 2, 0);
  expect_buckets("net=auto:lowrank", 0.01, workload, 2, 1);
  expect_buckets("net=auto:lowrank", 1000, workload, 3, 0);
  expect_buckets("net=auto:sign", 0.01, workload, 2, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_matrix_takes_the_bytes_and_the_time_of_both_factors),
    cmocka_unit_test(products_take_their_time),
    cmocka_unit_test(others_go_on_around_them),
    cmocka_unit_test(matrices_that_gain_are_two_sums_and_nothing_else),
};
RUN_TESTS(tests)
