/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_SUM_H
#define LCOMM_CODECS_CODEC_SUM_H

/* Sums of many dense payloads in one pass over memory: a tile of the result
 * stays in the first-level cache while all sources are added to it, in their
 * order. One pass per source would read and write the result every time. */

#include "codecs/codec.h"

/* A summand of a range: a payload, or plain values when payload is NULL. */
typedef struct lcomm_summand {
  const lcomm_format *format; /* of the payload */
  const uint8_t *payload;     /* the whole of it */
  const float *values;        /* at element range.first; may be the destination */
} lcomm_summand;

/* destination = factor * (s[0] + s[1] + ...), rounded after every addition,
 * `count` >= 1. `destination` points at element range.first. */
void lcomm_sum(const lcomm_kernels *kernels, const lcomm_summand *summands, size_t count,
               lcomm_range range, float factor, float *destination);

/* The same, and encodes the result by `format` in the same pass:
 * payload = Q(destination). */
void lcomm_sum_encode(const lcomm_kernels *kernels, const lcomm_summand *summands, size_t count,
                      lcomm_range range, float factor, float *destination,
                      const lcomm_format *format, uint64_t seed, uint8_t *payload);

#endif
