/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/support/unit_tests.h"
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

/* The weights shrink by rate * decay of their own, beside the step of Adam. */
static void adamw_decays_matrices_only(void **state) {
  (void)state;
  optimizer adam, adamw;
  float plain[] = {2.0f, 3.0f}, decayed[] = {2.0f, 3.0f};
  const float gradients[] = {0.5f, -0.25f};
  const optimizer_part parts[] = {{0, 1, true}, {1, 1, false}};
  assert_int_equal(optimizer_create(OPTIMIZER_ADAM, 2, 0.0f, &adam), 0);
  assert_int_equal(optimizer_create(OPTIMIZER_ADAMW, 2, 0.0f, &adamw), 0);
  assert_int_equal(optimizer_divide(&adamw, parts, 2, 0.5f), 0);
  optimizer_step(&adam, plain, gradients, 0.125f);
  optimizer_step(&adamw, decayed, gradients, 0.125f);
  assert_true(fabsf(decayed[0] - (plain[0] - 0.125f * 0.5f * 2.0f)) < 1e-6f);
  assert_true(decayed[1] == plain[1]);
  optimizer_destroy(&adam);
  optimizer_destroy(&adamw);
}

enum { LAYER = 20 };

static double norm(const float *values, int count) {
  double square = 0.0;
  for (int i = 0; i < count; i++) {
    square += (double)values[i] * (double)values[i];
  }
  return sqrt(square);
}

/* Two layers of LAYER weights, whose gradients are a thousand times as large in the second. */
static void fill_layers(float *weights, float *gradients) {
  for (int i = 0; i < 2 * LAYER; i++) {
    weights[i] = (float)(i % 7) - 2.5f;
    gradients[i] = (float)(i % 5 - 1) * (i < LAYER ? 1.0f : 1000.0f);
  }
}

static const optimizer_part two_layers[] = {{0, LAYER, true}, {LAYER, LAYER, true}};

/* You et al. 2017, equation 6: the first step has the length 0.001 * rate * |w| / (1 + ...) */
static void lars_follows_its_definition(void **state) {
  (void)state;
  optimizer lars;
  float weights[2 * LAYER], gradients[2 * LAYER], begin[2 * LAYER];
  fill_layers(weights, gradients);
  fill_layers(begin, gradients);
  const float decay = 0.01f, rate = 2.0f;
  assert_int_equal(optimizer_create(OPTIMIZER_LARS, 2 * LAYER, 0.9f, &lars), 0);
  assert_int_equal(optimizer_divide(&lars, two_layers, 2, decay), 0);
  optimizer_step(&lars, weights, gradients, rate);
  for (int part = 0; part < 2; part++) {
    const float *w = begin + part * LAYER, *g = gradients + part * LAYER;
    double trust = 0.001 * norm(w, LAYER) / (norm(g, LAYER) + (double)decay * norm(w, LAYER));
    for (int i = 0; i < LAYER; i++) {
      double step = (double)rate * trust * ((double)g[i] + (double)decay * (double)w[i]);
      double moved = (double)w[i] - (double)weights[part * LAYER + i];
      assert_true(fabs(moved - step) < 1e-5);
    }
  }
  optimizer_destroy(&lars);
}

/* You et al. 2020: a step is as long as the rate times the weights of the layer. */
static void lamb_steps_are_as_long_as_the_weights_times_the_rate(void **state) {
  (void)state;
  optimizer lamb;
  float weights[2 * LAYER], gradients[2 * LAYER], before[2 * LAYER];
  fill_layers(weights, gradients);
  assert_int_equal(optimizer_create(OPTIMIZER_LAMB, 2 * LAYER, 0.0f, &lamb), 0);
  assert_int_equal(optimizer_divide(&lamb, two_layers, 2, 0.01f), 0);
  for (int step = 0; step < 3; step++) {
    memcpy(before, weights, sizeof before);
    optimizer_step(&lamb, weights, gradients, 0.01f);
    for (int part = 0; part < 2; part++) {
      float moved[LAYER];
      for (int i = 0; i < LAYER; i++) {
        moved[i] = weights[part * LAYER + i] - before[part * LAYER + i];
      }
      double length = norm(moved, LAYER), expected = 0.01 * norm(before + part * LAYER, LAYER);
      assert_true(fabs(length - expected) < 1e-3 * expected);
    }
  }
  optimizer_destroy(&lamb);
}

static void layers_that_are_zero_take_steps_that_are_finite(void **state) {
  (void)state;
  for (int kind = OPTIMIZER_SGD; kind < OPTIMIZER_COUNT; kind++) {
    optimizer made;
    float weights[] = {0.0f, 0.0f, 1.0f, 1.0f};
    const float gradients[] = {1.0f, -1.0f, 0.0f, 0.0f};
    const optimizer_part parts[] = {{0, 2, true}, {2, 2, true}};
    assert_int_equal(optimizer_create((optimizer_kind)kind, 4, 0.9f, &made), 0);
    assert_int_equal(optimizer_divide(&made, parts, 2, 0.0f), 0);
    optimizer_step(&made, weights, gradients, 0.125f);
    assert_true(weights[0] < 0.0f && weights[1] > 0.0f && isfinite(weights[0]));
    assert_true(weights[2] == 1.0f && weights[3] == 1.0f);
    optimizer_destroy(&made);
  }
}

