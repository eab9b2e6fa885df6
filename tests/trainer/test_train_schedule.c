/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/unit_tests.h"
#include "trainer/train_schedule.h"

static void rate_rises_to_its_peak_and_falls_to_zero(void **state) {
  (void)state;
  enum { STEPS = 1000, WARMUP = 50 };
  float before = 0.0f;
  for (uint64_t step = 0; step < WARMUP; step++) {
    float rate = optimizer_rate(0.5f, step, STEPS);
    assert_true(rate > before && rate < 0.5f);
    before = rate;
  }
  assert_true(optimizer_rate(0.5f, WARMUP, STEPS) == 0.5f);
  before = 0.5f;
  for (uint64_t step = WARMUP + 1; step < STEPS; step++) {
    float rate = optimizer_rate(0.5f, step, STEPS);
    assert_true(rate < before && rate > 0.0f);
    before = rate;
  }
  assert_true(before < 1e-4f);
  assert_true(optimizer_rate(0.5f, STEPS, STEPS) == 0.0f);
}

static void a_run_of_one_step_has_a_rate(void **state) {
  (void)state;
  assert_true(optimizer_rate(0.5f, 0, 1) == 0.5f);
}

/* The half cosine itself would need a function that processors round differently. */
static void a_cosine_is_near_one(void **state) {
  (void)state;
  static const double half_cosine[] = {1.0, 0.853553, 0.5, 0.146447}; /* (1 + cos(pi t)) / 2 */
  const schedule made = {SCHEDULE_COSINE, 1.0f, 0.0f, 100};
  for (int i = 0; i < 4; i++) {
    double rate = (double)schedule_rate(&made, (uint64_t)(25 * i));
    assert_true(rate - half_cosine[i] < 0.011 && half_cosine[i] - rate < 0.011);
  }
}

static void steps_fall_at_a_half_and_at_three_quarters(void **state) {
  (void)state;
  const schedule made = {SCHEDULE_STEP, 1.0f, 0.1f, 100};
  assert_true(schedule_rate(&made, 5) < 1.0f);
  assert_true(schedule_rate(&made, 10) == 1.0f && schedule_rate(&made, 49) == 1.0f);
  assert_true(schedule_rate(&made, 50) == 0.1f && schedule_rate(&made, 74) == 0.1f);
  assert_true(schedule_rate(&made, 75) == 0.01f && schedule_rate(&made, 99) == 0.01f);
  assert_true(schedule_rate(&made, 100) == 0.0f);
}

static void a_constant_rate_stays_after_its_rise(void **state) {
  (void)state;
  const schedule made = {SCHEDULE_CONSTANT, 0.5f, 0.1f, 100};
  assert_true(schedule_rate(&made, 0) < schedule_rate(&made, 9));
  assert_true(schedule_rate(&made, 10) == 0.5f && schedule_rate(&made, 1000) == 0.5f);
}

static void names_of_schedules_are_found(void **state) {
  (void)state;
  for (int kind = 0; kind < SCHEDULE_COUNT; kind++) {
    assert_int_equal(schedule_find(schedule_name((schedule_kind)kind)), kind);
  }
  assert_int_equal(schedule_find("none"), SCHEDULE_COUNT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rate_rises_to_its_peak_and_falls_to_zero),
    cmocka_unit_test(a_run_of_one_step_has_a_rate),
    cmocka_unit_test(a_cosine_is_near_one),
    cmocka_unit_test(steps_fall_at_a_half_and_at_three_quarters),
    cmocka_unit_test(a_constant_rate_stays_after_its_rise),
    cmocka_unit_test(names_of_schedules_are_found),
};
RUN_TESTS(tests)
