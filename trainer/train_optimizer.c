/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_math.h"

#define BETA1 0.9f
#define BETA2 0.999f
#define EPSILON 1e-8f
#define LARS_TRUST 0.001

static const char *const names[] = {
    [OPTIMIZER_SGD] = "sgd",   [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_ADAMW] = "adamw",
    [OPTIMIZER_LARS] = "lars", [OPTIMIZER_LAMB] = "lamb",
};

const char *optimizer_name(optimizer_kind kind) {
  return names[kind];
}

optimizer_kind optimizer_find(const char *name) {
  int kind = 0;
  while (kind < OPTIMIZER_COUNT && strcmp(names[kind], name) != 0) {
    kind++;
  }
  return (optimizer_kind)kind;
}

bool optimizer_has_second(optimizer_kind kind) {
  return kind == OPTIMIZER_ADAM || kind == OPTIMIZER_ADAMW || kind == OPTIMIZER_LAMB;
}

bool optimizer_decays(optimizer_kind kind) {
  return kind == OPTIMIZER_ADAMW || kind == OPTIMIZER_LARS || kind == OPTIMIZER_LAMB;
}

/* -------------------------------------------------------------------- memory */

int optimizer_create(optimizer_kind kind, size_t count, float momentum, optimizer *made) {
  memset(made, 0, sizeof *made);
  made->kind = kind;
  made->count = count;
  made->momentum = momentum;
  made->first_remains = 1.0;
  made->second_remains = 1.0;
  made->first = calloc(count, sizeof(float));
  if (optimizer_has_second(kind)) {
    made->second = calloc(count, sizeof(float));
  }
  const optimizer_part whole = {0, count, true};
  if (made->first && (made->second || !optimizer_has_second(kind)) &&
      optimizer_divide(made, &whole, 1, 0.0f) == 0) {
    return 0;
  }
  optimizer_destroy(made);
  return -1;
}

void optimizer_destroy(optimizer *self) {
  free(self->first);
  free(self->second);
  free(self->parts);
  memset(self, 0, sizeof *self);
}

int optimizer_divide(optimizer *self, const optimizer_part *parts, int part_count, float decay) {
  size_t size = (size_t)part_count * sizeof *parts;
  optimizer_part *copy = malloc(size);
  if (!copy) {
    return -1;
  }
  memcpy(copy, parts, size);
  free(self->parts);
  self->parts = copy;
  self->part_count = part_count;
  self->decay = decay;
  return 0;
}

/* --------------------------------------------------------------------- steps
 * Each of one part: the decay and factors are those of its kind. */

typedef struct span {
  size_t count;
  float *restrict weights;
  const float *restrict gradients;
  float *restrict first;
  float *restrict second;
  float decay; /* 0 of gains and biases */
  bool matrix;
} span;

static span span_of(const optimizer *self, const optimizer_part *part, float *weights,
                    const float *gradients) {
  return (span){.count = part->count,
                .weights = weights + part->offset,
                .gradients = gradients + part->offset,
                .first = self->first + part->offset,
                .second = self->second ? self->second + part->offset : NULL,
                .decay = part->matrix ? self->decay : 0.0f,
                .matrix = part->matrix};
}

static void sgd_step(optimizer *self, span of, float rate) {
  for (size_t i = 0; i < of.count; i++) {
    of.first[i] = self->momentum * of.first[i] + of.gradients[i];
    of.weights[i] -= rate * of.first[i];
  }
}

static void adam_moments(span of) {
  for (size_t i = 0; i < of.count; i++) {
    float gradient = of.gradients[i];
    of.first[i] = BETA1 * of.first[i] + (1.0f - BETA1) * gradient;
    of.second[i] = BETA2 * of.second[i] + (1.0f - BETA2) * gradient * gradient;
  }
}

/* What the young means lack: they begin at 0. */
typedef struct correction {
  float first, second;
} correction;

static correction correction_of(const optimizer *self) {
  return (correction){(float)(1.0 / (1.0 - self->first_remains)),
                      (float)(1.0 / (1.0 - self->second_remains))};
}

