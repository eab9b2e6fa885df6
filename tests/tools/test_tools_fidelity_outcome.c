/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What fidelity_bench says of a training is what it was: losses and accuracy against a model that
 * is fed by hand, bytes against the formula, momentum and a step that is lost. */

#include "tests/support/unit_tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/fidelity_trained.h"
#include "tools/fidelity/fidelity_overflow.h"
#include "tools/fidelity/fidelity_world.h"
#include "trainer/train_model.h"
#include "trainer/train_random.h"

enum {
  BATCH = 64,
  IMAGES = 640,
  STEPS = IMAGES / BATCH,
  EPOCHS = 5,
  ALL = EPOCHS * STEPS,
  TESTED = 450
};

static const layer_shape image = {1, 28, 28};

/* 450 to test on: no multiple of what is tested at a time. */
static task some_shapes(void) {
  return shapes(IMAGES, TESTED);
}

static fidelity_outcome train_by(optimizer_kind kind, const char *policy, fidelity_place world,
                                 uint64_t seed, float rate) {
  const fidelity_training training = {.batch = BATCH,
                                      .images = IMAGES,
                                      .epochs = EPOCHS,
                                      .rates = {[OPTIMIZER_SGD] = rate, [OPTIMIZER_ADAM] = rate},
                                      .momentum = 0.9f};
  fidelity_cell cell = {.of = {.optimizer = kind, .world = world, .training = &training},
                        .seed = seed};
  task data = some_shapes();
  return outcome_by(policy, cell, &data);
}

static fidelity_outcome train(const char *policy, fidelity_place world, uint64_t seed, float rate) {
  return train_by(OPTIMIZER_SGD, policy, world, seed, rate);
}

/* ------------------------------------------------------------ weights that stay */

static double loss_of(model *net, const task *data, const uint32_t *samples) {
  uint8_t labels[BATCH];
  task_train_batch(data, samples, BATCH, model_input(net), labels);
  const float *logits = model_forward(net, BATCH);
  return loss_cross_entropy(logits, labels, BATCH, data->classes, NULL) / BATCH;
}

static double accuracy_of(model *net, const task *data) {
  int correct = 0;
  for (uint32_t i = 0; i < data->test_count; i++) {
    uint8_t label = 0;
    task_test_batch(data, i, 1, model_input(net), &label);
    correct += loss_count_correct(model_infer(net, 1), &label, 1, data->classes);
  }
  return (double)correct / data->test_count;
}

/* The seed draws weights and the order of each epoch; with a learning rate of 0 all losses are
 * theirs, of 50 steps in 40 parts. */
static void losses_and_accuracy_are_those_of_weights_and_images_of_the_seed(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 7; seed += 6) {
    fidelity_outcome made = train("", (fidelity_place){4, 1}, seed, 0.0f);
    task data = some_shapes();
    model net;
    uint32_t order[IMAGES];
    assert_int_equal(model_create("mlp", image, data.classes, BATCH, &net), 0);
    assert_int_equal(model_draw_weights(&net, seed), 0);
    assert_true(made.steps == ALL && made.curve_count == FIDELITY_CURVE_MAX);
    for (int part = 0, step = 0; part < FIDELITY_CURVE_MAX; part++) {
      int begin = step, end = ALL * (part + 1) / FIDELITY_CURVE_MAX;
      double expected = 0.0;
      for (; step < end; step++) {
        if (step % STEPS == 0) {
          task_begin_epoch(&data, seed, 1 + step / STEPS, order);
        }
        expected += loss_of(&net, &data, order + (long)(step % STEPS) * BATCH) / (end - begin);
      }
      assert_true(fabs((double)made.curve[part] - expected) < 1e-5 * expected);
    }
    assert_true(fabs(made.accuracy - accuracy_of(&net, &data)) < 1e-4);
    assert_true(made.seconds > 0.0 && made.processor_s > 0.0);
    model_destroy(&net);
  }
}

/* ----------------------------------------------------------------------- bytes */

