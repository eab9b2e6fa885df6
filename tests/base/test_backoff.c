/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Polling loops: spins first, then yields, then sleeps, and spins again after a reset. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "tests/support/unit_tests.h"

static int awake_steps(lcomm_backoff *it, int limit) {
  int steps = 0;
  while (steps < limit && lcomm_backoff_awake(it)) {
    steps++;
  }
  return steps;
}

static void a_sleep_comes_after_spins_and_yields(void **state) {
  (void)state;
  lcomm_backoff it = {.spins = 3, .yields = 4};
  assert_int_equal(awake_steps(&it, 100), 7);
  assert_false(lcomm_backoff_awake(&it));
  lcomm_backoff_reset(&it);
  assert_int_equal(awake_steps(&it, 100), 7);
}

static void a_loop_may_sleep_at_once_or_never(void **state) {
  (void)state;
  lcomm_backoff sleeper = {.sleep_ns = 1}, yielder = {.yields = LCOMM_BACKOFF_ALWAYS};
  lcomm_backoff both = {.spins = 2, .yields = LCOMM_BACKOFF_ALWAYS};
  assert_int_equal(awake_steps(&sleeper, 10), 0);
  assert_int_equal(awake_steps(&yielder, 1000), 1000);
  assert_int_equal(awake_steps(&both, 1000), 1000);
}

static void a_step_sleeps_only_when_a_sleep_is_due(void **state) {
  (void)state;
  static const double SLEEP_S = 0.02;
  lcomm_backoff it = {.spins = 1, .sleep_ns = 20000000};
  lcomm_backoff_step(&it);
  assert_int_equal(it.steps, 1);
  double before_s = lcomm_clock_s();
  lcomm_backoff_step(&it);
  assert_true(lcomm_clock_s() - before_s >= SLEEP_S * 0.99);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_sleep_comes_after_spins_and_yields),
    cmocka_unit_test(a_loop_may_sleep_at_once_or_never),
    cmocka_unit_test(a_step_sleeps_only_when_a_sleep_is_due),
};
RUN_TESTS(tests)
