/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BETA1 0.9f
#define BETA2 0.999f
#define EPSILON 1e-8f

enum { WARMUP_PARTS = 20 };

int optimizer_create(optimizer_kind kind, size_t count, float momentum, optimizer *made) {
  memset(made, 0, sizeof *made);
  made->kind = kind;
  made->count = count;
  made->momentum = momentum;
  made->first_remains = 1.0;
  made->second_remains = 1.0;
  made->first = calloc(count, sizeof(float));
  if (kind == OPTIMIZER_ADAM) {
    made->second = calloc(count, sizeof(float));
  }
  if (made->first && (kind != OPTIMIZER_ADAM || made->second)) {
    return 0;
  }
  optimizer_destroy(made);
  return -1;
}

void optimizer_destroy(optimizer *self) {
  free(self->first);
  free(self->second);
  memset(self, 0, sizeof *self);
}

static void sgd_step(const optimizer *self, float *restrict weights,
                     const float *restrict gradients, float rate) {
  float *restrict velocity = self->first;
  for (size_t i = 0; i < self->count; i++) {
    velocity[i] = self->momentum * velocity[i] + gradients[i];
    weights[i] -= rate * velocity[i];
  }
}

static void adam_step(optimizer *self, float *restrict weights, const float *restrict gradients,
                      float rate) {
  self->first_remains *= BETA1;
  self->second_remains *= BETA2;
  float first_scale = (float)(1.0 / (1.0 - self->first_remains));
  float second_scale = (float)(1.0 / (1.0 - self->second_remains));
  float *restrict first = self->first;
  float *restrict second = self->second;
  for (size_t i = 0; i < self->count; i++) {
    first[i] = BETA1 * first[i] + (1.0f - BETA1) * gradients[i];
    second[i] = BETA2 * second[i] + (1.0f - BETA2) * gradients[i] * gradients[i];
    weights[i] -= rate * first_scale * first[i] / (sqrtf(second_scale * second[i]) + EPSILON);
  }
}

void optimizer_step(optimizer *self, float *weights, const float *gradients, float rate) {
  if (self->kind == OPTIMIZER_ADAM) {
    adam_step(self, weights, gradients, rate);
  } else {
    sgd_step(self, weights, gradients, rate);
  }
}

float optimizer_rate(float peak, uint64_t step, uint64_t steps) {
  uint64_t warmup = steps / WARMUP_PARTS;
  if (step < warmup) {
    return peak * (float)((double)(step + 1) / (double)(warmup + 1));
  }
  if (step >= steps) {
    return 0.0f;
  }
  double t = (double)(step - warmup) / (double)(steps - warmup);
  return peak * (float)(1.0 - t * t * (3.0 - 2.0 * t));
}
