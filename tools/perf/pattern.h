/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PATTERN_H
#define LCOMM_TOOLS_PERF_PATTERN_H

#include <stdint.h>

#include "libcomm.h"

/* Inputs whose sum over the ranks is exact in the element type: whole numbers
 * with random mantissas and exponents, so that they are spread over magnitudes
 * as gradients are and a top-k has something to choose from. */
typedef struct perf_pattern {
  lcomm_dtype dtype;
  int ranks;
  unsigned mantissa_bits; /* 1..15 */
  unsigned shift_count;   /* powers of two the mantissa is scaled by, at least 1 */
} perf_pattern;

perf_pattern perf_pattern_make(lcomm_dtype dtype, int ranks);

/* buffer[i] = this rank's input, `count` elements. */
void perf_pattern_fill(const perf_pattern *pattern, int rank, void *buffer, uint64_t count);

/* How far a result is from the exact one. */
typedef struct perf_difference {
  uint64_t wrong;       /* elements that are not what they should be */
  double error_square;  /* sum of squared differences */
  double result_square; /* sum of squared exact results */
} perf_difference;

/* Compare elements `first` .. `first + count` of `buffer` with the exact result. */
perf_difference perf_pattern_compare(const perf_pattern *pattern, lcomm_op op, const void *buffer,
                                     uint64_t first, uint64_t count);

#endif
