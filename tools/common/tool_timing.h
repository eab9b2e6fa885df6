/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_TIMING_H
#define LCOMM_TOOLS_COMMON_TOOL_TIMING_H

/* Times several ways of doing things in turn: A B C A B C ..., so that what
 * disturbs one disturbs all, and ratios of neighbours can be trusted where the
 * times themselves cannot. */

#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"

enum { LCOMM_RACE_REPETITIONS_MAX = 1000 };

typedef struct lcomm_race {
  size_t threads;     /* each on its own processor, as far as there are enough */
  size_t rivals;      /* ways, at least 1 */
  size_t repetitions; /* 1 to LCOMM_RACE_REPETITIONS_MAX; one more comes first and is not counted */
  uint64_t turns;     /* runs of a rival in a row, for those that are short */
  void *const *lanes; /* what each thread works on */
  void (*run)(void *lane, size_t rival); /* in the standard floating-point environment */
} lcomm_race;

/* seconds[repetition * rivals + rival] = wall time of one run on all threads,
 * from the first that begins to the last that ends. MEMORY; SYSTEM when the
 * threads cannot be started. */
lcomm_status lcomm_race_run(const lcomm_race *race, double *seconds);

/* Processors that threads may be put on. At least 1. */
size_t lcomm_race_processors(void);

typedef struct lcomm_spread {
  double min, median, max; /* all 0: not measured */
} lcomm_spread;

/* Of n >= 1 numbers, which are sorted. */
lcomm_spread lcomm_spread_of(double *values, size_t n);

/* Of the rates amount / seconds of a rival. */
lcomm_spread lcomm_race_rate(const lcomm_race *race, const double *seconds, size_t rival,
                             double amount);

/* Of the ratios, one for each repetition: how many times as fast as `other` a
 * rival was. */
lcomm_spread lcomm_race_ratio(const lcomm_race *race, const double *seconds, size_t rival,
                              size_t other);

#endif
