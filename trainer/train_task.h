/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_TASK_H
#define TRAINER_TRAIN_TASK_H

#include "trainer/train_data.h"
#include "trainer/train_layer.h"
#include "trainer/train_text.h"

/* What is learned: to tell images apart, or to predict the bytes of a text. Both come as samples,
 * images or windows of text, which are numbered; a sample has one label, or one at each position.
 */

typedef struct task_kind task_kind;

typedef struct task {
  const task_kind *kind;
  dataset images; /* of a task of images, else empty */
  text_data text; /* of a task of text, else empty */
  layer_shape sample;
  int labels; /* of a sample: 1, or one for each position */
  int classes;
  uint32_t train_count; /* samples to train on */
  uint32_t test_count;  /* and those that are held out */
  uint32_t shift;       /* of text: the first window of this epoch begins at this byte */
} task;

/* Load what a model learns from: `context` bytes of text at once, or images if it is 0. See
 * dataset_load() and text_load(). Returns 0, or -1 with `why`; then nothing is kept. */
int task_load(int context, const char *place, uint64_t seed, task *made, failure *why);
void task_free(task *self);

/* Keep only the first `count` samples for training. */
void task_limit(task *self, uint32_t count);

/* Equal on ranks that loaded the same. */
uint64_t task_hash(const task *self);

bool task_is_text(const task *self);

/* "images" or "windows" */
const char *task_samples(const task *self);

/* Where it was loaded from; "builtin" if it was made. */
const char *task_where(const task *self);

/* Before the first sample of an epoch: the order of the samples is drawn into
 * order[train_count], from the seed and the number of the epoch alone. */
void task_begin_epoch(task *self, uint64_t seed, int epoch, uint32_t *order);

/* Copy `count` samples to input[count][sample] and labels[count][labels]: those to train on of
 * these numbers, or those to test on from `first` on. */
void task_train_batch(const task *self, const uint32_t *numbers, int count, float *input,
                      uint8_t *labels);
void task_test_batch(const task *self, uint32_t first, int count, float *input, uint8_t *labels);

#endif
