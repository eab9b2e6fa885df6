/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_SELECT_INTERNAL_H
#define LCOMM_CODECS_CODEC_SELECT_INTERNAL_H

/* What the parts of selection share: codec_select.c is the usual way, codec_select_sample.c
 * finds its threshold, codec_select_long.c is the way when that misled. */

#include "codecs/codec_select.h"
#include "kernels/stripe.h"

static inline uint64_t lcomm_select_global(const lcomm_select_input *input, uint64_t local) {
  return lcomm_stripe_global(local, input->parts, input->part);
}

/* Local indices [first, first + count), of which `kept` are to be chosen. */
typedef struct lcomm_select_span {
  uint64_t first, count, kept;
} lcomm_select_span;

static inline void lcomm_select_append(lcomm_entries *entries, uint64_t position, float value) {
  entries->position[entries->count] = (uint32_t)position;
  entries->value[entries->count] = value;
  entries->count++;
}

/* Elements in the sample of a range of `count`; 0: it is too short for one. */
uint64_t lcomm_select_sample_size(uint64_t count);

/* Thresholds, as magnitude bits. With high probability at least `kept` elements
 * reach `least`; about `kept` elements reach `likely`. Never 0, because zeros need
 * no search; both are 1 where the sample is of no use. */
typedef struct lcomm_threshold {
  uint32_t least, likely;
} lcomm_threshold;

/* The probability that fewer than `kept` elements reach `least`. */
typedef enum lcomm_select_margin {
  LCOMM_SELECT_USUAL, /* 1 in 1000: searching twice, at times, is cheaper */
  LCOMM_SELECT_WIDE
} lcomm_select_margin;

/* `sample` has room for the sample, `key` for as many keys. */
lcomm_threshold lcomm_select_threshold(const lcomm_select_input *input, lcomm_select_span span,
                                       lcomm_select_margin margin, lcomm_entries *sample,
                                       uint64_t *key);

/* The two below work on `acc` as base, without a residual, and append to
 * `chosen`. */

/* For a span with fewer than `kept` elements that are not zero: all of these
 * are in `candidates`, in the free end of `chosen`. The zeros with the lowest
 * indices make up the number. */
void lcomm_select_with_zeros(const lcomm_select_input *acc, lcomm_select_span span,
                             const lcomm_entries *candidates, lcomm_entries *chosen);

/* Without candidates, in four passes. */
void lcomm_select_exhaustively(const lcomm_select_input *acc, lcomm_select_span span,
                               lcomm_entries *chosen);

#endif
