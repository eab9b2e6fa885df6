/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buffers that take turns at one position. */

#include "libcomm/interpose/mpi/watch.h"

enum { ROUNDS = 4, CALLS_MIN = 16, REPEATS_MAX = UINT8_MAX };

static uint32_t hash(const void *buffer) {
  return (uint32_t)(((uint64_t)(uintptr_t)buffer * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* So many repeats are no accident. */
static unsigned repeats_needed(unsigned period) {
  unsigned calls = ROUNDS * period > CALLS_MIN ? ROUNDS * period : CALLS_MIN;
  return calls - period;
}

/* Addresses that repeat with a period, and are not all the same. */
static bool takes_turns(const lcomm_interpose_watch *watch, unsigned period) {
  return watch->repeats[period - 1] >= repeats_needed(period) && watch->repeats[0] < period;
}

bool lcomm_interpose_watch_see(lcomm_interpose_watch *watch, const void *buffer) {
  uint32_t now = hash(buffer);
  bool in_turn = false;
  for (unsigned period = 1; period <= LCOMM_INTERPOSE_TURNS_MAX && period <= watch->calls;
       period++) {
    uint8_t *repeats = &watch->repeats[period - 1];
    if (watch->seen[(watch->calls - period) % LCOMM_INTERPOSE_TURNS_MAX] != now) {
      *repeats = 0;
    } else if (*repeats < REPEATS_MAX) {
      ++*repeats;
    }
    in_turn |= period > 1 && takes_turns(watch, period);
  }
  watch->seen[watch->calls % LCOMM_INTERPOSE_TURNS_MAX] = now;
  watch->calls++;
  return in_turn;
}
