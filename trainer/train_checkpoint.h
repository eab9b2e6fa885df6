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
 *   8       "LCTRAIN1"
 *   11 * 8  the words of struct checkpoint, in its order
 *   32      the name of the model, ended and filled up by zeros
 *   8       XXH3 of all that
 *   4 * N   the vectors, one after the other, float32; N is checkpoint.values
 *   8       XXH3 of the vectors */

enum { CHECKPOINT_NAME_SIZE = 32, CHECKPOINT_WORDS = 11, CHECKPOINT_VECTORS_MAX = 4 };

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
  };
  uint64_t words[CHECKPOINT_WORDS];
} checkpoint_words;

typedef struct checkpoint {
  checkpoint_words at;
  char model[CHECKPOINT_NAME_SIZE];
} checkpoint;

typedef struct checkpoint_vector {
  void *values;
  size_t size; /* bytes, a multiple of 4 */
} checkpoint_vector;

/* Write a new file, to the disk. head->at.values is filled in. Returns 0, or -1 with `why`. */
int checkpoint_write(const char *path, checkpoint *head, const checkpoint_vector *vectors,
                     int count, failure *why);

/* Reading takes two steps, as the head says how large the vectors are. Nothing in a file is
 * trusted: what is cut short, goes on after its end or has a wrong sum is refused by name. */
typedef struct checkpoint_file {
  const char *path; /* must live as long */
  FILE *file;
} checkpoint_file;

/* Returns 0, or -1 with `why`; then there is nothing to close. */
int checkpoint_open(const char *path, checkpoint_file *made, checkpoint *head, failure *why);

/* Fill the vectors, whose sizes must be those of the file. Returns 0, or -1 with `why`; then what
 * is in the vectors means nothing. */
int checkpoint_load(checkpoint_file *self, const checkpoint *head, const checkpoint_vector *vectors,
                    int count, failure *why);

void checkpoint_close(checkpoint_file *self);

#endif
