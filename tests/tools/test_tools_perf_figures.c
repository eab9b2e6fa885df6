/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the perf programs calculate: sizes, bandwidths, percentiles, and which
 * policies leave numbers as they are. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tests/support/unit_tests.h"
#include "tools/common/tool_timing.h"
#include "tools/perf/perf_backend.h"
#include "tools/perf/perf_report.h"
#include "tools/perf/perf_summary.h"

static const lcomm_perf_collective *of(lcomm_perf_kind kind) {
  return lcomm_perf_collective_of(kind);
}

static void is_near(double x, double y) {
  if (fabs(x - y) > 1e-12 * (1.0 + fabs(y))) {
    fail_msg("%g is not %g", x, y);
  }
}

static void bus_factors_are_those_of_nccl_tests(void **state) {
  (void)state;
  is_near(lcomm_perf_bus_factor(of(LCOMM_PERF_ALLREDUCE), 4), 1.5);
  is_near(lcomm_perf_bus_factor(of(LCOMM_PERF_ALLREDUCE), 2), 1.0);
  is_near(lcomm_perf_bus_factor(of(LCOMM_PERF_REDUCE_SCATTER), 4), 0.75);
  is_near(lcomm_perf_bus_factor(of(LCOMM_PERF_ALLGATHER), 5), 0.8);
  is_near(lcomm_perf_bus_factor(of(LCOMM_PERF_ALLTOALL), 8), 0.875);
  is_near(lcomm_perf_bus_factor(of(LCOMM_PERF_BROADCAST), 8), 1.0);
  is_near(lcomm_perf_bus_factor(of(LCOMM_PERF_ALLREDUCE), 1), 0.0);
  is_near(lcomm_perf_bus_factor(of(LCOMM_PERF_BROADCAST), 1), 1.0);
}

static void bandwidths_are_those_of_the_median(void **state) {
  lcomm_perf_row row = {.call = {.collective = of(LCOMM_PERF_ALLREDUCE)},
                        .size_bytes = 4e6,
                        .min_s = 1e-3,
                        .median_s = 2e-3,
                        .max_s = 9e-3};
  (void)state;
  is_near(lcomm_perf_algbw(&row), 2.0);
  is_near(lcomm_perf_busbw(&row, 4), 3.0);
  row.median_s = 0.0;
  is_near(lcomm_perf_busbw(&row, 4), 0.0);
}

static void a_size_is_that_of_the_largest_buffer(void **state) {
  (void)state;
  assert_int_equal(lcomm_perf_count_of(of(LCOMM_PERF_ALLREDUCE), 4096, 4, 8), 1024);
  assert_int_equal(lcomm_perf_count_of(of(LCOMM_PERF_BROADCAST), 4096, 8, 8), 512);
  assert_int_equal(lcomm_perf_count_of(of(LCOMM_PERF_REDUCE_SCATTER), 4096, 4, 8), 128);
  assert_int_equal(lcomm_perf_count_of(of(LCOMM_PERF_ALLGATHER), 4096, 2, 8), 256);
  assert_int_equal(lcomm_perf_count_of(of(LCOMM_PERF_ALLTOALL), 4096, 4, 3), 341);
  for (int kind = LCOMM_PERF_ALLREDUCE; kind <= LCOMM_PERF_ALLTOALL; kind++) {
    assert_int_equal(lcomm_perf_count_of(of((lcomm_perf_kind)kind), 0, 8, 7), 1);
  }
}