static void adam_step(optimizer *self, span of, float rate) {
  correction by = correction_of(self);
  adam_moments(of);
  for (size_t i = 0; i < of.count; i++) {
    of.weights[i] -= rate * by.first * of.first[i] / (sqrtf(by.second * of.second[i]) + EPSILON);
  }
}

static void adamw_step(optimizer *self, span of, float rate) {
  float keep = 1.0f - rate * of.decay;
  for (size_t i = 0; i < of.count; i++) {
    of.weights[i] *= keep;
  }
  adam_step(self, of, rate);
}

static double norm_of(const float *values, size_t count) {
  return sqrt(math_dot(values, values, count));
}

/* Rates of LARS are far too large for gains and biases, which take the factor of the matrix before
 * them: mostly that of their layer. A matrix of zeros has no norm to go by. */
static float lars_trust(const optimizer *self, span of) {
  double weight = norm_of(of.weights, of.count), gradient = norm_of(of.gradients, of.count);
  double below = gradient + (double)of.decay * weight;
  if (!of.matrix) {
    return self->trust;
  }
  return weight > 0.0 && below > 0.0 ? (float)(LARS_TRUST * weight / below) : (float)LARS_TRUST;
}

static void lars_step(optimizer *self, span of, float rate) {
  float trust = lars_trust(self, of);
  self->trust = trust;
  for (size_t i = 0; i < of.count; i++) {
    float step = trust * (of.gradients[i] + of.decay * of.weights[i]);
    of.first[i] = self->momentum * of.first[i] + step;
    of.weights[i] -= rate * of.first[i];
  }
}

static inline float lamb_direction(span of, correction by, size_t i) {
  return by.first * of.first[i] / (sqrtf(by.second * of.second[i]) + EPSILON) +
         of.decay * of.weights[i];
}

static float lamb_trust(span of, correction by) {
  double weight = norm_of(of.weights, of.count), square = 0.0;
  for (size_t i = 0; i < of.count; i++) {
    double direction = (double)lamb_direction(of, by, i);
    square += direction * direction;
  }
  return of.matrix && weight > 0.0 && square > 0.0 ? (float)(weight / sqrt(square)) : 1.0f;
}

static void lamb_step(optimizer *self, span of, float rate) {
  correction by = correction_of(self);
  adam_moments(of);
  float trust = rate * lamb_trust(of, by);
  for (size_t i = 0; i < of.count; i++) {
    of.weights[i] -= trust * lamb_direction(of, by, i);
  }
}

static void (*const steps[])(optimizer *self, span of, float rate) = {
    [OPTIMIZER_SGD] = sgd_step,   [OPTIMIZER_ADAM] = adam_step, [OPTIMIZER_ADAMW] = adamw_step,
    [OPTIMIZER_LARS] = lars_step, [OPTIMIZER_LAMB] = lamb_step,
};

static void count_step(optimizer *self) {
  self->first_remains *= BETA1;
  self->second_remains *= BETA2;
}

/* Both products end at 0 after some thousand steps, or some hundred thousand. */
void optimizer_set_steps(optimizer *self, uint64_t count) {
  self->first_remains = 1.0;
  self->second_remains = 1.0;
  for (uint64_t i = 0; i < count && self->second_remains > 0.0; i++) {
    count_step(self);
  }
}

void optimizer_step(optimizer *self, float *weights, const float *gradients, float rate) {
  count_step(self);
  self->trust = (float)LARS_TRUST;
  for (int i = 0; i < self->part_count; i++) {
    steps[self->kind](self, span_of(self, &self->parts[i], weights, gradients), rate);
  }
}

double optimizer_clip(float *gradients, size_t count, float most) {
  double norm = norm_of(gradients, count);
  if (norm > (double)most) {
    float scale = (float)((double)most / norm);
    for (size_t i = 0; i < count; i++) {
      gradients[i] *= scale;
    }
  }
  return norm;
}
