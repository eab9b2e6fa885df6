/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_EXCHANGE_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_EXCHANGE_H

/* What the lanes of a warp get from each other once all have come. */

#include "tests/support/emulated/emulated_blocks.h"

/* Threads that wait for each other: a warp, or the block. */
typedef struct lcomm_gathering {
  uint32_t arrived, earliest; /* how many did, and which of them was the first */
  uint32_t value[LCOMM_WARP], selector[LCOMM_WARP], result[LCOMM_WARP];
} lcomm_gathering;

static inline uint32_t lcomm_ballot_of(const lcomm_gathering *w) {
  uint32_t ballot = 0;
  for (uint32_t lane = 0; lane < LCOMM_WARP; lane++) {
    ballot |= (uint32_t)(w->value[lane] != 0) << lane;
  }
  return ballot;
}

static inline uint32_t lcomm_source_lane(lcomm_emulated_meeting meeting, uint32_t lane,
                                         uint32_t selector) {
  switch (meeting) {
  case LCOMM_MEET_XOR:
    return (lane ^ selector) % LCOMM_WARP;
  case LCOMM_MEET_UP:
    return lane < selector ? lane : lane - selector;
  default:
    return selector % LCOMM_WARP;
  }
}

/* The result of every lane from the values of all. */
static inline void lcomm_exchange(lcomm_gathering *w, lcomm_emulated_meeting meeting) {
  uint32_t ballot = meeting == LCOMM_MEET_BALLOT ? lcomm_ballot_of(w) : 0;
  for (uint32_t lane = 0; lane < LCOMM_WARP; lane++) {
    w->result[lane] = meeting == LCOMM_MEET_BALLOT
                          ? ballot
                          : w->value[lcomm_source_lane(meeting, lane, w->selector[lane])];
  }
}

#endif
