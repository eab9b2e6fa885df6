/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_PATTERN_H
#define LCOMM_TOOLS_PERF_PERF_PATTERN_H

#include <stdint.h>

#include "libcomm.h"
#include "tools/perf/perf_collective.h"

/* Inputs whose sum over the ranks is exact in the element type: whole numbers
 * with random mantissas and exponents, so that they are spread over magnitudes
 * as gradients are and a top-k has something to choose from. */
typedef struct lcomm_perf_pattern {
  lcomm_dtype dtype;
  int ranks;
  unsigned mantissa_bits; /* 1..15 */
  unsigned shift_count;   /* powers of two the mantissa is scaled by, at least 1 */
} lcomm_perf_pattern;

lcomm_perf_pattern lcomm_perf_pattern_make(lcomm_dtype dtype, int ranks);

/* buffer[i] = what `rank` sends, `count` elements. */
void lcomm_perf_pattern_fill(const lcomm_perf_pattern *pattern, int rank, void *buffer,
                             uint64_t count);

/* Element i of the exact result of a call on `rank`. */
double lcomm_perf_pattern_exact(const lcomm_perf_pattern *pattern, const lcomm_perf_call *call,
                                int rank, uint64_t i);

/* How far a result is from the exact one. */
typedef struct lcomm_perf_difference {
  uint64_t wrong;       /* elements that are not what they should be */
  double error_square;  /* sum of squared differences */
  double result_square; /* sum of squared exact results */
} lcomm_perf_difference;

/* Compare elements `first` .. `first + count` of the result of a call on `rank`. */
lcomm_perf_difference lcomm_perf_pattern_compare(const lcomm_perf_pattern *pattern,
                                                 const lcomm_perf_call *call, int rank,
                                                 const void *result, uint64_t first,
                                                 uint64_t count);

#endif
