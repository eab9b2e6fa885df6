/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_UNDER_TEST_H
#define LCOMM_TOOLS_CODEC_CODEC_UNDER_TEST_H

/* One codec choice at work on vectors of one length: dense or sparse, with or
 * without the lossless stage, with or without error feedback, behind one
 * interface. It owns the memory that takes: payload, stream, residual. One
 * thread at a time, in the standard floating-point environment. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/plan/policy.h"

typedef struct lcomm_subject lcomm_subject;

typedef struct lcomm_subject_shape {
  const lcomm_codec_choice *choice; /* copied */
  uint64_t count;                   /* values, at least 1 */
  /* Top-k keeps its share of each segment: their ascending ends, the last one
   * equal to count. Copied. segments 0: one of all values. */
  const uint64_t *segment_ends;
  size_t segments;
} lcomm_subject_shape;

/* ARGUMENT when the codec cannot work on so many values (the sparse one: below
 * 2^32), MEMORY. Free with lcomm_subject_destroy (NULL ok). */
lcomm_status lcomm_subject_create(const lcomm_subject_shape *shape, lcomm_subject **subject);
void lcomm_subject_destroy(lcomm_subject *subject);

uint64_t lcomm_subject_count(const lcomm_subject *subject);
const lcomm_format *lcomm_subject_format(const lcomm_subject *subject);

/* Encode `source`, with error feedback source + residual. `seed` is for
 * stochastic rounding. Allocates nothing, as do those below. */
void lcomm_subject_encode(lcomm_subject *subject, const lcomm_kernels *kernels, const float *source,
                          uint64_t seed);

/* What was encoded last, back into values: destination = value, or
 * destination += value. The status is that of the lossless stage. */
lcomm_status lcomm_subject_decode(lcomm_subject *subject, const lcomm_kernels *kernels,
                                  float *destination);
lcomm_status lcomm_subject_add(lcomm_subject *subject, const lcomm_kernels *kernels,
                               float *destination);

/* The payload that was encoded last, before the lossless stage. */
const uint8_t *lcomm_subject_payload(const lcomm_subject *subject);

/* Sizes of what was encoded last, as in lcomm_quality. */
typedef struct lcomm_subject_sizes {
  size_t payload_bytes, sent_bytes;
  uint64_t entries;
  size_t index_bytes, sent_index_bytes;
} lcomm_subject_sizes;

lcomm_subject_sizes lcomm_subject_sizes_of(const lcomm_subject *subject);

/* Forget what was not sent. */
void lcomm_subject_reset(lcomm_subject *subject);

#endif
