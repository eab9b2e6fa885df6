/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SOAK_SOAK_MODEL_H
#define LCOMM_TOOLS_SOAK_SOAK_MODEL_H

/* What ranks contribute, and what should come of it: every rank can work it out. Values
 * are small whole numbers, so sums are exact in every type, in any order. */

#include <stdint.h>

#include "libcomm.h"

/* The next number of a reproducible sequence. */
uint64_t soak_draw(uint64_t *state);

/* One collective call; `key` makes its values. */
typedef struct soak_call {
  uint64_t key, count;
  lcomm_dtype dtype;
  lcomm_op op;
  int ranks;
} soak_call;

/* What `rank` contributes: elements first .. first + count, to the beginning of `values`. */
void soak_fill(const soak_call *call, int rank, uint64_t first, uint64_t count, void *values);

/* Of elements first .. first + count of the reduction over all ranks: how many of `values`
 * are off by more than `tolerance`. */
uint64_t soak_count_wrong(const soak_call *call, uint64_t first, uint64_t count, double tolerance,
                          const void *values);

/* Of what `rank` contributed, how many of `values` have other bytes? */
uint64_t soak_count_other(const soak_call *call, int rank, uint64_t first, uint64_t count,
                          const void *values);

/* The largest sum of magnitudes of all ranks. */
double soak_largest(const soak_call *call);

#endif
