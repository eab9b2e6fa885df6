/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* External progress: when it is made, and how long a sleep may be before it is. Times are
 * given, so nothing here depends on a clock but that progress which takes no time is short. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/external_progress.h"
#include "tests/support/unit_tests.h"

static const double LIMIT_S = 0.05;
static unsigned calls;

static void count(lcomm_bootstrap_object *bootstrap) {
  (void)bootstrap;
  calls++;
}

static lcomm_bootstrap_object with(void (*progress)(lcomm_bootstrap_object *)) {
  calls = 0;
  return (lcomm_bootstrap_object){.progress = progress};
}

static void without_mpi_nothing_is_done_and_sleeps_are_whole(void **state) {
  lcomm_bootstrap_object bootstrap = with(NULL);
  lcomm_external_pace pace = {.next_s = 0};
  (void)state;
  lcomm_external_begin(&pace, 100);
  lcomm_external_progress(&pace, &bootstrap, 200);
  assert_true(lcomm_external_limit_s(&pace, &bootstrap, 200, LIMIT_S) == LIMIT_S);
}

/* A wait that comes after progress was made looks no sooner than after 20 us. */
static void short_waits_pay_nothing(void **state) {
  lcomm_bootstrap_object bootstrap = with(count);
  lcomm_external_pace pace = {.last_s = 100};
  (void)state;
  for (int i = 0; i < 50; i++) {
    double begin_s = 100 + 10e-6 * i;
    lcomm_external_begin(&pace, begin_s);
    lcomm_external_progress(&pace, &bootstrap, begin_s + 19e-6);
  }
  assert_int_equal(calls, 0);
}

/* But they do not put it off for ever. */
static void waits_make_progress_once_in_8_milliseconds(void **state) {
  lcomm_bootstrap_object bootstrap = with(count);
  lcomm_external_pace pace = {.last_s = 100};
  (void)state;
  for (int i = 0; i < 2000 && calls == 0; i++) {
    double begin_s = 100 + 10e-6 * i;
    lcomm_external_begin(&pace, begin_s);
    lcomm_external_progress(&pace, &bootstrap, begin_s + 9e-6);
    assert_true(calls == 0 || i >= 799);
  }
  assert_int_equal(calls, 1);
}

static void a_sleep_ends_when_progress_is_due(void **state) {
  lcomm_bootstrap_object bootstrap = with(count);
  lcomm_external_pace pace = {.last_s = 100};
  (void)state;
  lcomm_external_begin(&pace, 100.5);
  pace.next_s = 100.6;
  assert_true(fabs(lcomm_external_limit_s(&pace, &bootstrap, 100.59, LIMIT_S) - 0.01) < 1e-6);
  assert_true(lcomm_external_limit_s(&pace, &bootstrap, 100.7, LIMIT_S) == 0);
  assert_true(lcomm_external_limit_s(&pace, &bootstrap, 100.5, 0.02) == 0.02);
}

/* While nothing moves, the pauses double up to 8 milliseconds. On a busy machine a look may be
 * long, and then more of them are needed. */
static void pauses_grow_to_8_milliseconds(void **state) {
  lcomm_bootstrap_object bootstrap = with(count);
  lcomm_external_pace pace = {.next_s = 0};
  double longest_s = 0;
  (void)state;
  lcomm_external_begin(&pace, lcomm_clock_s());
  for (int i = 0; i < 100000 && longest_s < 7.9e-3; i++) {
    pace.next_s = 0;
    lcomm_external_progress(&pace, &bootstrap, lcomm_clock_s());
    assert_true(pace.pause_s >= 19.9e-6 && pace.pause_s <= 8.001e-3);
    longest_s = pace.pause_s > longest_s ? pace.pause_s : longest_s;
  }
  assert_true(longest_s > 7.9e-3);
}

static const double LONG_LOOK_S = 2e-3;

/* One look that began so long ago and ends now. */
static void look_for(double look_s, lcomm_external_pace *pace, lcomm_bootstrap_object *bootstrap) {
  pace->next_s = 0;
  lcomm_external_progress(pace, bootstrap, lcomm_clock_s() - look_s);
}

static void what_moves_is_looked_at_sooner_each_time(void **state) {
  enum { LOOKS = 8 };
  lcomm_bootstrap_object bootstrap = with(count);
  lcomm_external_pace pace = {.pause_s = 1e-3, .shortest_s = 1e-6};
  (void)state;
  for (int i = 0; i < LOOKS; i++) {
    double before_s = pace.pause_s;
    look_for(LONG_LOOK_S, &pace, &bootstrap);
    assert_true(pace.pause_s < before_s || pace.pause_s < 21e-6);
  }
  assert_int_equal(calls, LOOKS);
  assert_true(pace.pause_s < 21e-6);
}

/* Where a look always takes long, as on a busy machine, it means nothing. */
static void looks_that_all_take_long_are_made_seldom(void **state) {
  lcomm_bootstrap_object bootstrap = with(count);
  lcomm_external_pace pace = {.pause_s = 20e-6, .shortest_s = LONG_LOOK_S};
  (void)state;
  double longest_s = 0;
  for (int i = 0; i < 1000 && longest_s < 7.9e-3; i++) {
    look_for(LONG_LOOK_S, &pace, &bootstrap);
    longest_s = pace.pause_s > longest_s ? pace.pause_s : longest_s;
  }
  assert_true(longest_s > 7.9e-3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_mpi_nothing_is_done_and_sleeps_are_whole),
    cmocka_unit_test(short_waits_pay_nothing),
    cmocka_unit_test(waits_make_progress_once_in_8_milliseconds),
    cmocka_unit_test(a_sleep_ends_when_progress_is_due),
    cmocka_unit_test(pauses_grow_to_8_milliseconds),
    cmocka_unit_test(what_moves_is_looked_at_sooner_each_time),
    cmocka_unit_test(looks_that_all_take_long_are_made_seldom),
};
RUN_TESTS(tests)
