/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_RANDOM_H
#define TRAINER_TRAIN_RANDOM_H

#include <stdint.h>

/* Random numbers that are the same on every machine (splitmix64). Streams
 * with different numbers are independent for one seed, so each image and
 * each epoch has its own and can be made without making the others. */
typedef struct random_stream {
  uint64_t state;
} random_stream;

static inline uint64_t random_mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

static inline random_stream random_begin(uint64_t seed, uint64_t stream) {
  uint64_t first = random_mix(seed + 0x9e3779b97f4a7c15u);
  return (random_stream){random_mix(first + stream * 0xd1342543de82ef95u)};
}

static inline uint64_t random_next(random_stream *random) {
  random->state += 0x9e3779b97f4a7c15u;
  return random_mix(random->state);
}

/* In [0, 1), 24 bits. */
static inline float random_unit(random_stream *random) {
  return (float)(random_next(random) >> 40) * 0x1p-24f;
}

/* In [low, high). */
static inline float random_between(random_stream *random, float low, float high) {
  return low + (high - low) * random_unit(random);
}

/* In 0 .. limit-1; limit is at least 1. */
static inline uint32_t random_below(random_stream *random, uint32_t limit) {
  uint64_t high_half = random_next(random) >> 32;
  return (uint32_t)((high_half * limit) >> 32);
}

/* order[0 .. count-1] becomes a permutation of 0 .. count-1. */
static inline void random_permutation(random_stream *random, uint32_t *order, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    order[i] = i;
  }
  for (uint32_t i = count; i > 1; i--) {
    uint32_t other = random_below(random, i);
    uint32_t kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
}

#endif
