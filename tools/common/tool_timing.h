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

enum { TOOL_REPETITIONS_MAX = 1000 };

typedef struct tool_timing {
  size_t threads;       /* each on its own processor, as far as there are enough */
  size_t variants;      /* ways, at least 1 */
  size_t repetitions;   /* 1 to TOOL_REPETITIONS_MAX; one more comes first and is not counted */
  uint64_t turns;       /* runs of a variant in a row, for those that are short */
  void *const *workers; /* what each thread works on */
  void (*run)(void *worker, size_t variant); /* in the standard floating-point environment */
} tool_timing;

/* seconds[repetition * variants + variant] = wall time of one run on all threads,
 * from the first that begins to the last that ends. MEMORY; SYSTEM when the
 * threads cannot be started. */
lcomm_status tool_timing_run(const tool_timing *timing, double *seconds);

/* Processors that threads may be put on. At least 1. */
size_t tool_timing_processors(void);

typedef struct tool_spread {
  double min, median, max; /* all 0: not measured */
} tool_spread;

/* Of n >= 1 numbers, which are sorted. */
tool_spread tool_spread_of(double *values, size_t n);

/* Of the rates amount / seconds of a variant. */
tool_spread tool_timing_rate(const tool_timing *timing, const double *seconds, size_t variant,
                             double amount);

/* Of the ratios, one for each repetition: how many times as fast as `other` a
 * variant was. */
tool_spread tool_timing_ratio(const tool_timing *timing, const double *seconds, size_t variant,
                              size_t other);

#endif
