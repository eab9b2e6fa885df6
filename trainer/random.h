/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_RANDOM_H
#define TRAINER_RANDOM_H

#include <stdint.h>

/* Random numbers that are the same on every machine (splitmix64). Streams
 * with different numbers are independent for one seed, so each image and
 * each epoch has its own and can be made without making the others. */
typedef struct random_stream {
  uint64_t state;
} random_stream;

random_stream random_begin(uint64_t seed, uint64_t stream);

uint64_t random_next(random_stream *random);

/* In [0, 1), 24 bits. */
float random_unit(random_stream *random);

/* In [low, high). */
float random_between(random_stream *random, float low, float high);

/* In 0 .. limit-1; limit is at least 1. */
uint32_t random_below(random_stream *random, uint32_t limit);

/* order[0 .. count-1] becomes a permutation of 0 .. count-1. */
void random_permutation(random_stream *random, uint32_t *order, uint32_t count);

#endif
