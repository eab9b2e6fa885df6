/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/random.h"

static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

random_stream random_begin(uint64_t seed, uint64_t stream) {
  random_stream random;
  random.state = mix(mix(seed + 0x9e3779b97f4a7c15u) + stream * 0xd1342543de82ef95u);
  return random;
}

uint64_t random_next(random_stream *random) {
  random->state += 0x9e3779b97f4a7c15u;
  return mix(random->state);
}

float random_unit(random_stream *random) {
  return (float)(random_next(random) >> 40) * 0x1p-24f;
}

float random_between(random_stream *random, float low, float high) {
  return low + (high - low) * random_unit(random);
}

uint32_t random_below(random_stream *random, uint32_t limit) {
  uint64_t high_half = random_next(random) >> 32;
  return (uint32_t)((high_half * limit) >> 32);
}

void random_permutation(random_stream *random, uint32_t *order, uint32_t count) {
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
