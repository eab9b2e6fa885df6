/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_SELECT_H
#define LCOMM_CODECS_CODEC_SELECT_H

/* Exact selection of the k largest magnitudes: NaN > Inf > finite, ties to the
 * lower index.
 *
 * A small sample gives a threshold that is surely low; one pass accumulates
 * and collects what reaches it (the candidates, little more than k); exactly k
 * of them are picked. When the sample misled, a histogram of the magnitudes
 * finds the same set in more passes. So the sample decides the time, never
 * the result.
 *
 * The sample is taken anew in every step. The threshold of the step before is
 * no substitute under error feedback: all that was above it has been sent,
 * so it is followed by a cliff and most often selects too few.
 */

#include <stdbool.h>

#include "codecs/codec_select_rank.h"
#include "kernels/kernels.h"

/* What selecting leaves in the residual of a chosen element. */
typedef enum lcomm_select_keep {
  LCOMM_SELECT_ACC,       /* acc */
  LCOMM_SELECT_BF16_ERROR /* what bf16 loses of acc, lcomm_select_bf16_error() */
} lcomm_select_keep;

/* The values acc[i] = base[i] + before[i], i in part `part` of `parts` of
 * the arrays (kernels/stripe.h); selecting leaves acc in residual, but for
 * chosen elements what `keep` says. Without a residual acc is base itself. */
typedef struct lcomm_select_input {
  const lcomm_kernels *kernels;
  const float *base;
  const float *before; /* may be residual; NULL without one */
  float *residual;     /* may be NULL */
  uint32_t parts, part;
  lcomm_select_keep keep;
} lcomm_select_input;

static inline float lcomm_select_bf16_error(float acc) {
  return lcomm_error_kept(acc, lcomm_bf16_to_f32(lcomm_f32_to_bf16_finite(acc)));
}

/* Entries that selecting `kept` of `count` elements needs free in `chosen`,
 * and the keys it needs. */
size_t lcomm_select_room(uint64_t count, uint64_t kept);

/* Accumulate the local range [first, first + count) and append its `kept`
 * largest to `chosen`; kept <= count. What follows them there is overwritten,
 * as is `key`. */
void lcomm_select_range(const lcomm_select_input *input, uint64_t first, uint64_t count,
                        uint64_t kept, lcomm_entries *chosen, uint64_t *key);

/* Drop all but the `kept` largest entries. `key` has room for entries->count. */
void lcomm_select_trim(lcomm_entries *entries, size_t kept, uint64_t *key);

#endif
