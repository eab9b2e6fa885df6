/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/support/unit_tests.h"
#include "trainer/train_model.h"
#include "trainer/train_pipeline.h"

/* A transformer in stages computes what it computes as a whole. */

enum { WINDOWS = 3, CONTEXT = 64, CHANNELS = 128, ROWS = WINDOWS * CONTEXT, CLASSES = 256 };
enum { BETWEEN = ROWS * CHANNELS };

static const layer_shape window = {1, CONTEXT, 1};

static void make_stage(int stage, int stages, int kept, model *made) {
  model_part part = {stage, stages, kept};
  assert_int_equal(
      model_create_part(backend_cpu(), "gpt-nano", window, CLASSES, WINDOWS, part, made), 0);
  model_draw_weights(made, 5);
}

static void make_whole(model *made) {
  make_stage(0, 1, 1, made);
}

static void fill_text(float *bytes, uint8_t *labels, int shift) {
  for (int i = 0; i < ROWS; i++) {
    bytes[i] = (float)((i * 37 + shift * 11) % CLASSES);
    labels[i] = (uint8_t)((i * 53 + shift * 17 + 7) % CLASSES);
  }
}

static void ignore(void *context, int first, int count) {
  (void)context;
  (void)first;
  (void)count;
}

static void train_whole(model *net, int shift) {
  uint8_t labels[ROWS];
  fill_text(model_input(net), labels, shift);
  const float *logits = model_forward(net, WINDOWS);
  loss_cross_entropy(logits, labels, ROWS, CLASSES, model_logits_delta(net));
  model_backward(net, WINDOWS, ignore, NULL);
}

/* Forward through all stages, as messages would. */
static void forward_stages(model *nets, int stages, int kept, int shift, uint8_t *labels) {
  for (int i = 0; i < stages; i++) {
    model_turn_to(&nets[i], kept);
    if (i == 0) {
      fill_text(model_input(&nets[i]), labels, shift);
    } else {
      const element *made = nets[i - 1].activations[nets[i - 1].layer_count];
      memcpy(model_input(&nets[i]), made, BETWEEN * sizeof(float));
    }
    model_forward(&nets[i], WINDOWS);
  }
}

static void backward_stages(model *nets, int stages, int kept, const uint8_t *labels) {
  model *last = &nets[stages - 1];
  for (int i = 0; i < stages; i++) {
    model_turn_to(&nets[i], kept);
  }
  loss_cross_entropy(last->activations[last->layer_count], labels, ROWS, CLASSES,
                     model_logits_delta(last));
  for (int i = stages - 1; i >= 0; i--) {
    model_backward(&nets[i], WINDOWS, ignore, NULL);
    if (i > 0) {
      memcpy(model_logits_delta(&nets[i - 1]), model_input_delta(&nets[i]),
             BETWEEN * sizeof(float));
    }
  }
}

static const model_parameter *find(const model *net, const char *name) {
  for (int i = 0; i < net->parameter_count; i++) {
    if (strcmp(net->parameters[i].name, name) == 0) {
      return &net->parameters[i];
    }
  }
  fail_msg("no %s", name);
  return NULL;
}

static bool is_tied(const model_parameter *of) {
  return strcmp(of->name, "embedding.weight") == 0;
}

/* The same bits of all but the weights that both ends have. */
static void assert_gradients_of(const model *part, const model *whole) {
  for (int i = 0; i < part->parameter_count; i++) {
    const model_parameter *here = &part->parameters[i], *there = find(whole, here->name);
    assert_int_equal(here->count, there->count);
    assert_int_equal(here->rows, there->rows);
    if (!is_tied(here)) {
      assert_memory_equal(part->gradients + here->offset, whole->gradients + there->offset,
                          here->count * sizeof(float));
    }
  }
}

static void assert_tied_sum(const model *first, const model *last, const model *whole) {
  const model_parameter *a = find(first, "embedding.weight"), *b = find(last, "embedding.weight");
  const model_parameter *both = find(whole, "embedding.weight");
  for (size_t i = 0; i < both->count; i++) {
    double sum = (double)first->gradients[a->offset + i] + (double)last->gradients[b->offset + i];
    double expected = (double)whole->gradients[both->offset + i];
    double apart = sum > expected ? sum - expected : expected - sum;
    assert_true(apart <= 1e-5 * (expected > 0 ? expected : -expected) + 1e-8);
  }
}

static void stages_begin_with_the_weights_of_the_whole(void **state) {
  (void)state;
  model whole;
  make_whole(&whole);
  for (int stage = 0; stage < 3; stage++) {
    model part;
    make_stage(stage, 3, 1, &part);
    for (int i = 0; i < part.parameter_count; i++) {
      const model_parameter *here = &part.parameters[i], *there = find(&whole, here->name);
      assert_memory_equal(part.weights + here->offset, whole.weights + there->offset,
                          here->count * sizeof(float));
    }
    model_destroy(&part);
  }
  model_destroy(&whole);
}

