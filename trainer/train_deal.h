/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_DEAL_H
#define TRAINER_TRAIN_DEAL_H

#include <stdint.h>

/* How the samples of an epoch are dealt to the ranks. They are in one order, which depends on seed
 * and epoch alone, and steps take them from its beginning:
 *
 *   order[count]   used by steps that are done | batch 0: rank 0, rank 1, .. | batch 1: .. | left
 *
 * So a sample is used once in an epoch at most, whatever becomes of the ranks: those that are there
 * are dealt what is left. A step that is undone has used nothing, and is made again of the same
 * samples, or of the first of them, where a step has fewer then. */
typedef struct deal {
  uint64_t count; /* samples of an epoch */
  uint64_t used;  /* of these, by the steps that are done */
  int ranks;      /* that are there */
  int batch;      /* samples of a rank at once */
  int accumulate; /* times in a step */
  int room;       /* samples of a rank at once, at most */
  int at_first;   /* samples of a step of all ranks together, as the run began */
  int rank_share; /* and those of a rank */
} deal;

/* As the run begins: so many samples of each rank in a step, in equal batches of at most `room`, as
 * few as possible. That of a batch is the room from then on. */
void deal_begin(deal *made, uint64_t count, int ranks, int share, int room);

/* Other ranks are there. Where the samples that a step had at first can be spread evenly over them,
 * it has as many as then, if need be in more batches; else each rank has the share that it had at
 * first, and deal_rate() changes. */
void deal_among(deal *self, int ranks);

/* Samples of a step, of all ranks together. */
static inline int deal_samples(const deal *self) {
  return self->ranks * self->batch * self->accumulate;
}

/* Where in the order the samples of a rank begin, in batch `number` of the next step. */
static inline uint64_t deal_place(const deal *self, int rank, int number) {
  uint64_t slice = (uint64_t)number * (uint64_t)self->ranks + (uint64_t)rank;
  return self->used + slice * (uint64_t)self->batch;
}

/* The next step is done. */
static inline void deal_use(deal *self) {
  self->used += (uint64_t)deal_samples(self);
}

/* Steps that are left in the epoch; less than the samples of a step is left out. */
static inline uint64_t deal_steps_left(const deal *self) {
  return (self->count - self->used) / (uint64_t)deal_samples(self);
}

/* What the learning rate is multiplied by: it follows the samples of a step linearly. */
static inline float deal_rate(const deal *self) {
  return (float)deal_samples(self) / (float)self->at_first;
}

#endif
