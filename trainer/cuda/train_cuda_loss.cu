/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Softmax cross-entropy, and how many rows are right. */

#include <stdlib.h>

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

typedef struct loss_args {
  const float *logits;
  const uint8_t *labels;
  float *losses; /* [rows] */
  float *delta;
  uint32_t *right;
  uint64_t rows, classes;
} loss_args;

/* A warp for each row; moved by the largest logit, so that exp cannot overflow. */
LCOMM_KERNEL(loss_rows, loss_args) {
  float share = 1.0f / (float)a.rows;
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    const float *logits = a.logits + row * a.classes;
    float largest = logits[0], sum = 0.0f;
    for (uint64_t i = lcomm_lane(); i < a.classes; i += LCOMM_WARP) {
      largest = logits[i] > largest ? logits[i] : largest;
    }
    largest = train_warp_max(largest);
    for (uint64_t i = lcomm_lane(); i < a.classes; i += LCOMM_WARP) {
      sum += expf(logits[i] - largest);
    }
    float total = largest + logf(train_warp_sum(sum));
    if (lcomm_lane() == 0) {
      a.losses[row] = total - logits[a.labels[row]];
    }
    for (uint64_t i = lcomm_lane(); a.delta && i < a.classes; i += LCOMM_WARP) {
      float p = share * expf(logits[i] - total);
      a.delta[row * a.classes + i] = i == a.labels[row] ? p - share : p;
    }
  }
}

LCOMM_KERNEL(count_right, loss_args) {
  for (TRAIN_EACH(row, a.rows)) {
    const float *logits = a.logits + row * a.classes;
    uint64_t best = 0;
    for (uint64_t i = 1; i < a.classes; i++) {
      best = logits[i] > logits[best] ? i : best;
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

/* Not a number where nothing could be computed: a training ends by it. */
double train_cuda_loss(const float *logits, const uint8_t *labels, int rows, int classes,
                       float *delta) {
  loss_args args = {logits, NULL, NULL, delta, NULL, (uint64_t)rows, (uint64_t)classes};
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

int train_cuda_correct(const float *logits, const uint8_t *labels, int rows, int classes) {
  loss_args args = {logits, NULL, NULL, NULL, NULL, (uint64_t)rows, (uint64_t)classes};
  uint32_t right = 0;
  if (begin(&args, labels) != 0) {
    return 0;
  }
  train_cuda_clear(args.right, sizeof right);
  TRAIN_LAUNCH(count_right, args.rows, args);
  train_cuda_read(&right, args.right, sizeof right);
  return (int)right;
}
