/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/loss.h"

#include <math.h>

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

double loss_cross_entropy(const float *logits, const uint8_t *labels, int batch, int classes,
                          float *delta) {
  double loss = 0.0;
  float share = 1.0f / (float)batch;
  for (int image = 0; image < batch; image++) {
    const float *row = logits + (long)image * classes;
    float total = log_sum_exp(row, classes);
    loss += (double)(total - row[labels[image]]);
    if (!delta) {
      continue;
    }
    float *out = delta + (long)image * classes;
    for (int i = 0; i < classes; i++) {
      out[i] = share * expf(row[i] - total);
    }
    out[labels[image]] -= share;
  }
  return loss;
}

int loss_count_correct(const float *logits, const uint8_t *labels, int batch, int classes) {
  int correct = 0;
  for (int image = 0; image < batch; image++) {
    correct += index_of_largest(logits + (long)image * classes, classes) == labels[image];
  }
  return correct;
}
