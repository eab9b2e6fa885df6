/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Low rank as a choice of net=auto: when it is taken, whatever links and processors cost. */

#include "libcomm/plan/auto_lowrank.h"
#include "libcomm/plan/eligibility.h"
#include "tests/plan/plans.h"
#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 6, NODES = 3, ROWS = 4096, COLUMNS = 1024 };

static lcomm_topo topo_of(double bandwidth_gb_s) {
  return topo_over(RANKS, NODES,
                   (lcomm_link_cost){.latency_us = 20, .bandwidth_gb_s = bandwidth_gb_s});
}

static lcomm_plan_request vector_of(uint64_t count) {
  lcomm_plan_request request =
      request_of(LCOMM_COLLECTIVE_ALLREDUCE, count, LCOMM_FLOAT32, LCOMM_AVG);
  request.error_feedback = true;
  return request;
}

static lcomm_lowrank_rating rate_on(const lcomm_topo *topo, const char *text) {
  lcomm_policy policy = parse(text);
  lcomm_plan_request request = vector_of(ROWS * COLUMNS);
  lcomm_lowrank_sizes sizes = {0};
  lcomm_lowrank_rating rating;
  lcomm_why why;
  lcomm_lowrank_sizes_add(&sizes, ROWS, COLUMNS);
  request.net = policy.net;
  request.net.rank = LCOMM_AUTO_RANK;
  if (lcomm_lowrank_rate(&request, &policy, topo, &sizes, &rating, &why) != LCOMM_OK) {
    fail_msg("%s: %s", text, why.text);
  }
  return rating;
}

static bool is_taken(double bandwidth_gb_s, const char *text) {
  lcomm_topo topo = topo_of(bandwidth_gb_s);
  bool taken = rate_on(&topo, text).taken;
  lcomm_topo_free(&topo);
  return taken;
}

static void matrices_go_by_low_rank_on_slow_links(void **state) {
  (void)state;
  assert_true(is_taken(0.001, "net=auto:lowrank"));
  assert_true(is_taken(0.01, "net=auto:lowrank"));
}

static void on_links_as_fast_as_memory_they_are_summed_as_they_are(void **state) {
  (void)state;
  assert_false(is_taken(1000, "net=auto:lowrank"));
  assert_false(is_taken(1000, "net=auto:topk"));
}

static void slow_products_are_not_taken(void **state) {
  (void)state;
  lcomm_topo topo = topo_of(0.01);
  topo.codec_cost[LCOMM_AUTO_LOWRANK] =
      (lcomm_codec_cost){.encode_gb_s = 0.001, .decode_gb_s = 0.001};
  assert_false(rate_on(&topo, "net=auto:lowrank").taken);
  lcomm_topo_free(&topo);
}

/* Each of them has to gain a twentieth over what is milder. */
static void it_gains_a_twentieth_and_what_is_coarser_one_over_it(void **state) {
  static const char *const classes[] = {"net=auto:lowrank", "net=auto:topk"};
  bool seen[2][2] = {{false}};
  (void)state;
  for (double bandwidth = 1e-4; bandwidth < 1e3; bandwidth *= 1.5) {
    for (int i = 0; i < 2; i++) {
      lcomm_topo topo = topo_of(bandwidth);
      lcomm_lowrank_rating it = rate_on(&topo, classes[i]);
      bool coarser = it.candidate == LCOMM_AUTO_TOPK;
      assert_true(i == 1 || !coarser);
      assert_int_equal(it.taken,
                       coarser ? it.whole_us >= 0.95 * it.us : it.us < 0.95 * it.whole_us);
      seen[i][it.taken] = true;
      lcomm_topo_free(&topo);
    }
  }
  assert_true(seen[0][0] && seen[0][1] && seen[1][0]);
}

static void where_milder_ones_hide_it_is_not_taken(void **state) {
  (void)state;
  for (int hidden = 0; hidden <= LCOMM_AUTO_CODECS; hidden++) {
    lcomm_topo topo = topo_of(0.001);
    topo.hidden_from = hidden;
    assert_int_equal(rate_on(&topo, "net=auto:lowrank").taken, hidden >= LCOMM_AUTO_LOWRANK);
    lcomm_topo_free(&topo);
  }
}

