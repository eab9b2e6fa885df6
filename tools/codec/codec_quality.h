/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_QUALITY_H
#define LCOMM_TOOLS_CODEC_CODEC_QUALITY_H

/* How a codec treats values: what is sent of them, and how far what arrives is
 * from what was given. Sums only, so parts can be measured one by one and
 * merged. */

#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"
#include "tools/codec/codec_under_test.h"

typedef struct lcomm_quality {
  uint64_t count;         /* values */
  uint64_t payload_bytes; /* before the lossless stage */
  uint64_t sent_bytes;    /* after it; the same where there is none */
  double limit_bits;      /* entropy limit of the payloads, codec_entropy.h */

  /* of the sparse codec */
  uint64_t entries;
  uint64_t index_bytes;      /* of the positions in the payloads */
  uint64_t sent_index_bytes; /* the same after the lossless stage */

  /* over all values where given and arrived are finite */
  double error_square; /* sum of (arrived - given)^2 */
  double given_square, arrived_square, product;
  double error_max; /* largest |arrived - given| */
  double given_max; /* largest |given| */

  uint64_t not_zero;       /* values that are not 0 ... */
  uint64_t flushed;        /* ... and arrive as 0 */
  uint64_t not_finite_in;  /* NaN and Inf among the given, */
  uint64_t not_finite_out; /* among the arrived */
} lcomm_quality;

/* Add n values to the sums of differences. */
void lcomm_quality_compare(lcomm_quality *quality, const float *given, const float *arrived,
                           size_t n);

/* Add what the codec under test has encoded just now to the sums of sizes. */
void lcomm_quality_weigh(lcomm_quality *quality, const lcomm_under_test *tested);

void lcomm_quality_merge(lcomm_quality *quality, const lcomm_quality *part);

/* 32 bits a value / what is sent; 0 when nothing was sent. */
double lcomm_quality_ratio(const lcomm_quality *quality);

/* Bits that are sent for a value, and the entropy limit of the same. */
double lcomm_quality_bits(const lcomm_quality *quality);
double lcomm_quality_limit(const lcomm_quality *quality);

/* Normalised mean squared error: mean of the squared error over the mean of the
 * squares; 0 when both are 0, infinity when only the latter is. */
double lcomm_quality_nmse(const lcomm_quality *quality);

/* Cosine of the angle between given and arrived; 1 when both are 0, 0 when one
 * is. */
double lcomm_quality_cosine(const lcomm_quality *quality);

/* Share of the values other than 0 that arrive as 0. */
double lcomm_quality_flushed(const lcomm_quality *quality);

/* The same per entry of the sparse codec: bits of a position as packed and
 * after the lossless stage, and bits of all that is sent. 0 without entries. */
double lcomm_quality_index_bits(const lcomm_quality *quality);
double lcomm_quality_sent_index_bits(const lcomm_quality *quality);
double lcomm_quality_entry_bits(const lcomm_quality *quality);

/* All figures with the names that JSON and CSV give them. Returns how many there are. */
typedef struct lcomm_named_figure {
  const char *name;
  double value;
} lcomm_named_figure;

enum { LCOMM_QUALITY_FIGURES = 16 };
size_t lcomm_quality_figures(const lcomm_quality *quality,
                             lcomm_named_figure figures[LCOMM_QUALITY_FIGURES]);

#endif