/* Of a few steps on 2 nodes. */
static double bytes_of_cnn(const char *policy) {
  static const fidelity_training training = {.batch = 4, .images = 40, .epochs = 1};
  fidelity_preset preset = {.name = "tested"};
  snprintf(preset.policy, sizeof preset.policy, "%s", policy);
  fidelity_cell cell = {
      .of = {.model = "cnn", .world = {2, 1}, .preset = &preset, .training = &training}, .seed = 1};
  task data = some_shapes();
  fidelity_outcome made;
  failure why = {0};
  data.train_count = 40;
  data.test_count = 4;
  if (fidelity_train(&cell, &data, &made, &why)) {
    fail_msg("%s", why.text);
  }
  return made.bytes;
}

/* 2 (m-1)/m of the values by each of m nodes, once for each node however many ranks it has. */
static void bytes_are_those_of_the_formula_of_all_nodes_together(void **state) {
  (void)state;
  static const fidelity_place worlds[] = {{4, 1}, {2, 2}, {2, 1}, {4, 2}};
  model net;
  assert_int_equal(model_create("mlp", image, 10, 1, &net), 0);
  for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
    fidelity_outcome made = train("", worlds[i], 1, 0.01f);
    double formula = 2.0 * (worlds[i].nodes - 1) * (double)net.weight_count * sizeof(float);
    assert_true(made.bytes / made.steps >= formula);
    assert_true(made.bytes / made.steps < 1.02 * formula);
  }
  model_destroy(&net);
}

/* The small tensors of the convolutional network are 3 % of its values, and most of the bytes where
 * top-k has the others: with bf16 for them there are over 40 times fewer, without 26. */
static void small_tensors_by_bf16_nearly_halve_the_bytes_of_top_k(void **state) {
  (void)state;
  double exact = bytes_of_cnn(""), sparse = bytes_of_cnn("net=topk:0.01+ef");
  double with_bf16 = bytes_of_cnn("net[size<=64K]=bf16 net=topk:0.01+ef");
  assert_true(exact / sparse > 24.0 && exact / sparse < 28.0);
  assert_true(exact / with_bf16 > 40.0);
}

/* -------------------------------------------------------------------- momentum */

/* Exempt tensors get theirs from the library, after an exact sum: the same as the optimiser's. */
static void momentum_acts_once_whoever_has_it(void **state) {
  (void)state;
  fidelity_outcome own = train("", (fidelity_place){2, 1}, 1, 0.05f);
  fidelity_outcome library =
      train("net=topk:0.01+ef momentum=0.9 exempt=*", (fidelity_place){2, 1}, 1, 0.05f);
  assert_true(own.curve[own.curve_count - 1] < 0.9f * own.curve[0]);
  for (size_t step = 0; step < own.curve_count; step++) {
    assert_true(fabsf(own.curve[step] - library.curve[step]) < 1e-3f); /* rounding drifts */
  }
}

/* As long as gradients arrive it is Adam; with momentum that is exact it learns as well. */
static void adam_takes_momentum_where_the_policy_sends_it(void **state) {
  (void)state;
  static const char *const policies[] = {"net=int8+ef min=0 adam=onebit warmup=1000",
                                         "net=int8+ef adam=onebit warmup=10 exempt=*",
                                         "net=sign min=0 adam=onebit warmup=25"};
  fidelity_place two = {2, 1};
  fidelity_outcome plain = train_by(OPTIMIZER_ADAM, "", two, 1, 0.002f);
  for (int i = 0; i < 3; i++) {
    fidelity_outcome sent = train_by(OPTIMIZER_ADAM, policies[i], two, 1, 0.002f);
    size_t last = plain.curve_count - 1;
    bool same = memcmp(sent.curve, plain.curve, plain.curve_count * sizeof *plain.curve) == 0;
    assert_int_equal(same, i == 0);
    assert_true(sent.curve[last] < 0.7f * sent.curve[0]);
  }
}

static void momentum_is_for_no_optimiser_but_adam(void **state) {
  (void)state;
  const fidelity_training training = {.batch = BATCH, .images = IMAGES, .epochs = 1};
  const fidelity_preset preset = {"onebit", "net=sign adam=onebit warmup=10"};
  const fidelity_cell cell = {.of = {.model = "mlp",
                                     .optimizer = OPTIMIZER_SGD,
                                     .world = {2, 1},
                                     .preset = &preset,
                                     .training = &training},
                              .seed = 1};
  task data = some_shapes();
  fidelity_outcome made;
  failure why = {0};
  assert_int_equal(fidelity_train(&cell, &data, &made, &why), -1);
  assert_non_null(strstr(why.text, "sends Adam's momentum, and the optimiser is sgd"));
}

