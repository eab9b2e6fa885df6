/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TESTS_CLIENTS_SAMPLES_H
#define TESTS_CLIENTS_SAMPLES_H

/* Made-up data to learn from: a class is a direction in space under noise, and some labels are
 * wrong, so that no network can do better than a certain loss. */

#include <stdint.h>

enum { INPUTS = 1024, CLASSES = 10 };

static inline uint64_t next(uint64_t *state) { /* splitmix64 */
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Nearly normal: the sum of four uniform numbers, with variance 1. */
static inline float noise(uint64_t *state) {
  uint64_t bits = next(state);
  int sum = 0;
  for (int i = 0; i < 4; i++) {
    sum += (int)(bits >> (16 * i) & 0xffff);
  }
  return ((float)sum - 131070.0f) * (1.7320508f / 65536.0f);
}

static float directions[CLASSES][INPUTS];

static inline void make_directions(void) {
  uint64_t state = 42;
  for (int c = 0; c < CLASSES; c++) {
    for (int i = 0; i < INPUTS; i++) {
      directions[c][i] = 0.2f * noise(&state);
    }
  }
}

/* Samples are numbered; those of a number are always the same. */
static inline void make_sample(uint64_t number, float *x, int *label) {
  uint64_t state = number * 0x2545f4914f6cdd1du + 7;
  int class = (int)(next(&state) % CLASSES);
  for (int i = 0; i < INPUTS; i++) {
    x[i] = directions[class][i] + noise(&state);
  }
  *label = next(&state) % 5 ? class : (int)(next(&state) % CLASSES);
}

#endif
