/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_task.h"

#include <string.h>

#include "trainer/train_random.h"

/* Epoch e draws its order from stream ORDER_STREAM + e of the random numbers, and the shift of its
 * windows from SHIFT_STREAM + e; images and layers use the small ones. */
#define ORDER_STREAM ((uint64_t)1 << 40)
#define SHIFT_STREAM ((uint64_t)3 << 40)

struct task_kind {
  uint64_t (*hash)(const task *self);
  void (*train_batch)(const task *self, const uint32_t *numbers, int count, float *input,
                      uint8_t *labels);
  void (*test_batch)(const task *self, uint32_t first, int count, float *input, uint8_t *labels);
};

/* --------------------------------------------------------------------- images */

static uint64_t hash_images(const task *self) {
  return dataset_hash(&self->images);
}

static void train_images(const task *self, const uint32_t *numbers, int count, float *input,
                         uint8_t *labels) {
  dataset_batch(&self->images, &self->images.train, numbers, count, input, labels);
}

static void test_images(const task *self, uint32_t first, int count, float *input,
                        uint8_t *labels) {
  size_t size = layer_shape_count(self->sample);
  for (int i = 0; i < count; i++) {
    uint32_t number = first + (uint32_t)i;
    dataset_batch(&self->images, &self->images.test, &number, 1, input + (size_t)i * size,
                  labels + i);
  }
}

static const task_kind images_kind = {hash_images, train_images, test_images};

static int load_images(const char *place, uint64_t seed, task *made, failure *why) {
  if (dataset_load(place, seed, &made->images, why)) {
    return -1;
  }
  made->kind = &images_kind;
  made->sample = (layer_shape){1, made->images.train.height, made->images.train.width};
  made->labels = 1;
  made->classes = DATASET_CLASSES;
  made->train_count = made->images.train.count;
  made->test_count = made->images.test.count;
  return 0;
}

/* ----------------------------------------------------------------------- text */

static int context_of(const task *self) {
  return self->sample.height;
}

static uint64_t hash_text(const task *self) {
  return text_hash(&self->text);
}

/* Windows lie side by side. In each epoch they begin at other bytes, so that a byte is seen at all
 * positions. */
static void train_text(const task *self, const uint32_t *numbers, int count, float *input,
                       uint8_t *labels) {
  size_t context = (size_t)context_of(self);
  for (int i = 0; i < count; i++, input += context, labels += context) {
    text_window(&self->text.train, self->shift + numbers[i] * context, (int)context, input, labels);
  }
}

static void test_text(const task *self, uint32_t first, int count, float *input, uint8_t *labels) {
  size_t context = (size_t)context_of(self);
  for (int i = 0; i < count; i++, input += context, labels += context) {
    text_window(&self->text.test, (first + (size_t)i) * context, (int)context, input, labels);
  }
}

static const task_kind text_kind = {hash_text, train_text, test_text};

static int load_text(int context, const char *place, uint64_t seed, task *made, failure *why) {
  if (text_load(place, seed, &made->text, why)) {
    return -1;
  }
  made->kind = &text_kind;
  made->sample = (layer_shape){1, context, 1};
  made->labels = context;
  made->classes = TEXT_CLASSES;
  made->train_count = text_windows(&made->text.train, context);
  made->train_count -= made->train_count > 0; /* room for the shift */
  made->test_count = text_windows(&made->text.test, context);
  if (made->train_count > 0 && made->test_count > 0) {
    return 0;
  }
  return failure_set(why, EXIT_SETUP,
                     "%s has %zu bytes to train on and %zu to test on, too few for windows of %d; "
                     "give --data more text",
                     made->text.where, made->text.train.size, made->text.test.size, context);
}

/* ----------------------------------------------------------------------- both */

int task_load(int context, const char *place, uint64_t seed, task *made, failure *why) {
  memset(made, 0, sizeof *made);
  int result = context > 0 ? load_text(context, place, seed, made, why)
                           : load_images(place, seed, made, why);
  if (result) {
    task_free(made);
  }
  return result;
}

void task_free(task *self) {
  dataset_free(&self->images);
  text_free(&self->text);
  memset(self, 0, sizeof *self);
}

void task_limit(task *self, uint32_t count) {
  if (count < self->train_count) {
    self->train_count = count;
  }
}

uint64_t task_hash(const task *self) {
  return self->kind->hash(self);
}

bool task_is_text(const task *self) {
  return self->kind == &text_kind;
}

const char *task_samples(const task *self) {
  return task_is_text(self) ? "windows" : "images";
}

const char *task_where(const task *self) {
  if (self->images.built_in || self->text.built_in) {
    return DATASET_BUILT_IN;
  }
  return task_is_text(self) ? self->text.where : self->images.where;
}

void task_begin_epoch(task *self, uint64_t seed, int epoch, uint32_t *order) {
  random_stream random = random_begin(seed, ORDER_STREAM + (uint64_t)epoch);
  random_permutation(&random, order, self->train_count);
  if (task_is_text(self)) {
    random_stream shift = random_begin(seed, SHIFT_STREAM + (uint64_t)epoch);
    self->shift = random_below(&shift, (uint32_t)context_of(self));
  }
}

void task_train_batch(const task *self, const uint32_t *numbers, int count, float *input,
                      uint8_t *labels) {
  self->kind->train_batch(self, numbers, count, input, labels);
}

void task_test_batch(const task *self, uint32_t first, int count, float *input, uint8_t *labels) {
  self->kind->test_batch(self, first, count, input, labels);
}
