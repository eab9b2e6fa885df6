/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_TIMING_H
#define LCOMM_TOOLS_COMMON_TOOL_TIMING_H

/* The wall clock, what times say, and timing several variants in turn: A B C A B C ..., so that
 * what disturbs one disturbs all, and ratios of neighbours can be trusted where the times
 * themselves cannot. */

#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"

/* Seconds of CLOCK_MONOTONIC. */
double tool_now_s(void);

typedef struct tool_spread {
  double min, median, max; /* all 0: not measured */
} tool_spread;

/* Of n >= 1 numbers, which are sorted. */
tool_spread tool_spread_of(double *values, size_t n);
double tool_median(double *values, size_t n);

/* The value below which `share` of n >= 1 sorted values lie, between two neighbours in
 * proportion. */
double tool_percentile(const double *sorted, size_t n, double share);

enum { TOOL_REPETITIONS_MAX = 1000 };

typedef void (*tool_timing_runner)(void *worker, size_t variant);

typedef struct tool_timing {
  size_t threads;       /* each on its own processor, as far as there are enough */
  size_t variants;      /* at least 1 */
  size_t repetitions;   /* 1 to TOOL_REPETITIONS_MAX; one more comes first and is not counted */
  uint64_t turns;       /* runs of a variant in a row, for those that are short */
  void *const *workers; /* what each thread works on */
  tool_timing_runner run;
  void (*begin)(void); /* once on each thread, before its first run; NULL: nothing */
} tool_timing;

/* seconds[repetition * variants + variant] = wall time of one run on all threads,
 * from the first that begins to the last that ends. MEMORY; SYSTEM when the
 * threads cannot be started. */
lcomm_status tool_timing_run(const tool_timing *timing, double *seconds);

/* Processors that threads may be put on. At least 1. */
size_t tool_timing_processors(void);

/* Of the rates amount / seconds of a variant. */
tool_spread tool_timing_rate(const tool_timing *timing, const double *seconds, size_t variant,
                             double amount);

/* Of the ratios, one for each repetition: how many times as fast as `other` a
 * variant was. */
tool_spread tool_timing_ratio(const tool_timing *timing, const double *seconds, size_t variant,
                              size_t other);

#endif
