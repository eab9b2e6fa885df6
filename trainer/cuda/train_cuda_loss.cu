/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Softmax cross-entropy, and how many rows are right. */

#include <stdlib.h>

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

typedef struct loss_args {
  train_values logits, delta;
  float scale; /* of delta */
  const uint8_t *labels;
  float *losses; /* [rows] */
  uint32_t *right;
  uint64_t rows, classes;
} loss_args;

/* A warp for each row; moved by the largest logit, so that exp cannot overflow. */
LCOMM_KERNEL(loss_rows, loss_args) {
  float share = 1.0f / (float)a.rows;
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    train_values logits = train_from(a.logits, row * a.classes);
    float largest = train_get(logits, 0), sum = 0.0f;
    for (uint64_t i = lcomm_lane(); i < a.classes; i += LCOMM_WARP) {
      float logit = train_get(logits, i);
      largest = logit > largest ? logit : largest;
    }
    largest = train_warp_max(largest);
    for (uint64_t i = lcomm_lane(); i < a.classes; i += LCOMM_WARP) {
      sum += expf(train_get(logits, i) - largest);
    }
    float total = largest + logf(train_warp_sum(sum));
    if (lcomm_lane() == 0) {
      a.losses[row] = total - train_get(logits, a.labels[row]);
    }
    for (uint64_t i = lcomm_lane(); a.delta.at && i < a.classes; i += LCOMM_WARP) {
      float p = share * expf(train_get(logits, i) - total);
      p = i == a.labels[row] ? p - share : p;
      train_put(a.delta, row * a.classes + i, a.scale * p);
    }
  }
}

LCOMM_KERNEL(count_right, loss_args) {
  for (TRAIN_EACH(row, a.rows)) {
    train_values logits = train_from(a.logits, row * a.classes);
    uint64_t best = 0;
    for (uint64_t i = 1; i < a.classes; i++) {
      best = train_get(logits, i) > train_get(logits, best) ? i : best;
    }
    if (best == a.labels[row]) {
      lcomm_atomic_add(a.right, 1);
    }
  }
}

/* The scratch holds what goes with rows: losses, or one count, and the labels behind them. */
static int begin(loss_args *args, const uint8_t *labels) {
  size_t numbers = (size_t)args->rows * sizeof(float);
  uint8_t *scratch = (uint8_t *)train_cuda_scratch(numbers + (size_t)args->rows);
  if (!scratch) {
    return -1;
  }
  args->losses = (float *)scratch;
  args->right = (uint32_t *)scratch;
  args->labels = scratch + numbers;
  train_cuda_write(scratch + numbers, labels, (size_t)args->rows);
  return 0;
}

static loss_args loss_of(const element *logits, int rows, int classes) {
  loss_args made = {};
  made.logits = train_elements(logits);
  made.rows = (uint64_t)rows;
  made.classes = (uint64_t)classes;
  return made;
}

/* Not a number where nothing could be computed: a training ends by it. */
double train_cuda_loss(const element *logits, const uint8_t *labels, int rows, int classes,
                       float scale, element *delta) {
  loss_args args = loss_of(logits, rows, classes);
  args.scale = scale;
  args.delta = train_elements(delta);
  float *losses = (float *)malloc((size_t)rows * sizeof(float));
  double sum = 0.0;
  if (!losses || begin(&args, labels) != 0) {
    free(losses);
    return NAN;
  }
  TRAIN_LAUNCH_WARPS(loss_rows, args.rows, args);
  train_cuda_read(losses, args.losses, (size_t)rows * sizeof(float));
  for (int i = 0; i < rows; i++) {
    sum += (double)losses[i];
  }
  free(losses);
  return train_cuda.error ? (double)NAN : sum;
}

int train_cuda_correct(const element *logits, const uint8_t *labels, int rows, int classes) {
  loss_args args = loss_of(logits, rows, classes);
  uint32_t right = 0;
  if (begin(&args, labels) != 0) {
    return 0;
  }
  train_cuda_clear(args.right, sizeof right);
  TRAIN_LAUNCH(count_right, args.rows, args);
  train_cuda_read(&right, args.right, sizeof right);
  return (int)right;
}