/* As `net=lowrank:4` would be summed, and the products beside. */
static void its_time_is_that_of_both_sums_and_of_the_products(void **state) {
  (void)state;
  lcomm_topo topo = topo_of(0.1);
  topo.codec_cost[LCOMM_AUTO_LOWRANK] =
      (lcomm_codec_cost){.encode_gb_s = 8, .decode_gb_s = 4, .encode_us = 3, .decode_us = 5};
  lcomm_lowrank_rating it = rate_on(&topo, "net=auto:lowrank");
  double bytes = (double)ROWS * COLUMNS * sizeof(float), us = bytes / 8e3 + 3 + bytes / 4e3 + 5;
  assert_true(it.product_us > 0.999 * us && it.product_us < 1.001 * us);
  const uint64_t counts[] = {LCOMM_AUTO_RANK * ROWS, LCOMM_AUTO_RANK * COLUMNS};
  for (int i = 0; i < 2; i++) {
    lcomm_plan *plan = allreduce_plan_over(&topo, "net=none min=1", 0, counts[i], true);
    us += lcomm_auto_predict_us(plan, &topo, 0);
    lcomm_plan_destroy(plan);
  }
  assert_true(it.us > 0.999 * us && it.us < 1.001 * us);
  lcomm_topo_free(&topo);
}

static void both_ways_and_their_times_are_told(void **state) {
  (void)state;
  char text[LCOMM_LOWRANK_RATING_TEXT_MAX];
  lcomm_lowrank_rating it = {
      .taken = true, .us = 1200, .product_us = 310, .whole_us = 4500, .candidate = LCOMM_AUTO_INT2};
  assert_string_equal(lcomm_lowrank_rating_format(&it, text),
                      "lowrank:4, for two sums by lowrank:4 are predicted to take 1.2 ms, 310 us "
                      "of it for products, one by int2+ef 4.5 ms");
  it.taken = false;
  assert_int_equal(strncmp(lcomm_lowrank_rating_format(&it, text), "int2+ef, for two sums by ", 25),
                   0);
}

/* ------------------------------------------------------------- which data */

static unsigned rank_of(const char *text, uint64_t rows, uint64_t columns) {
  lcomm_policy policy = parse(text);
  lcomm_match_call call = {.kind = LCOMM_CALL_ALLREDUCE,
                           .count = rows > 0 ? rows * columns : 1 << 20,
                           .dtype = LCOMM_FLOAT32,
                           .op = LCOMM_AVG,
                           .ranks = RANKS,
                           .name = "w",
                           .rows = rows,
                           .columns = columns};
  uint64_t named = lcomm_match_named(&policy, "");
  lcomm_named_data data = lcomm_eligibility_of_name(&policy, named, &call);
  assert_int_equal(data.net.automatic != LCOMM_AUTO_NONE, strstr(text, "auto") != NULL);
  return data.exact ? 0 : data.net.rank;
}

static void matrices_that_gain_may_go_so_and_nothing_else(void **state) {
  (void)state;
  assert_int_equal(rank_of("net=auto:lowrank", ROWS, COLUMNS), LCOMM_AUTO_RANK);
  assert_int_equal(rank_of("net=auto:topk", ROWS, COLUMNS), LCOMM_AUTO_RANK);
  assert_int_equal(rank_of("net[w]=auto:lowrank net=int8", ROWS, COLUMNS), LCOMM_AUTO_RANK);
  assert_int_equal(rank_of("net=auto:sign", ROWS, COLUMNS), 0);
  assert_int_equal(rank_of("net=auto:lowrank min=1", 8, 8), 0);
  assert_int_equal(rank_of("net=auto:lowrank", 0, 0), 0);
  assert_int_equal(rank_of("net=auto:lowrank", 1, 1 << 20), 0);
  assert_int_equal(rank_of("net=auto:topk momentum=0.9", ROWS, COLUMNS), 0);
  assert_int_equal(rank_of("net=auto:lowrank exempt=w", ROWS, COLUMNS), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(matrices_go_by_low_rank_on_slow_links),
    cmocka_unit_test(on_links_as_fast_as_memory_they_are_summed_as_they_are),
    cmocka_unit_test(slow_products_are_not_taken),
    cmocka_unit_test(it_gains_a_twentieth_and_what_is_coarser_one_over_it),
    cmocka_unit_test(where_milder_ones_hide_it_is_not_taken),
    cmocka_unit_test(its_time_is_that_of_both_sums_and_of_the_products),
    cmocka_unit_test(both_ways_and_their_times_are_told),
    cmocka_unit_test(matrices_that_gain_may_go_so_and_nothing_else),
};
RUN_TESTS(tests)
