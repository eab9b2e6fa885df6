/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_PATTERN_H
#define LCOMM_INTERPOSE_MPI_PATTERN_H

/* The repeating pattern of calls. Knows nothing of MPI or of time: the same signatures
 * give the same answers on all ranks. */

#include <stdbool.h>
#include <stdint.h>

enum { LCOMM_INTERPOSE_PERIOD_MAX = 256 };

typedef struct lcomm_interpose_pattern {
  uint64_t *history; /* ring of the last signatures; behind it counters of repeats */
  uint64_t calls;    /* all told */
  uint64_t since;    /* calls since the pattern broke last, or since the beginning */
  uint32_t needed;   /* calls that must repeat before a pattern is believed */
  uint32_t fixed;    /* step=, 0: found out */
  uint32_t period;   /* 0: no pattern is known */
  uint32_t position; /* of the next call */
} lcomm_interpose_pattern;

/* fixed: calls of a step if that is known, else 0. False when memory is short. */
bool lcomm_interpose_pattern_init(lcomm_interpose_pattern *pattern, uint32_t fixed);
void lcomm_interpose_pattern_free(lcomm_interpose_pattern *pattern);

/* The next call: its position in the pattern, or -1 while none is known. A period P is
 * believed when the last max(3*P, needed) calls repeat with it, the shortest that does; needed
 * is 8 at first and doubles, up to 4*LCOMM_INTERPOSE_PERIOD_MAX, each time that a pattern breaks: a
 * run of equal calls inside a step is not taken for a step for long. A call whose
 * signature is not the pattern's breaks it, and is -1 itself. With `fixed` the pattern is
 * known once the last 2*fixed calls repeat with that period. */
int lcomm_interpose_pattern_next(lcomm_interpose_pattern *pattern, uint64_t signature);

/* Whatever is known is believed no longer, as after a call that did not fit. */
void lcomm_interpose_pattern_break(lcomm_interpose_pattern *pattern);

#endif
