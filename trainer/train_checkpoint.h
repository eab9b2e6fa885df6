/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_CHECKPOINT_H
#define TRAINER_TRAIN_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "trainer/train_peers.h"

/* The file of a checkpoint: how far a training is, and its vectors. All numbers are little-endian.
 *
 *   8       "LCTRAIN3"
 *   16 * 8  the words of struct checkpoint, in its order
 *   32      the name of the model, ended and filled up by zeros
 *   8       XXH3 of all that
 *   4 * N   the vectors, one after the other, float32; N is checkpoint.values
 *   8       XXH3 of the vectors
 *
 * Vectors are those of all ranks, also of a run whose ranks have shards of them. */

enum { CHECKPOINT_NAME_SIZE = 32, CHECKPOINT_WORDS = 16 };

typedef union checkpoint_words {
  struct {
    uint64_t values;       /* of all vectors */
    uint64_t weight_count; /* of the model */
    uint64_t optimizer;    /* an optimizer_kind */
    uint64_t ranks;        /* that saved */
    uint64_t seed;
    uint64_t data_hash; /* task_hash() */
    uint64_t epoch;     /* that runs, from 1 */
    uint64_t samples;   /* of the epoch that are done, of all ranks together */
    uint64_t steps;     /* done since the start of the run */
    uint64_t skipped;   /* of these */
    double loss;        /* mean over the ranks of the sum of the losses of the epoch's steps */
    uint64_t precision; /* a precision_kind */
    double scale;       /* of the loss */
    uint64_t good;      /* steps with it */
    uint64_t frozen;    /* steps in which Adam's variance stayed */
    uint64_t sharded;   /* 1: libcomm's state is that of reduce-scatters */
  };
  uint64_t words[CHECKPOINT_WORDS];
} checkpoint_words;

typedef struct checkpoint {
  checkpoint_words at;
  char model[CHECKPOINT_NAME_SIZE];
} checkpoint;

typedef struct checkpoint_file {
  const char *path; /* must live as long */
  FILE *file;
  uint64_t left; /* values that are to come */
  void *hash;    /* of those that came */
} checkpoint_file;

/* Write a new file: its head, then head->at.values values in one piece or many, then bring it to
 * the disk. Each returns 0, or -1 with `why`. checkpoint_close() follows in any case. */
int checkpoint_begin(const char *path, const checkpoint *head, checkpoint_file *made, failure *why);
int checkpoint_put(checkpoint_file *self, const float *values, size_t count, failure *why);
int checkpoint_finish(checkpoint_file *self, failure *why);

/* Read one. Nothing in a file is trusted: what is cut short, goes on after its end, has a wrong sum
 * or another number of values than are asked for is refused by name. Each returns 0, or -1 with
 * `why`; until checkpoint_end() has returned 0, what was read means nothing. */
int checkpoint_open(const char *path, checkpoint_file *made, checkpoint *head, failure *why);
int checkpoint_expect(const checkpoint_file *self, uint64_t values, failure *why);
int checkpoint_get(checkpoint_file *self, float *values, size_t count, failure *why);
int checkpoint_end(checkpoint_file *self, failure *why);

void checkpoint_close(checkpoint_file *self);

#endif
