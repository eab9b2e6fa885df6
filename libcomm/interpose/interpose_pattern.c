/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Each possible period has a counter: how many calls in a row had the signature of the call one
 * period before. While no pattern is known a call updates all counters; afterwards it makes one
 * comparison. */

#include "libcomm/interpose/interpose_pattern.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS = 3, NEEDED_MIN = 8, NEEDED_MAX = 4 * LCOMM_INTERPOSE_PERIOD_MAX };

/* The history holds as many calls as the longest period. The counters follow: of periods 1, 2,
 * ..., or of the fixed one only. */
static uint32_t history_length(const lcomm_interpose_pattern *pattern) {
  return pattern->fixed > 0 ? pattern->fixed : LCOMM_INTERPOSE_PERIOD_MAX;
}

static uint64_t *counters(const lcomm_interpose_pattern *pattern) {
  return pattern->history + history_length(pattern);
}

static uint32_t counters_length(const lcomm_interpose_pattern *pattern) {
  return pattern->fixed > 0 ? 1 : LCOMM_INTERPOSE_PERIOD_MAX;
}

bool lcomm_interpose_pattern_init(lcomm_interpose_pattern *pattern, uint32_t fixed) {
  *pattern = (lcomm_interpose_pattern){.needed = NEEDED_MIN, .fixed = fixed};
  size_t length = (size_t)history_length(pattern) + counters_length(pattern);
  pattern->history = calloc(length, sizeof *pattern->history);
  return pattern->history != NULL;
}

void lcomm_interpose_pattern_free(lcomm_interpose_pattern *pattern) {
  free(pattern->history);
  pattern->history = NULL;
}

/* The signature of the call that was made `period` calls ago. */
static uint64_t earlier(const lcomm_interpose_pattern *pattern, uint32_t period) {
  return pattern->history[(pattern->calls - period) % history_length(pattern)];
}

static void remember(lcomm_interpose_pattern *pattern, uint64_t signature) {
  pattern->history[pattern->calls % history_length(pattern)] = signature;
  pattern->calls++;
  pattern->since++;
}

/* How many calls must repeat with this period before it is believed. */
static uint64_t calls_needed(const lcomm_interpose_pattern *pattern, uint32_t period) {
  if (pattern->fixed > 0) {
    return 2 * (uint64_t)period;
  }
  return REPEATS * period > pattern->needed ? REPEATS * period : pattern->needed;
}

/* Update the counters with a call that is not in the history yet. Returns the shortest period that
 * is believed now; 0: none. */
static uint32_t count_repeats(lcomm_interpose_pattern *pattern, uint64_t signature) {
  uint64_t *repeats = counters(pattern);
  uint32_t believed = 0;
  for (uint32_t i = 0; i < counters_length(pattern); i++) {
    uint32_t period = pattern->fixed > 0 ? pattern->fixed : i + 1;
    if (pattern->since < period) {
      break; /* too few calls for longer periods, too */
    }
    repeats[i] = earlier(pattern, period) == signature ? repeats[i] + 1 : 0;
    if (believed == 0 && repeats[i] + period >= calls_needed(pattern, period)) {
      believed = period;
    }
  }
  return believed;
}

/* The first repeating call gets position 0: where steps repeat from the first call on, position 0
 * is the beginning of a step. */
static int learn(lcomm_interpose_pattern *pattern, uint64_t signature) {
  uint32_t period = count_repeats(pattern, signature);
  remember(pattern, signature);
  if (period == 0) {
    return -1;
  }
  uint32_t position = (uint32_t)((calls_needed(pattern, period) - 1) % period);
  pattern->period = period;
  pattern->position = (position + 1) % period;
  return (int)position;
}

void lcomm_interpose_pattern_break(lcomm_interpose_pattern *pattern) {
  pattern->period = 0;
  pattern->position = 0;
  pattern->since = 0; /* earlier calls are no longer compared */
  pattern->needed = 2 * pattern->needed < NEEDED_MAX ? 2 * pattern->needed : NEEDED_MAX;
  memset(counters(pattern), 0, counters_length(pattern) * sizeof(*counters(pattern)));
}

int lcomm_interpose_pattern_next(lcomm_interpose_pattern *pattern, uint64_t signature) {
  if (pattern->period == 0) {
    return learn(pattern, signature);
  }
  if (earlier(pattern, pattern->period) != signature) {
    lcomm_interpose_pattern_break(pattern);
    remember(pattern, signature); /* it may begin the next pattern */
    return -1;
  }
  uint32_t position = pattern->position;
  pattern->position = position + 1 < pattern->period ? position + 1 : 0;
  remember(pattern, signature);
  return (int)position;
}

/* ------------------------------------------------------------ alias detector */

enum { ROUNDS = 4, CALLS_MIN = 16, REPEATS_MAX = UINT8_MAX };

static uint32_t hash(const void *buffer) {
  return (uint32_t)(((uint64_t)(uintptr_t)buffer * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Repeats that are not taken for an accident. */
static unsigned repeats_needed(unsigned period) {
  unsigned calls = ROUNDS * period > CALLS_MIN ? ROUNDS * period : CALLS_MIN;
  return calls - period;
}

/* The addresses repeat with this period and are not all the same. */
static bool takes_turns(const lcomm_interpose_alias *alias, unsigned period) {
  return alias->repeats[period - 1] >= repeats_needed(period) && alias->repeats[0] < period;
}

bool lcomm_interpose_alias_see(lcomm_interpose_alias *alias, const void *buffer) {
  uint32_t now = hash(buffer);
  bool in_turn = false;
  for (unsigned period = 1; period <= LCOMM_INTERPOSE_ALIAS_PERIOD_MAX && period <= alias->calls;
       period++) {
    uint8_t *repeats = &alias->repeats[period - 1];
    if (alias->seen[(alias->calls - period) % LCOMM_INTERPOSE_ALIAS_PERIOD_MAX] != now) {
      *repeats = 0;
    } else if (*repeats < REPEATS_MAX) {
      ++*repeats;
    }
    in_turn |= period > 1 && takes_turns(alias, period);
  }
  alias->seen[alias->calls % LCOMM_INTERPOSE_ALIAS_PERIOD_MAX] = now;
  alias->calls++;
  return in_turn;
}
