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
#include "trainer/train_data.h"
#include "trainer/train_model.h"
#include "trainer/train_optimizer.h"

enum { SIZE = SHAPES_SIDE * SHAPES_SIDE };

static void same_seed_and_index_give_the_same_image(void **state) {
  (void)state;
  uint8_t first[SIZE], second[SIZE];
  for (uint64_t index = 0; index < 50; index++) {
    assert_int_equal(shapes_draw(7, index, first), shapes_draw(7, index, second));
    assert_memory_equal(first, second, SIZE);
  }
}

static void other_seeds_and_indices_give_other_images(void **state) {
  (void)state;
  uint8_t first[SIZE], second[SIZE];
  for (uint64_t index = 0; index < 50; index++) {
    shapes_draw(7, index, first);
    shapes_draw(8, index, second);
    assert_memory_not_equal(first, second, SIZE);
    shapes_draw(7, index + SHAPES_CLASSES, second);
    assert_memory_not_equal(first, second, SIZE);
  }
}

static void built_in_sets_are_balanced_and_repeatable(void **state) {
  (void)state;
  dataset first, second;
  failure why = {0};
  assert_int_equal(dataset_load(DATASET_BUILT_IN, 3, &first, &why), 0);
  assert_int_equal(dataset_load(DATASET_BUILT_IN, 3, &second, &why), 0);
  assert_true(first.built_in);
  assert_true(dataset_hash(&first) == dataset_hash(&second));
  dataset_free(&second);
  assert_int_equal(dataset_load(DATASET_BUILT_IN, 4, &second, &why), 0);
  assert_true(dataset_hash(&first) != dataset_hash(&second));
  const image_set *sets[] = {&first.train, &first.test};
  for (int i = 0; i < 2; i++) {
    uint32_t seen[SHAPES_CLASSES] = {0};
    for (uint32_t k = 0; k < sets[i]->count; k++) {
      seen[sets[i]->labels[k]]++;
    }
    for (int label = 0; label < SHAPES_CLASSES; label++) {
      assert_int_equal(seen[label], sets[i]->count / SHAPES_CLASSES);
    }
  }
  assert_memory_not_equal(first.train.pixels, first.test.pixels, SIZE);
  dataset_limit(&first, 100);
  assert_int_equal(first.train.count, 100);
  dataset_limit(&first, 200);
  assert_int_equal(first.train.count, 100);
  dataset_free(&first);
  dataset_free(&second);
}

static void ignore(void *context, int first, int count) {
  (void)context;
  (void)first;
  (void)count;
}

enum { BATCH = 40, STEPS = 300, TESTED = 400 };

static void draw_batch(uint64_t first, float *images, uint8_t *labels) {
  uint8_t pixels[SIZE];
  for (uint64_t i = 0; i < BATCH; i++) {
    labels[i] = (uint8_t)shapes_draw(1, first + i, pixels);
    for (int k = 0; k < SIZE; k++) {
      images[i * SIZE + k] = ((float)pixels[k] - 80.0f) / 50.0f;
    }
  }
}

static int count_correct(model *net) {
  uint8_t labels[BATCH];
  int correct = 0;
  for (uint64_t first = 0; first < TESTED; first += BATCH) {
    draw_batch(1000000 + first, model_input(net), labels);
    correct += loss_count_correct(model_forward(net, BATCH), labels, BATCH, 10);
  }
  return correct;
}

/* Guessing is right once in ten times; a short training must be far better on
 * images it has not seen, but not perfect, or the images teach nothing. */
static void images_can_be_learned_but_not_at_once(void **state) {
  (void)state;
  model net;
  optimizer sgd;
  uint8_t labels[BATCH];
  assert_int_equal(model_create("cnn", (layer_shape){1, SHAPES_SIDE, SHAPES_SIDE}, 10, BATCH, &net),
                   0);
  assert_int_equal(optimizer_create(OPTIMIZER_SGD, net.weight_count, 0.9f, &sgd), 0);
  model_draw_weights(&net, 1);
  for (uint64_t step = 0; step < STEPS; step++) {
    draw_batch(step * BATCH, model_input(&net), labels);
    const float *logits = model_forward(&net, BATCH);
    loss_cross_entropy(logits, labels, BATCH, 10, model_logits_delta(&net));
    model_backward(&net, BATCH, ignore, NULL);
    optimizer_step(&sgd, net.weights, net.gradients, optimizer_rate(0.05f, step, STEPS));
  }
  int correct = count_correct(&net);
  assert_in_range(correct, TESTED / 2, TESTED * 98 / 100);
  optimizer_destroy(&sgd);
  model_destroy(&net);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(same_seed_and_index_give_the_same_image),
    cmocka_unit_test(other_seeds_and_indices_give_other_images),
    cmocka_unit_test(built_in_sets_are_balanced_and_repeatable),
    cmocka_unit_test(images_can_be_learned_but_not_at_once),
};
RUN_TESTS(tests)