static void gradients_are_clipped_to_a_norm_and_small_ones_left_alone(void **state) {
  (void)state;
  optimizer sgd;
  float gradients[] = {3.0f, -4.0f};
  assert_int_equal(optimizer_create(OPTIMIZER_SGD, 2, 0.0f, &sgd), 0);
  assert_true(optimizer_clip(&sgd, gradients, 10.0f) == 5.0);
  assert_true(gradients[0] == 3.0f && gradients[1] == -4.0f);
  assert_true(optimizer_clip(&sgd, gradients, 2.5f) == 5.0);
  assert_true(gradients[0] == 1.5f && gradients[1] == -2.0f);
  optimizer_destroy(&sgd);
}

/* m is what arrives, v is that of the gradients before, and no step is larger than the rate. */
static void onebit_adam_freezes_the_variance_where_momentum_arrives(void **state) {
  (void)state;
  optimizer adam, frozen;
  float weights[] = {0.3f, 0.0f}, same[] = {0.3f, 0.0f};
  double second = 0.0, weight;
  assert_int_equal(optimizer_create(OPTIMIZER_ADAM, 2, 0.0f, &adam), 0);
  assert_int_equal(optimizer_create(OPTIMIZER_ONEBIT_ADAM, 2, 0.0f, &frozen), 0);
  for (int step = 1; step <= 20; step++) {
    float gradients[] = {(float)((step * 37) % 11 - 4), 0.0f};
    optimizer_step(&adam, same, gradients, 0.01f);
    optimizer_step(&frozen, weights, gradients, 0.01f);
    second = 0.999 * second + 0.001 * (double)gradients[0] * (double)gradients[0];
    assert_true(memcmp(same, weights, sizeof same) == 0);
  }
  second /= 1.0 - pow(0.999, 20);
  weight = (double)weights[0];
  for (int step = 21; step <= 40; step++) {
    const float momentum[] = {0.5f, step % 2 ? 1e-3f : -1e-3f};
    float before = weights[1];
    optimizer_step_frozen(&frozen, weights, momentum, 0.01f);
    weight -= 0.01 * (0.5 / (1.0 - pow(0.9, step))) / (sqrt(second) + 1e-8);
    assert_true(fabs((double)weights[0] - weight) < 1e-5);
    assert_true(fabsf(fabsf(weights[1] - before) - 0.01f) < 1e-6f);
  }
  assert_true(frozen.first[0] == 0.5f && frozen.second[1] == 0.0f && frozen.frozen == 20);
  double remains = frozen.second_remains;
  optimizer_set_steps(&frozen, 40, 20);
  assert_true(frozen.second_remains == remains);
  optimizer_destroy(&adam);
  optimizer_destroy(&frozen);
}

/* The target has the norm of the start, which suits those that step by norms. */
static void all_find_the_minimum_of_a_parabola(void **state) {
  (void)state;
  static const float rates[] = {0.1f, 0.1f, 0.1f, 50.0f, 0.05f, 0.1f};
  for (int kind = OPTIMIZER_SGD; kind < OPTIMIZER_COUNT; kind++) {
    optimizer made;
    float weights[] = {5.0f};
    assert_int_equal(optimizer_create((optimizer_kind)kind, 1, 0.9f, &made), 0);
    for (uint64_t step = 0; step < 500; step++) {
      float gradients[] = {weights[0] - 2.0f};
      optimizer_step(&made, weights, gradients, optimizer_rate(rates[kind], step, 500));
    }
    if (fabsf(weights[0] - 2.0f) > 0.05f) {
      fail_msg("%s ends at %g", optimizer_name((optimizer_kind)kind), (double)weights[0]);
    }
    optimizer_destroy(&made);
  }
}

static void names_are_found(void **state) {
  (void)state;
  for (int kind = 0; kind < OPTIMIZER_COUNT; kind++) {
    assert_int_equal(optimizer_find(optimizer_name((optimizer_kind)kind)), kind);
  }
  assert_int_equal(optimizer_find("none"), OPTIMIZER_COUNT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sgd_adds_the_velocity),
    cmocka_unit_test(sgd_without_momentum_forgets),
    cmocka_unit_test(adam_follows_its_definition),
    cmocka_unit_test(adam_takes_first_steps_of_the_size_of_the_rate),
    cmocka_unit_test(adamw_decays_matrices_only),
    cmocka_unit_test(onebit_adam_freezes_the_variance_where_momentum_arrives),
    cmocka_unit_test(lars_follows_its_definition),
    cmocka_unit_test(lamb_steps_are_as_long_as_the_weights_times_the_rate),
    cmocka_unit_test(layers_that_are_zero_take_steps_that_are_finite),
    cmocka_unit_test(gradients_are_clipped_to_a_norm_and_small_ones_left_alone),
    cmocka_unit_test(all_find_the_minimum_of_a_parabola),
    cmocka_unit_test(names_are_found),
};
RUN_TESTS(tests)
