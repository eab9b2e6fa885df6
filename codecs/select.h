/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_SELECT_H
#define LCOMM_CODECS_SELECT_H

/* Exact selection of the k largest magnitudes: NaN > Inf > finite, ties to the
 * lower index.
 *
 * A small sample gives a threshold that is surely low; one pass accumulates
 * and collects what reaches it (the candidates, little more than k); quickselect
 * picks exactly k of them. When the sample misled, a histogram of the
 * magnitudes finds the same set in more passes. So the sample decides the
 * time, never the result.
 *
 * The sample is taken anew in every step. The threshold of the step before is
 * no substitute under error feedback: all that was above it has been sent,
 * so it is followed by a cliff and most often selects too few.
 */

#include <stdbool.h>

#include "kernels/kernels.h"

/* The values acc[i] = base[i] + residual[i], i in part `part` of `parts` of
 * the arrays (kernels/stripe.h); selecting leaves acc in residual. Without a
 * residual acc is base itself. */
typedef struct lcomm_select_input {
  const lcomm_kernels *kernels;
  const float *base;
  float *residual; /* may be NULL */
  uint32_t parts, part;
} lcomm_select_input;

/* Local indices in ascending order, and the float32 bits of acc there. */
typedef struct lcomm_entries {
  uint32_t *position;
  uint32_t *bits;
  size_t count;
} lcomm_entries;

/* Scratch memory: candidates, and keys for quickselect. */
typedef struct lcomm_select_scratch {
  lcomm_entries candidates;
  size_t capacity; /* of candidates */
  uint64_t *key;
} lcomm_select_scratch;

/* What selecting `kept` of `count` elements needs: entries in candidates, and
 * keys. */
size_t lcomm_select_capacity(uint64_t count, uint64_t kept);
size_t lcomm_select_keys(uint64_t count, uint64_t kept);

/* Accumulate the local range [first, first + count) and append its `kept`
 * largest to `chosen`; kept <= count. */
void lcomm_select_range(const lcomm_select_input *input, uint64_t first, uint64_t count,
                        uint64_t kept, lcomm_select_scratch *scratch, lcomm_entries *chosen);

/* Drop all but the `kept` largest entries. `key` has room for entries->count. */
void lcomm_select_trim(lcomm_entries *entries, size_t kept, uint64_t *key);

#endif
