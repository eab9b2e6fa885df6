/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_OPTIMIZER_H
#define TRAINER_TRAIN_OPTIMIZER_H

#include <stddef.h>
#include <stdint.h>

/* SGD with momentum, Adam, and the schedule of the learning rate.
 * Only + - * / and sqrt, which every processor rounds alike, so equal
 * gradients keep replicas equal even on different machines. */

typedef enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADAM } optimizer_kind;

typedef struct optimizer {
  optimizer_kind kind;
  float momentum;
  size_t count;
  float *first;         /* [count], velocity, or mean of gradients */
  float *second;        /* [count], Adam only: mean of squared gradients */
  double first_remains; /* Adam only: beta1 to the power of the steps taken */
  double second_remains;
} optimizer;

/* Returns 0, or -1 without memory. `momentum` is used by SGD. */
int optimizer_create(optimizer_kind kind, size_t count, float momentum, optimizer *made);
void optimizer_destroy(optimizer *self);

/* One step of `count` weights against their gradients. */
void optimizer_step(optimizer *self, float *weights, const float *gradients, float rate);

/* Learning rate of step 0 .. steps-1: a linear rise over the first twentieth
 * of the run, then a smooth fall to zero (the shape of a half cosine). */
float optimizer_rate(float peak, uint64_t step, uint64_t steps);

#endif
