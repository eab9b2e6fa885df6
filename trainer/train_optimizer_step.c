/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>

#include "trainer/train_optimizer.h"

#define LARS_TRUST 0.001

/* --------------------------------------------------------------------- norms
 * Two vectors at once: sums[0][block] of the first, sums[1][block] of the second. */

static double *sums_of(const optimizer *self, int vector, const optimizer_piece *piece) {
  return self->sums_there + (size_t)vector * self->block_count + piece->block;
}

static void sum_blocks(optimizer *self, int vector, const float *values) {
  for (int i = 0; i < self->piece_count; i++) {
    const optimizer_piece *piece = &self->pieces[i];
    self->on->squares(values + piece->offset, piece->count, sums_of(self, vector, piece));
  }
}

static void begin_sums(optimizer *self) {
  self->on->clear(self->sums_there, 2 * self->block_count * sizeof *self->sums);
}

static void share_sums(optimizer *self, int vectors) {
  size_t count = (size_t)vectors * self->block_count;
  self->on->read(self->sums, self->sums_there, count * sizeof *self->sums);
  if (self->share) {
    self->share(self->context, self->sums, count);
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
    self->on->scale(gradients, (float)((double)most / norm), self->count);
  }
  return norm;
}

/* --------------------------------------------------------------------- spans */

/* What the young means lack: they begin at 0. */
static float factor_of(double remains) {
  return (float)(1.0 / (1.0 - remains));
}

static weight_span span_of(const optimizer *self, const optimizer_piece *piece, float *weights,
                           const float *gradients, float rate) {
  return (weight_span){.count = piece->count,
                       .weights = weights + piece->offset,
                       .gradients = gradients + piece->offset,
                       .first = self->first + piece->offset,
                       .second = self->second ? self->second + piece->offset : NULL,
                       .rate = rate,
                       .momentum = self->momentum,
                       .decay = self->parts[piece->part].matrix ? self->decay : 0.0f,
                       .trust = self->trusts[piece->part],
                       .first_factor = factor_of(self->first_remains),
                       .second_factor = factor_of(self->second_remains)};
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

static void lamb_trusts(optimizer *self, float *weights, const float *gradients) {
  begin_sums(self);
  sum_blocks(self, 0, weights);
  for (int i = 0; i < self->piece_count; i++) {
    weight_span of = span_of(self, &self->pieces[i], weights, gradients, 0.0f);
    self->on->lamb_moments(&of);
    self->on->lamb_squares(&of, sums_of(self, 1, &self->pieces[i]));
  }
  find_trusts(self, lamb_trust);
}

/* ------------------------------------------------------------------ one step */

/* All products end at 0 after some thousand steps, or some hundred thousand. */
static double power_of(double beta, uint64_t steps) {
  double remains = 1.0;
  for (uint64_t i = 0; i < steps && remains > 0.0; i++) {
    remains *= beta;
  }
  return remains;
}

void optimizer_set_steps(optimizer *self, uint64_t steps, uint64_t frozen) {
  self->first_remains = power_of(ADAM_BETA1, steps);
  self->second_remains = power_of(ADAM_BETA2, steps - frozen);
  self->frozen = frozen;
}

void optimizer_step_frozen(optimizer *self, float *weights, const float *momentum, float rate) {
  self->first_remains *= ADAM_BETA1;
  self->frozen++;
  for (int i = 0; i < self->piece_count; i++) {
    weight_span of = span_of(self, &self->pieces[i], weights, momentum, rate);
    self->on->step_frozen(&of);
  }
}

void optimizer_step(optimizer *self, float *weights, const float *gradients, float rate) {
  self->first_remains *= ADAM_BETA1;
  self->second_remains *= ADAM_BETA2;
  if (self->kind == OPTIMIZER_LARS) {
    lars_trusts(self, weights, gradients);
  } else if (self->kind == OPTIMIZER_LAMB) {
    lamb_trusts(self, weights, gradients);
  }
  for (int i = 0; i < self->piece_count; i++) {
    weight_span of = span_of(self, &self->pieces[i], weights, gradients, rate);
    self->on->step[self->kind](&of);
  }
}
