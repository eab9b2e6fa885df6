/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>

#include "trainer/train_model.h"

static int index_of_largest(const float *values, int count) {
  int best = 0;
  for (int i = 1; i < count; i++) {
    if (values[i] > values[best]) {
      best = i;
    }
  }
  return best;
}

/* log(sum(exp(logit))), moved by the largest so that exp cannot overflow */
static float log_sum_exp(const float *logits, int classes) {
  float largest = logits[index_of_largest(logits, classes)];
  float sum = expf(logits[0] - largest);
  for (int i = 1; i < classes; i++) {
    sum += expf(logits[i] - largest);
  }
  return largest + logf(sum);
}

double loss_cross_entropy(const float *logits, const uint8_t *labels, int rows, int classes,
                          float *delta) {
  double loss = 0.0;
  float share = 1.0f / (float)rows;
  for (int at = 0; at < rows; at++) {
    const float *row = logits + (long)at * classes;
    float total = log_sum_exp(row, classes);
    loss += (double)(total - row[labels[at]]);
    if (!delta) {
      continue;
    }
    float *out = delta + (long)at * classes;
    for (int i = 0; i < classes; i++) {
      out[i] = share * expf(row[i] - total);
    }
    out[labels[at]] -= share;
  }
  return loss;
}

int loss_count_correct(const float *logits, const uint8_t *labels, int rows, int classes) {
  int correct = 0;
  for (int at = 0; at < rows; at++) {
    correct += index_of_largest(logits + (long)at * classes, classes) == labels[at];
  }
  return correct;
}
