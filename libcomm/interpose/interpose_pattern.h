/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_INTERPOSE_PATTERN_H
#define LCOMM_INTERPOSE_INTERPOSE_PATTERN_H

/* Two detectors of repetition: the pattern of calls, which decides what calls do, and the alias
 * detector, which looks at addresses and only warns. */

#include <stdbool.h>
#include <stdint.h>

/* --------------------------------------------------------- pattern of calls */

enum { LCOMM_INTERPOSE_PERIOD_MAX = 256 };

/* Depends only on the signatures of the calls, so all ranks find the same pattern. */
typedef struct lcomm_interpose_pattern {
  uint64_t *history; /* ring of the last signatures, followed by counters of repeats */
  uint64_t calls;    /* all of them */
  uint64_t since;    /* calls since the pattern broke, or since the beginning */
  uint32_t needed;   /* calls that must repeat before a pattern is believed */
  uint32_t fixed;    /* step= of the policy; 0: found out */
  uint32_t period;   /* 0: no pattern is known */
  uint32_t position; /* of the next call */
} lcomm_interpose_pattern;

/* fixed: calls of a step, 0: not known. False: no memory. */
bool lcomm_interpose_pattern_init(lcomm_interpose_pattern *pattern, uint32_t fixed);
void lcomm_interpose_pattern_free(lcomm_interpose_pattern *pattern);

/* The position of the next call in the pattern; -1: no pattern is known.
 * A period P is believed when the last max(3*P, needed) calls repeat with it; the shortest such P
 * is taken. `needed` is 8 at first and doubles each time that a pattern breaks, up to
 * 4*LCOMM_INTERPOSE_PERIOD_MAX, so a run of equal calls inside a step is not taken for a step for
 * long. A call with another signature than the pattern's breaks it and has position -1. With
 * `fixed` the pattern is known once the last 2*fixed calls repeat with that period. */
int lcomm_interpose_pattern_next(lcomm_interpose_pattern *pattern, uint64_t signature);

/* Break the pattern, as a call with another signature does. */
void lcomm_interpose_pattern_break(lcomm_interpose_pattern *pattern);

/* ------------------------------------------------------------ alias detector */

enum { LCOMM_INTERPOSE_ALIAS_PERIOD_MAX = 64 };

/* Do several buffers take turns at one call site? Zeros are its initial state. */
typedef struct lcomm_interpose_alias {
  uint64_t calls;
  uint32_t seen[LCOMM_INTERPOSE_ALIAS_PERIOD_MAX];   /* ring of hashes of the last addresses */
  uint8_t repeats[LCOMM_INTERPOSE_ALIAS_PERIOD_MAX]; /* [p-1]: calls in a row with the address of
                                                      * p calls before */
} lcomm_interpose_alias;

/* The next call of the call site. True: its addresses clearly repeat with a period of 2 to
 * LCOMM_INTERPOSE_ALIAS_PERIOD_MAX calls. */
bool lcomm_interpose_alias_see(lcomm_interpose_alias *alias, const void *buffer);

#endif
