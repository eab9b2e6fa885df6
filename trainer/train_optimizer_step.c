/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <string.h>

#include "trainer/train_math.h"
#include "trainer/train_optimizer.h"

#define BETA1 0.9f
#define BETA2 0.999f
#define EPSILON 1e-8f
#define LARS_TRUST 0.001

/* --------------------------------------------------------------------- norms
 * Two vectors at once: sums[0][block] of the first, sums[1][block] of the second. */

static void sum_block(optimizer *self, int vector, const optimizer_piece *piece, size_t at,
                      const float *values) {
  size_t left = piece->count - at, count = left < OPTIMIZER_BLOCK ? left : OPTIMIZER_BLOCK;
  size_t block = piece->block + at / OPTIMIZER_BLOCK;
  self->sums[(size_t)vector * self->block_count + block] = math_dot(values, values, count);
}

static void sum_blocks(optimizer *self, int vector, const float *values) {
  for (int i = 0; i < self->piece_count; i++) {
    const optimizer_piece *piece = &self->pieces[i];
    for (size_t at = 0; at < piece->count; at += OPTIMIZER_BLOCK) {
      sum_block(self, vector, piece, at, values + piece->offset + at);
    }
  }
}

static void begin_sums(optimizer *self) {
  memset(self->sums, 0, 2 * self->block_count * sizeof *self->sums);
}

static void share_sums(optimizer *self, int vectors) {
  if (self->share) {
    self->share(self->context, self->sums, (size_t)vectors * self->block_count);
  }
}

/* Of `blocks` blocks from `first` on, of one of the vectors. */
static double norm_of(const optimizer *self, int vector, size_t first, size_t blocks) {
  const double *sums = self->sums + (size_t)vector * self->block_count + first;
  double sum = 0.0;
  for (size_t i = 0; i < blocks; i++) {
    sum += sums[i];
  }
  return sqrt(sum);
}

double optimizer_clip(optimizer *self, float *gradients, float most) {
  begin_sums(self);
  sum_blocks(self, 0, gradients);
  share_sums(self, 1);
  double norm = norm_of(self, 0, 0, self->block_count);
  if (norm > (double)most) {
    float scale = (float)((double)most / norm);
    for (size_t i = 0; i < self->count; i++) {
      gradients[i] *= scale;
    }
  }
  return norm;
}

/* --------------------------------------------------------------------- steps
 * Each of one piece: the decay and factors are those of its part. */

typedef struct span {
  size_t count;
  float *restrict weights;
  const float *restrict gradients;
  float *restrict first;
  float *restrict second;
  float decay; /* 0 of gains and biases */
  float trust;
} span;

static span span_of(const optimizer *self, const optimizer_piece *piece, float *weights,
                    const float *gradients) {
  return (span){.count = piece->count,
                .weights = weights + piece->offset,
                .gradients = gradients + piece->offset,
                .first = self->first + piece->offset,
                .second = self->second ? self->second + piece->offset : NULL,
                .decay = self->parts[piece->part].matrix ? self->decay : 0.0f,
                .trust = self->trusts[piece->part]};
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

static void lars_step(optimizer *self, span of, float rate) {
  for (size_t i = 0; i < of.count; i++) {
    float step = of.trust * (of.gradients[i] + of.decay * of.weights[i]);
    of.first[i] = self->momentum * of.first[i] + step;
    of.weights[i] -= rate * of.first[i];
  }
}

static inline float lamb_direction(span of, correction by, size_t i) {
  return by.first * of.first[i] / (sqrtf(by.second * of.second[i]) + EPSILON) +
         of.decay * of.weights[i];
}

/* The moments were made by lamb_trusts(). */
static void lamb_step(optimizer *self, span of, float rate) {
  correction by = correction_of(self);
  float trust = rate * of.trust;
  for (size_t i = 0; i < of.count; i++) {
    of.weights[i] -= trust * lamb_direction(of, by, i);
  }
}

/* -------------------------------------------------------------------- trusts
 * What lars and lamb multiply the step of each part by. */

static void find_trusts(optimizer *self, float (*trust)(const optimizer *self, int part,
                                                        double weight, double other)) {
  share_sums(self, 2);
  for (int i = 0, block = 0; i < self->part_count; i++) {
    size_t blocks = optimizer_blocks(self->parts[i].count);
    self->trusts[i] = trust(self, i, norm_of(self, 0, (size_t)block, blocks),
                            norm_of(self, 1, (size_t)block, blocks));
    block += (int)blocks;
  }
}

/* Rates of LARS are far too large for gains and biases, which take the factor of the matrix before
 * them: mostly that of their layer. A matrix of zeros has no norm to go by. */
static float lars_trust(const optimizer *self, int part, double weight, double gradient) {
  double below = gradient + (double)self->decay * weight;
  if (!self->parts[part].matrix) {
    return part > 0 ? self->trusts[part - 1] : (float)LARS_TRUST;
  }
  return weight > 0.0 && below > 0.0 ? (float)(LARS_TRUST * weight / below) : (float)LARS_TRUST;
}

static void lars_trusts(optimizer *self, float *weights, const float *gradients) {
  begin_sums(self);
  sum_blocks(self, 0, weights);
  sum_blocks(self, 1, gradients);
  find_trusts(self, lars_trust);
}

static float lamb_trust(const optimizer *self, int part, double weight, double direction) {
  bool known = self->parts[part].matrix && weight > 0.0 && direction > 0.0;
  return known ? (float)(weight / direction) : 1.0f;
}

static void lamb_directions(optimizer *self, const optimizer_piece *piece, span of) {
  correction by = correction_of(self);
  float directions[OPTIMIZER_BLOCK];
  for (size_t at = 0; at < of.count; at += OPTIMIZER_BLOCK) {
    for (size_t i = 0; i < OPTIMIZER_BLOCK && at + i < of.count; i++) {
      directions[i] = lamb_direction(of, by, at + i);
    }
    sum_block(self, 1, piece, at, directions);
  }
}

static void lamb_trusts(optimizer *self, float *weights, const float *gradients) {
  begin_sums(self);
  sum_blocks(self, 0, weights);
  for (int i = 0; i < self->piece_count; i++) {
    span of = span_of(self, &self->pieces[i], weights, gradients);
    adam_moments(of);
    lamb_directions(self, &self->pieces[i], of);
  }
  find_trusts(self, lamb_trust);
}

/* ------------------------------------------------------------------ one step */

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
  if (self->kind == OPTIMIZER_LARS) {
    lars_trusts(self, weights, gradients);
  } else if (self->kind == OPTIMIZER_LAMB) {
    lamb_trusts(self, weights, gradients);
  }
  for (int i = 0; i < self->piece_count; i++) {
    steps[self->kind](self, span_of(self, &self->pieces[i], weights, gradients), rate);
  }
}
