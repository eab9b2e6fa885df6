/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "trainer/train_optimizer.h"

static void sgd_adds_the_velocity(void **state) {
  (void)state;
  optimizer sgd;
  float weights[] = {1.0f, -2.0f};
  const float gradients[] = {0.5f, -1.0f};
  assert_int_equal(optimizer_create(OPTIMIZER_SGD, 2, 0.5f, &sgd), 0);
  optimizer_step(&sgd, weights, gradients, 0.25f); /* velocity 0.5, -1 */
  assert_true(weights[0] == 0.875f && weights[1] == -1.75f);
  optimizer_step(&sgd, weights, gradients, 0.25f); /* velocity 0.75, -1.5 */
  assert_true(weights[0] == 0.6875f && weights[1] == -1.375f);
  optimizer_destroy(&sgd);
}

static void sgd_without_momentum_forgets(void **state) {
  (void)state;
  optimizer sgd;
  float weights[] = {1.0f};
  const float gradients[] = {1.0f}, none[] = {0.0f};
  assert_int_equal(optimizer_create(OPTIMIZER_SGD, 1, 0.0f, &sgd), 0);
  optimizer_step(&sgd, weights, gradients, 0.25f);
  optimizer_step(&sgd, weights, none, 0.25f);
  assert_true(weights[0] == 0.75f);
  optimizer_destroy(&sgd);
}

/* The definition of Adam, in double. */
static void adam_follows_its_definition(void **state) {
  (void)state;
  optimizer adam;
  float weights[] = {0.3f};
  double weight = 0.3, first = 0.0, second = 0.0;
  assert_int_equal(optimizer_create(OPTIMIZER_ADAM, 1, 0.0f, &adam), 0);
  for (int step = 1; step <= 50; step++) {
    float gradient[] = {(float)((step * 37) % 11 - 4)};
    optimizer_step(&adam, weights, gradient, 0.01f);
    first = 0.9 * first + 0.1 * (double)gradient[0];
    second = 0.999 * second + 0.001 * (double)gradient[0] * (double)gradient[0];
    weight -=
        0.01 * (first / (1.0 - pow(0.9, step))) / (sqrt(second / (1.0 - pow(0.999, step))) + 1e-8);
    assert_true(fabs((double)weights[0] - weight) < 1e-5);
  }
  optimizer_destroy(&adam);
}

static void adam_takes_first_steps_of_the_size_of_the_rate(void **state) {
  (void)state;
  optimizer adam;
  float weights[] = {0.0f, 0.0f};
  const float gradients[] = {1e-3f, -1e3f};
  assert_int_equal(optimizer_create(OPTIMIZER_ADAM, 2, 0.0f, &adam), 0);
  optimizer_step(&adam, weights, gradients, 0.125f);
  assert_true(fabsf(weights[0] + 0.125f) < 1e-4f);
  assert_true(fabsf(weights[1] - 0.125f) < 1e-4f);
  optimizer_destroy(&adam);
}

static void both_find_the_minimum_of_a_parabola(void **state) {
  (void)state;
  for (int kind = OPTIMIZER_SGD; kind <= OPTIMIZER_ADAM; kind++) {
    optimizer made;
    float weights[] = {5.0f};
    assert_int_equal(optimizer_create((optimizer_kind)kind, 1, 0.9f, &made), 0);
    for (uint64_t step = 0; step < 500; step++) {
      float gradients[] = {weights[0] - 2.0f};
      optimizer_step(&made, weights, gradients, optimizer_rate(0.1f, step, 500));
    }
    assert_true(fabsf(weights[0] - 2.0f) < 0.01f);
    optimizer_destroy(&made);
  }
}

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sgd_adds_the_velocity),
      cmocka_unit_test(sgd_without_momentum_forgets),
      cmocka_unit_test(adam_follows_its_definition),
      cmocka_unit_test(adam_takes_first_steps_of_the_size_of_the_rate),
      cmocka_unit_test(both_find_the_minimum_of_a_parabola),
      cmocka_unit_test(rate_rises_to_its_peak_and_falls_to_zero),
      cmocka_unit_test(a_run_of_one_step_has_a_rate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
