/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What exchanges cost is what their schedules do; and which one of an exact sum between hosts costs
 * least. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/plan/cost.h"
#include "tests/sched/schedule_costs.h"
#include "tests/support/unit_tests.h"

static const int powers[] = {4, 8, 16, 64, 256, 1024};

/* As nobody has measured it. */
static const lcomm_link_cost assumed = {.latency_us = 5, .bandwidth_gb_s = 10, .assumed = true};

enum { POWERS = sizeof(powers) / sizeof(powers[0]), LARGEST = 64 << 20 };

static void the_shortest_sums_of_a_power_of_two_go_by_doubling(void **state) {
  (void)state;
  for (int i = 0; i < POWERS; i++) {
    assert_int_equal(lcomm_cheapest_exchange(&assumed, powers[i], 4), LCOMM_EXCHANGE_DOUBLING);
    assert_int_equal(lcomm_cheapest_exchange(&assumed, powers[i], 1024), LCOMM_EXCHANGE_DOUBLING);
  }
}

static void long_sums_of_a_power_of_two_go_by_halving(void **state) {
  (void)state;
  for (int i = 0; i < POWERS; i++) {
    assert_int_equal(lcomm_cheapest_exchange(&assumed, powers[i], LARGEST), LCOMM_EXCHANGE_HALVING);
  }
}

/* Once bytes count more than messages, more bytes never make messages count more. */
static void a_longer_sum_never_takes_more_bytes_per_element(void **state) {
  (void)state;
  for (int i = 0; i < POWERS; i++) {
    bool halves = false;
    for (uint64_t size = 4; size <= LARGEST; size *= 2) {
      lcomm_exchange_kind kind = lcomm_cheapest_exchange(&assumed, powers[i], size);
      assert_true(kind == LCOMM_EXCHANGE_DOUBLING || kind == LCOMM_EXCHANGE_HALVING);
      assert_false(halves && kind == LCOMM_EXCHANGE_DOUBLING);
      halves = kind == LCOMM_EXCHANGE_HALVING;
    }
  }
}

/* Folding ranks away costs two whole vectors, which direct does not. */
static void long_sums_of_other_sizes_go_direct(void **state) {
  (void)state;
  static const int others[] = {5, 6, 7, 9, 12, 100, 1000};
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
    assert_int_equal(lcomm_cheapest_exchange(&assumed, others[i], LARGEST), LCOMM_EXCHANGE_DIRECT);
  }
}

static void short_sums_of_many_never_tell_all_peers(void **state) {
  (void)state;
  for (int ranks = 20; ranks < 2000; ranks += 77) {
    lcomm_exchange_kind kind = lcomm_cheapest_exchange(&assumed, ranks, 1024);
    assert_true(kind == LCOMM_EXCHANGE_DOUBLING || kind == LCOMM_EXCHANGE_HALVING);
  }
}

static lcomm_exchange_kind cheapest_of(double latency_us, double message_us, int ranks,
                                       uint64_t size) {
  lcomm_link_cost net = {
      .latency_us = latency_us, .bandwidth_gb_s = 0.125, .message_us = message_us};
  return lcomm_cheapest_exchange(&net, ranks, size);
}

/* Where the way is long and messages are cheap, one round with all peers; where messages cost a
 * processor, few of them; where both cost little, few bytes. */
static void measured_links_decide(void **state) {
  (void)state;
  assert_int_equal(cheapest_of(20000, 5, 16, 8), LCOMM_EXCHANGE_GATHER);
  assert_int_equal(cheapest_of(20, 15, 16, 8), LCOMM_EXCHANGE_DOUBLING);
  assert_int_equal(cheapest_of(20, 15, 4, 1024), LCOMM_EXCHANGE_DOUBLING);
  assert_int_equal(cheapest_of(2, 1, 16, 8192), LCOMM_EXCHANGE_HALVING);
  for (int ranks = 4; ranks <= 1024; ranks *= 2) { /* once one round is worth it, longer ways are */
    bool gathers = false;
    for (double latency_us = 1; latency_us < 1e6; latency_us *= 2) {
      bool here = cheapest_of(latency_us, 10, ranks, 8) == LCOMM_EXCHANGE_GATHER;
      assert_true(here || !gathers);
      gathers = here;
    }
    assert_true(gathers);
  }
}

/* Messages and bytes are counted in the schedules of all ranks, spans divide evenly. */
static void costs_are_those_of_the_schedules(void **state) {
  (void)state;
  static const bool exact[LCOMM_STAGE_COUNT] = {false};
  static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_GATHER, LCOMM_EXCHANGE_DIRECT,
                                              LCOMM_EXCHANGE_RING, LCOMM_EXCHANGE_DOUBLING,
                                              LCOMM_EXCHANGE_HALVING};
  for (int ranks = 2; ranks <= 13; ranks++) {
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
      uint64_t count = 16 * 128 * (uint64_t)ranks;
      world_shape shape = even_world(ranks, 1);
      collective what = {ALLREDUCE, .count = count, .shape = {.exchange = kinds[i], .chunks = 1}};
      schedule_costs counted = costs_of(&shape, &what, exact);
      lcomm_exchange_cost cost = lcomm_exchange_cost_of(kinds[i], ranks, count);
      if (cost.messages != counted.messages || cost.size != counted.sent ||
          cost.rounds < counted.rounds || cost.rounds > counted.rounds + 2) {
        fail_msg("%s over %d: %d messages, %d rounds, %d bytes; counted %d, %d, %d",
                 lcomm_exchange_name(kinds[i]), ranks, (int)cost.messages, (int)cost.rounds,
                 (int)cost.size, (int)counted.messages, (int)counted.rounds, (int)counted.sent);
      }
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(costs_are_those_of_the_schedules),
    cmocka_unit_test(the_shortest_sums_of_a_power_of_two_go_by_doubling),
    cmocka_unit_test(long_sums_of_a_power_of_two_go_by_halving),
    cmocka_unit_test(a_longer_sum_never_takes_more_bytes_per_element),
    cmocka_unit_test(long_sums_of_other_sizes_go_direct),
    cmocka_unit_test(short_sums_of_many_never_tell_all_peers),
    cmocka_unit_test(measured_links_decide),
};
RUN_TESTS(tests)
