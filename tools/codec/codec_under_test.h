/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_UNDER_TEST_H
#define LCOMM_TOOLS_CODEC_CODEC_UNDER_TEST_H

/* The codec under test: one codec on vectors of one length, dense or sparse, with or
 * without the lossless stage, with or without error feedback, behind one
 * interface. It owns the memory that takes: payload, stream, residual. One
 * thread at a time, in the standard floating-point environment. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/plan/policy.h"

typedef struct lcomm_under_test lcomm_under_test;

typedef struct lcomm_under_test_shape {
  const lcomm_codec_spec *choice; /* copied */
  uint64_t count;                 /* values, at least 1 */
  /* Top-k keeps its share of each segment: their ascending ends, the last one
   * equal to count. Copied. segments 0: one of all values. */
  const uint64_t *segment_ends;
  size_t segments;
} lcomm_under_test_shape;

/* ARGUMENT when the codec cannot work on so many values (the sparse one: below
 * 2^32), MEMORY. Free with lcomm_under_test_destroy (NULL ok). */
lcomm_status lcomm_under_test_create(const lcomm_under_test_shape *shape,
                                     lcomm_under_test **tested);
void lcomm_under_test_destroy(lcomm_under_test *tested);

uint64_t lcomm_under_test_count(const lcomm_under_test *tested);
const lcomm_format *lcomm_under_test_format(const lcomm_under_test *tested);

/* Encode `source`, with error feedback source + residual. `seed` is for
 * stochastic rounding. Allocates nothing, as do those below. */
void lcomm_under_test_encode(lcomm_under_test *tested, const lcomm_kernels *kernels,
                             const float *source, uint64_t seed);

/* What was encoded last, back into values: destination = value, or
 * destination += value. The status is that of the lossless stage. */
lcomm_status lcomm_under_test_decode(lcomm_under_test *tested, const lcomm_kernels *kernels,
                                     float *destination);
lcomm_status lcomm_under_test_add(lcomm_under_test *tested, const lcomm_kernels *kernels,
                                  float *destination);

/* The payload that was encoded last, before the lossless stage. */
const uint8_t *lcomm_under_test_payload(const lcomm_under_test *tested);

/* Sizes of what was encoded last, as in lcomm_quality. */
typedef struct lcomm_under_test_sizes {
  size_t payload_bytes, sent_bytes;
  uint64_t entries;
  size_t index_bytes, sent_index_bytes;
} lcomm_under_test_sizes;

lcomm_under_test_sizes lcomm_under_test_sizes_of(const lcomm_under_test *tested);

/* Set the carried residual to 0. */
void lcomm_under_test_reset(lcomm_under_test *tested);

#endif