/* ------------------------------------------------------------- a step that is lost */

static void fill(fidelity_world *world) {
  for (int worker = 0; worker < world->size; worker++) {
    random_stream random = random_begin(3, (uint64_t)worker);
    for (size_t i = 0; i < world->count; i++) {
      world->workers[worker].values[i] = random_between(&random, 0.5f, 1.0f);
    }
  }
}

static void step(fidelity_world *world) {
  failure why = {0};
  if (fidelity_world_step(world, &why)) {
    fail_msg("%s", why.text);
  }
}

static void a_spoilt_step_is_too_large_at_all_workers_and_has_one_inf(void **state) {
  (void)state;
  model net;
  fidelity_world world;
  failure why = {0};
  size_t infinite = 0;
  assert_int_equal(model_create("mlp", image, 10, 1, &net), 0);
  assert_int_equal(fidelity_world_make((fidelity_place){2, 1}, "net=int8", &net, &world, &why), 0);
  fill(&world);
  step(&world);
  assert_false(fidelity_overflow_is_lost(&world));
  fill(&world);
  fidelity_overflow_spoil(&world, 1000.0);
  for (int worker = 0; worker < world.size; worker++) {
    for (size_t i = 0; i < world.count; i++) {
      float value = world.workers[worker].values[i];
      infinite += isinf(value) != 0;
      assert_true(value >= 500.0f);
    }
  }
  assert_int_equal(infinite, 1);
  step(&world);
  assert_true(fidelity_overflow_is_lost(&world));
  fill(&world);
  step(&world);
  assert_false(fidelity_overflow_is_lost(&world));
  fidelity_world_free(&world);
  model_destroy(&net);
}

/* The optimiser does not see it: the weights of before and after that step are the same. */
static void the_optimiser_skips_a_step_that_is_lost(void **state) {
  (void)state;
  static const fidelity_training training = {
      .batch = BATCH, .images = IMAGES, .epochs = 1, .rates = {[OPTIMIZER_SGD] = 0.05f}};
  static const fidelity_preset preset = {"fp32", ""};
  fidelity_cell cell = {.of = {.model = "mlp",
                               .optimizer = OPTIMIZER_SGD,
                               .world = {2, 1},
                               .preset = &preset,
                               .training = &training},
                        .seed = 1};
  task data = some_shapes();
  fidelity_outcome clean, spoilt;
  failure why = {0};
  assert_int_equal(fidelity_train(&cell, &data, &clean, &why), 0);
  cell.of.overflow = 1000.0;
  assert_int_equal(fidelity_train(&cell, &data, &spoilt, &why), 0);
  for (int i = 0; i <= STEPS / 2; i++) {
    assert_true(spoilt.curve[i] == clean.curve[i]);
  }
  assert_true(spoilt.curve[STEPS / 2 + 1] != clean.curve[STEPS / 2 + 1]);
  for (size_t i = STEPS / 2; i < spoilt.curve_count; i++) {
    assert_true(spoilt.curve[i] < 1.2f * clean.curve[0]);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(losses_and_accuracy_are_those_of_weights_and_images_of_the_seed),
    cmocka_unit_test(bytes_are_those_of_the_formula_of_all_nodes_together),
    cmocka_unit_test(small_tensors_by_bf16_nearly_halve_the_bytes_of_top_k),
    cmocka_unit_test(momentum_acts_once_whoever_has_it),
    cmocka_unit_test(adam_takes_momentum_where_the_policy_sends_it),
    cmocka_unit_test(momentum_is_for_no_optimiser_but_adam),
    cmocka_unit_test(a_spoilt_step_is_too_large_at_all_workers_and_has_one_inf),
    cmocka_unit_test(the_optimiser_skips_a_step_that_is_lost),
};
RUN_TESTS(tests)
