/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_OPTIMIZER_H
#define TRAINER_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/train_backend.h"
#include "trainer/train_schedule.h"

/* What a step does to the weights. Only + - * / and sqrt in an order that is fixed, which every
 * processor rounds alike, so equal gradients keep replicas equal even on different machines.
 *
 *   g gradient, w weight, m and v what the optimiser remembers, r the learning rate, d the decay
 *
 *   sgd     m = momentum * m + g                            w -= r * m
 *   adam    m, v: means of g and g^2                        w -= r * m / (sqrt(v) + epsilon)
 *   adamw   the same                                        w -= r * (that + d * w)
 *   lars    m = momentum * m + t * (g + d * w)              w -= r * m
 *           t = 0.001 * |w| / (|g| + d * |w|), of each layer
 *   lamb    u = adam's step + d * w                         w -= r * |w| / |u| * u, of each layer
 *   onebit-adam  adamw's step; where momentum arrives in the place of the gradients, that is m, and
 *           v stays
 *           u = m / (sqrt(v) + epsilon), -1 to 1            w -= r * (u + d * w)
 *
 * Adam: Kingma and Ba, 2015; AdamW: Loshchilov and Hutter, 2019; LARS, LAMB: You et al., 2017 and
 * 2020; 1-bit Adam: Tang et al., 2021, which has no bound of u. What a codec leaves of a block is
 * also in weights whose v is tiny, as of a pixel that is black in all images. Matrices alone decay
 * and have norms. Gains and biases step without; those of lars take the t of the matrix before
 * them. */

#define ADAM_BETA1 0.9f
#define ADAM_BETA2 0.999f
#define ADAM_EPSILON 1e-8f

typedef enum optimizer_kind {
  OPTIMIZER_SGD,
  OPTIMIZER_ADAM,
  OPTIMIZER_ADAMW,
  OPTIMIZER_LARS,
  OPTIMIZER_LAMB,
  OPTIMIZER_ONEBIT_ADAM,
  OPTIMIZER_COUNT
} optimizer_kind;

_Static_assert((int)OPTIMIZER_COUNT == (int)OPTIMIZER_KINDS, "a back end steps all of them");

/* The weights of one layer. */
typedef struct optimizer_part {
  size_t offset, count;
  bool matrix;
} optimizer_part;

/* What a rank steps of a part: all of it, or some of its blocks. A norm is the sum over the blocks
 * of a part in their order, so it has the same bits whoever summed up a block. */

typedef struct optimizer_piece {
  int part;
  size_t offset, count; /* in the vectors of this rank */
  size_t block;         /* that it begins with, of those of all parts */
} optimizer_piece;

/* Blocks of a part of so many weights. */
size_t optimizer_blocks(size_t count);

/* Of sums[count], of which each rank has made its own and has 0 for those of the others, make
 * those of all ranks. */
typedef void optimizer_share(void *context, double *sums, size_t count);

typedef struct optimizer {
  const backend
      *on; /* whose memory first, second and sums_there are, as are weights and gradients */
  optimizer_kind kind;
  float momentum;
  float decay;
  size_t count;
  float *first;         /* [count], m */
  float *second;        /* [count], v; NULL for sgd and lars */
  double first_remains; /* Adam's: beta1 to the power of the steps taken */
  double second_remains;
  uint64_t frozen;       /* of these, those in which v stayed */
  optimizer_part *parts; /* which the weights of all ranks together consist of */
  float *trusts;         /* [part_count], the t of lars, |w| / |u| of lamb */
  int part_count;
  optimizer_piece *pieces; /* of these, that this rank steps */
  int piece_count;
  size_t block_count;
  double *sums;           /* [2][block_count] of squares */
  double *sums_there;     /* the same where they are summed up; of a host these are `sums` */
  optimizer_share *share; /* NULL: there is but this rank */
  void *context;
} optimizer;

/* All weights are one matrix, and nothing decays. Returns 0, or -1 without memory. `momentum` is
 * used by SGD and LARS. */
int optimizer_create(optimizer_kind kind, size_t count, float momentum, optimizer *made);

/* The same elsewhere than on the processor. */
int optimizer_create_on(const backend *on, optimizer_kind kind, size_t count, float momentum,
                        optimizer *made);
void optimizer_destroy(optimizer *self);

/* The weights consist of these parts, which decay so fast. Returns 0, or -1 without memory. */
int optimizer_divide(optimizer *self, const optimizer_part *parts, int part_count, float decay);

/* This rank steps these pieces of the parts only. Returns 0, or -1 without memory. */
int optimizer_take(optimizer *self, const optimizer_piece *pieces, int piece_count,
                   optimizer_share *share, void *context);

/* Be as after so many steps, `frozen` of them with momentum; what is remembered is the caller's to
 * restore. */
void optimizer_set_steps(optimizer *self, uint64_t steps, uint64_t frozen);

/* One step of `count` weights against their gradients. */
void optimizer_step(optimizer *self, float *weights, const float *gradients, float rate);

/* The same of onebit-adam where momentum has arrived. */
void optimizer_step_frozen(optimizer *self, float *weights, const float *momentum, float rate);

/* Scale the gradients so that the norm of those of all ranks is at most `most`. Returns the norm
 * that they had. */
double optimizer_clip(optimizer *self, float *gradients, float most);

/* Bytes of what it remembers. */
size_t optimizer_bytes(const optimizer *self);

/* "adamw", and the kind of such a name; OPTIMIZER_COUNT: none. */
const char *optimizer_name(optimizer_kind kind);
optimizer_kind optimizer_find(const char *name);

/* Does it remember squares of gradients? Do weights decay? */
bool optimizer_has_second(optimizer_kind kind);
bool optimizer_decays(optimizer_kind kind);

#endif