static void each_parameter_is_in_one_stage_but_for_the_embedding(void **state) {
  (void)state;
  model whole, parts[4];
  make_whole(&whole);
  size_t sum = 0;
  for (int stage = 0; stage < 4; stage++) {
    make_stage(stage, 4, 1, &parts[stage]);
    sum += parts[stage].weight_count;
  }
  assert_int_equal(sum, whole.weight_count + CLASSES * CHANNELS);
  assert_true(is_tied(&parts[0].parameters[parts[0].parameter_count - 1]));
  assert_true(is_tied(&parts[3].parameters[0]));
  for (int stage = 0; stage < 4; stage++) {
    model_destroy(&parts[stage]);
  }
  model_destroy(&whole);
}

static void compare_stages(int stages) {
  uint8_t labels[ROWS];
  model whole, parts[4];
  make_whole(&whole);
  train_whole(&whole, 0);
  for (int i = 0; i < stages; i++) {
    make_stage(i, stages, 1, &parts[i]);
  }
  forward_stages(parts, stages, 0, 0, labels);
  assert_memory_equal(parts[stages - 1].activations[parts[stages - 1].layer_count],
                      whole.activations[whole.layer_count], ROWS * CLASSES * sizeof(float));
  backward_stages(parts, stages, 0, labels);
  for (int i = 0; i < stages; i++) {
    assert_gradients_of(&parts[i], &whole);
  }
  assert_tied_sum(&parts[0], &parts[stages - 1], &whole);
  for (int i = 0; i < stages; i++) {
    model_destroy(&parts[i]);
  }
  model_destroy(&whole);
}

static void stages_compute_the_bits_of_the_whole(void **state) {
  (void)state;
  for (int stages = 2; stages <= 4; stages++) {
    compare_stages(stages);
  }
}

static void batches_that_are_kept_do_not_disturb_each_other(void **state) {
  (void)state;
  uint8_t labels[2][ROWS];
  model whole, parts[2];
  make_whole(&whole);
  for (int i = 0; i < 2; i++) {
    make_stage(i, 2, 2, &parts[i]);
  }
  forward_stages(parts, 2, 0, 1, labels[0]);
  forward_stages(parts, 2, 1, 2, labels[1]);
  for (int batch = 0; batch < 2; batch++) {
    train_whole(&whole, batch + 1);
    backward_stages(parts, 2, batch, labels[batch]);
    assert_gradients_of(&parts[0], &whole);
    assert_gradients_of(&parts[1], &whole);
    assert_tied_sum(&parts[0], &parts[1], &whole);
  }
  model_destroy(&parts[0]);
  model_destroy(&parts[1]);
  model_destroy(&whole);
}

static model_part part_of(int stages, int rank, int size, int batches) {
  peers ranks = {.rank = rank, .size = size};
  return pipeline_part(stages, &ranks, batches);
}

static void a_stage_keeps_as_many_batches_as_stages_are_left(void **state) {
  (void)state;
  for (int stage = 0; stage < 4; stage++) {
    assert_int_equal(part_of(4, stage, 4, 64).kept, 4 - stage);
    assert_int_equal(part_of(4, 2 * stage + 1, 8, 64).stage, stage);
    assert_true(part_of(4, stage, 4, 2).kept <= 2);
  }
  assert_int_equal(part_of(1, 3, 4, 64).kept, 1);
  model one, two;
  make_stage(1, 2, 1, &one);
  make_stage(1, 2, 2, &two);
  size_t more = model_activation_bytes(&two) - model_activation_bytes(&one), sum = 0;
  for (int i = 0; i < one.layer_count; i++) {
    sum += layer_shape_count(one.layers[i].out);
  }
  assert_int_equal(more, (sum + CONTEXT * CHANNELS) * WINDOWS * sizeof(float));
  model_destroy(&one);
  model_destroy(&two);
}

static void what_cannot_be_cut_is_refused(void **state) {
  (void)state;
  model net;
  model_part five = {0, 5, 1}, two = {0, 2, 1};
  assert_int_equal(
      model_create_part(backend_cpu(), "gpt-nano", window, CLASSES, WINDOWS, five, &net), -1);
  assert_int_equal(
      model_create_part(backend_cpu(), "cnn", (layer_shape){1, 28, 28}, 10, 1, two, &net), -1);
  assert_int_equal(model_blocks("gpt-nano"), 4);
  assert_int_equal(model_blocks("mlp"), 0);
  assert_int_equal(model_blocks("none"), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stages_begin_with_the_weights_of_the_whole),
    cmocka_unit_test(each_parameter_is_in_one_stage_but_for_the_embedding),
    cmocka_unit_test(stages_compute_the_bits_of_the_whole),
    cmocka_unit_test(batches_that_are_kept_do_not_disturb_each_other),
    cmocka_unit_test(a_stage_keeps_as_many_batches_as_stages_are_left),
    cmocka_unit_test(what_cannot_be_cut_is_refused),
};
RUN_TESTS(tests)