static void buffers_hold_what_the_calls_need(void **state) {
  (void)state;
  assert_int_equal(lcomm_perf_send_count(of(LCOMM_PERF_ALLREDUCE), 10, 4), 10);
  assert_int_equal(lcomm_perf_receive_count(of(LCOMM_PERF_ALLREDUCE), 10, 4), 10);
  assert_int_equal(lcomm_perf_send_count(of(LCOMM_PERF_REDUCE_SCATTER), 10, 4), 40);
  assert_int_equal(lcomm_perf_receive_count(of(LCOMM_PERF_REDUCE_SCATTER), 10, 4), 10);
  assert_int_equal(lcomm_perf_send_count(of(LCOMM_PERF_ALLGATHER), 10, 4), 10);
  assert_int_equal(lcomm_perf_receive_count(of(LCOMM_PERF_ALLGATHER), 10, 4), 40);
  assert_int_equal(lcomm_perf_send_count(of(LCOMM_PERF_ALLTOALL), 10, 4), 40);
  assert_int_equal(lcomm_perf_receive_count(of(LCOMM_PERF_ALLTOALL), 10, 4), 40);
  /* more than an int counts */
  uint64_t many = UINT64_C(3) << 30;
  assert_true(lcomm_perf_whole_count(of(LCOMM_PERF_ALLTOALL), many, 8) == many * 8);
  assert_true(lcomm_perf_count_of(of(LCOMM_PERF_ALLREDUCE), many * 4, 4, 8) == many);
}

static void percentiles_lie_between_neighbours(void **state) {
  const double one[] = {7.0};
  const double sorted[] = {1.0, 2.0, 3.0, 4.0, 11.0};
  (void)state;
  is_near(tool_percentile(one, 1, 0.99), 7.0);
  is_near(tool_percentile(sorted, 5, 0.0), 1.0);
  is_near(tool_percentile(sorted, 5, 0.1), 1.4);
  is_near(tool_percentile(sorted, 5, 0.5), 3.0);
  is_near(tool_percentile(sorted, 5, 0.9), 8.2);
  is_near(tool_percentile(sorted, 5, 1.0), 11.0);
  is_near(tool_percentile(sorted, 4, 0.5), 2.5);
}

static void a_median_sorts_first(void **state) {
  double odd[] = {9.0, 1.0, 5.0};
  double even[] = {8.0, 1.0, 2.0, 4.0};
  (void)state;
  is_near(tool_median(odd, 3), 5.0);
  is_near(tool_median(even, 4), 3.0);
  is_near(even[0], 1.0);
  is_near(even[3], 8.0);
}

static void what_hides_is_what_the_computation_did_not_wait_for(void **state) {
  (void)state;
  is_near(lcomm_perf_hidden(10.0, 10.0, 10.0), 1.0); /* all of it */
  is_near(lcomm_perf_hidden(10.0, 10.0, 20.0), 0.0); /* one after the other */
  is_near(lcomm_perf_hidden(10.0, 5.0, 10.0), 0.5);
  is_near(lcomm_perf_hidden(10.0, 10.0, 25.0), -0.5); /* they are in each other's way */
  is_near(lcomm_perf_hidden(0.0, 10.0, 10.0), 0.0);
}

static void the_ratio_is_that_between_nodes_if_there_are_several(void **state) {
  lcomm_perf_row row = {.is_libcomm = 1};
  (void)state;
  is_near(lcomm_perf_ratio(&row), 1.0);
  row.sent_bytes[LCOMM_LINK_SHM] = 50.0;
  row.exact_bytes[LCOMM_LINK_SHM] = 100.0;
  is_near(lcomm_perf_ratio(&row), 2.0);
  row.sent_bytes[LCOMM_LINK_NET] = 10.0;
  row.exact_bytes[LCOMM_LINK_NET] = 40.0;
  is_near(lcomm_perf_ratio(&row), 4.0);
}

