/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>

#include "trainer/train_cpu.h"
#include "trainer/train_math.h"
#include "trainer/train_optimizer.h"

/* --------------------------------------------------------------------- steps */

/* What a step touches, of vectors that do not overlap. */
typedef struct span {
  float *restrict weights;
  const float *restrict gradients;
  float *restrict first;
  float *restrict second;
} span;

static span span_of(const weight_span *of) {
  return (span){of->weights, of->gradients, of->first, of->second};
}

void cpu_step_sgd(const weight_span *of) {
  span at = span_of(of);
  for (size_t i = 0; i < of->count; i++) {
    at.first[i] = of->momentum * at.first[i] + at.gradients[i];
    at.weights[i] -= of->rate * at.first[i];
  }
}

static void adam_moments(const weight_span *of) {
  span at = span_of(of);
  for (size_t i = 0; i < of->count; i++) {
    float gradient = at.gradients[i];
    at.first[i] = ADAM_BETA1 * at.first[i] + (1.0f - ADAM_BETA1) * gradient;
    at.second[i] = ADAM_BETA2 * at.second[i] + (1.0f - ADAM_BETA2) * gradient * gradient;
  }
}

void cpu_step_adam(const weight_span *of) {
  span at = span_of(of);
  float rate = of->rate * of->first_factor;
  adam_moments(of);
  for (size_t i = 0; i < of->count; i++) {
    at.weights[i] -= rate * at.first[i] / (sqrtf(of->second_factor * at.second[i]) + ADAM_EPSILON);
  }
}

void cpu_step_adamw(const weight_span *of) {
  float keep = 1.0f - of->rate * of->decay;
  for (size_t i = 0; i < of->count; i++) {
    of->weights[i] *= keep;
  }
  cpu_step_adam(of);
}

void cpu_step_frozen(const weight_span *of) {
  span at = span_of(of);
  float keep = 1.0f - of->rate * of->decay;
  for (size_t i = 0; i < of->count; i++) {
    float deviation = sqrtf(of->second_factor * at.second[i]) + ADAM_EPSILON;
    float step = of->first_factor * at.gradients[i] / deviation;
    step = step < 1.0f ? step : 1.0f;
    step = step > -1.0f ? step : -1.0f;
    at.first[i] = at.gradients[i];
    at.weights[i] = at.weights[i] * keep - of->rate * step;
  }
}

void cpu_step_lars(const weight_span *of) {
  span at = span_of(of);
  for (size_t i = 0; i < of->count; i++) {
    float step = of->trust * (at.gradients[i] + of->decay * at.weights[i]);
    at.first[i] = of->momentum * at.first[i] + step;
    at.weights[i] -= of->rate * at.first[i];
  }
}

static inline float lamb_direction(const weight_span *of, span at, size_t i) {
  return of->first_factor * at.first[i] / (sqrtf(of->second_factor * at.second[i]) + ADAM_EPSILON) +
         of->decay * at.weights[i];
}

void cpu_lamb_moments(const weight_span *of) {
  adam_moments(of);
}

void cpu_step_lamb(const weight_span *of) {
  span at = span_of(of);
  float trust = of->rate * of->trust;
  for (size_t i = 0; i < of->count; i++) {
    at.weights[i] -= trust * lamb_direction(of, at, i);
  }
}

/* --------------------------------------------------------------------- norms */

static size_t block_at(size_t at, size_t count) {
  return count - at < OPTIMIZER_BLOCK ? count - at : OPTIMIZER_BLOCK;
}

void cpu_squares(const float *values, size_t count, double *sums) {
  for (size_t at = 0; at < count; at += OPTIMIZER_BLOCK) {
    *sums++ = math_dot(values + at, values + at, block_at(at, count));
  }
}

void cpu_lamb_squares(const weight_span *of, double *sums) {
  float directions[OPTIMIZER_BLOCK];
  span at = span_of(of);
  for (size_t first = 0; first < of->count; first += OPTIMIZER_BLOCK) {
    size_t count = block_at(first, of->count);
    for (size_t i = 0; i < count; i++) {
      directions[i] = lamb_direction(of, at, first + i);
    }
    *sums++ = math_dot(directions, directions, count);
  }
}
