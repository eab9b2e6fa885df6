/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SHARD_PLAN_H
#define TRAINER_TRAIN_SHARD_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "trainer/train_model.h"
#include "trainer/train_optimizer.h"

/* What is sharded, see train_shard.h. */
typedef enum shard_kind { SHARD_NONE, SHARD_OPTIMIZER, SHARD_GRADIENTS, SHARD_COUNT } shard_kind;

/* "optimizer", and the kind of such a name; SHARD_COUNT: none. */
const char *shard_name(shard_kind kind);
shard_kind shard_find(const char *name);

/* Who steps which weights when the optimiser is sharded.
 *
 *   all weights   [ bucket 0 | bucket 1     | bucket 2 | ... ]   in the order of backward
 *   a bucket      [ rank 0 | rank 1 | ... ]                      about as long
 *   a shard       [ its part of bucket 0 | of bucket 1 | ... ]
 *
 * A bucket is a parameter of at least SHARD_LARGE elements, or the smaller ones between two such.
 * Parts end where blocks of the optimiser end, so that norms have the bits of one rank's. */

enum { SHARD_LARGE = 16384, SHARD_PIECES_MAX = 2 * MODEL_PARAMETERS_MAX };

typedef struct shard_bucket {
  size_t offset, count; /* in the vectors of all weights */
  int first, parameters;
  uint64_t *counts;  /* [ranks] elements of each rank's part */
  size_t own_offset; /* of this rank's part, in the vectors of all weights */
  size_t own_count;
  size_t at; /* and in those of the shard */
} shard_bucket;

typedef struct shard_plan {
  int ranks, rank;
  shard_bucket buckets[MODEL_PARAMETERS_MAX];
  int bucket_count;
  size_t largest; /* elements of the largest bucket */
  size_t count;   /* elements of the shard */
  optimizer_piece pieces[SHARD_PIECES_MAX];
  int piece_count;
  uint64_t *counts; /* those of all buckets */
} shard_plan;

/* The same on all ranks but for what is of the rank. Returns 0, or -1 without memory. */
int shard_plan_make(const model *net, int ranks, int rank, shard_plan *made);
void shard_plan_free(shard_plan *self);

/* "block0.mlp1.weight"; of several "block0.norm1.bias+2". */
void shard_bucket_name(const shard_bucket *of, const model *net, char *name, size_t size);

#endif
