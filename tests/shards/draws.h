/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SHARDS_DRAWS_H
#define LCOMM_TESTS_SHARDS_DRAWS_H

/* Random numbers of simulated ranks, the same everywhere. */

#include <stdint.h>

/* From 0 to below 1. */
static inline double draw_next(uint64_t *random) {
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  return (double)(*random >> 11) / (double)(1ull << 53);
}

/* A step in units of one: some ranks are always slow, and all pause now and then. */
static inline double draw_step(uint64_t *random, int rank) {
  double slow = rank % 7 == 3 ? 3 : 1, pause = draw_next(random) < 0.05 ? 40 : 0;
  return slow * (0.5 + draw_next(random)) + pause;
}

#endif