static void messages_and_seconds_are_those_of_one_operation(void **state) {
  lcomm_perf_samples samples;
  lcomm_stats now = {.encode_s = 8.0, .wait_s = 2.0};
  (void)state;
  assert_true(lcomm_perf_samples_make(&samples, 2));
  samples.batch = 4;
  now.sent_messages[LCOMM_LINK_SHM] = 8;
  now.sent_messages[LCOMM_LINK_NET] = 4;
  lcomm_perf_samples_count(&samples, 0, &now);
  now.encode_s = 10.0;
  lcomm_perf_samples_count(&samples, 1, &now);
  is_near(samples.phases[LCOMM_PERF_ENCODE][0], 2.0);
  is_near(samples.phases[LCOMM_PERF_ENCODE][1], 0.5);
  is_near(samples.phases[LCOMM_PERF_WAIT][0], 0.5);
  is_near(samples.phases[LCOMM_PERF_MESSAGES][0], 3.0);
  is_near(samples.phases[LCOMM_PERF_MESSAGES][1], 0.0);
  lcomm_perf_samples_free(&samples);
}

static void policies_that_change_nothing_are_known(void **state) {
  static const struct {
    const char *policy;
    int is_exact;       /* through tensors */
    int is_plain_exact; /* otherwise */
    int has_feedback;
  } cases[] = {
      {"", 1, 1, 0},
      {"net=none min=0", 1, 1, 0},
      {"net=none+zstd", 1, 1, 0},
      {"min=64K net=int8", 0, 0, 0},
      {"net=int8+ef", 0, 1, 1},
      {"net=topk:0.01+ef+zstd scope=bucket", 0, 1, 1},
      {"net=int4", 0, 1, 1},
      {"net=sign", 0, 1, 1},
      {"net=int2-ef", 0, 0, 0},
      {"net=int4:block=128-ef", 0, 0, 0},
      {"net=auto:topk", 0, 0, 1},
      {"net=auto:topk min=64K", 0, 0, 1},
      {"net=auto:sign min=1", 0, 0, 1},
      {"net=auto:int2", 0, 0, 1},
      {"net=auto:int4", 0, 0, 1},
      {"net=auto:int8", 0, 0, 0},
      {"net=bf16 exempt=*+ef", 0, 0, 0},
      {"node=bf16", 0, 0, 0},
      {"net=int8+ef node=bf16", 0, 0, 1},
      {"exempt=net=int8", 1, 1, 0},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (lcomm_perf_policy_is_exact(cases[i].policy, 0) != cases[i].is_exact ||
        lcomm_perf_policy_is_exact(cases[i].policy, 1) != cases[i].is_plain_exact ||
        lcomm_perf_policy_has_feedback(cases[i].policy) != cases[i].has_feedback) {
      fail_msg("'%s' is taken for another", cases[i].policy);
    }
  }
}

static void a_plan_is_told_by_codec_and_algorithm(void **state) {
  (void)state;
  char words[LCOMM_PERF_PLAN_MAX];
  lcomm_perf_plan_words("all-reduce of 16384 float32\n"
                        "  algorithm   hier(gather): 4 nodes, 2 shards, 1 chunk\n"
                        "  inside node none\n  between     int8\n  result      int8\n",
                        words);
  assert_string_equal(words, "int8, hier(gather): 4 nodes, 2 shards, 1 chunk");
  lcomm_perf_plan_words("", words);
  assert_string_equal(words, ", ");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bus_factors_are_those_of_nccl_tests),
    cmocka_unit_test(bandwidths_are_those_of_the_median),
    cmocka_unit_test(a_size_is_that_of_the_largest_buffer),
    cmocka_unit_test(buffers_hold_what_the_calls_need),
    cmocka_unit_test(percentiles_lie_between_neighbours),
    cmocka_unit_test(a_median_sorts_first),
    cmocka_unit_test(what_hides_is_what_the_computation_did_not_wait_for),
    cmocka_unit_test(the_ratio_is_that_between_nodes_if_there_are_several),
    cmocka_unit_test(messages_and_seconds_are_those_of_one_operation),
    cmocka_unit_test(policies_that_change_nothing_are_known),
    cmocka_unit_test(a_plan_is_told_by_codec_and_algorithm),
};
RUN_TESTS(tests)
