/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_quality.h"

#include <math.h>
#include <string.h>

#include "tools/codec/codec_entropy.h"

void lcomm_quality_compare(lcomm_quality *quality, const float *given, const float *arrived,
                           size_t n) {
  lcomm_quality sum = {0}; /* a copy that stays in registers */
  for (size_t i = 0; i < n; i++) {
    double in = (double)given[i], out = (double)arrived[i];
    bool in_finite = isfinite(in), out_finite = isfinite(out);
    sum.not_finite_in += !in_finite;
    sum.not_finite_out += !out_finite;
    sum.not_zero += in < 0.0 || in > 0.0;
    sum.flushed += (in < 0.0 || in > 0.0) && !(out < 0.0 || out > 0.0) && out_finite;
    if (!in_finite || !out_finite) {
      continue;
    }
    double error = out - in;
    sum.error_square += error * error;
    sum.given_square += in * in;
    sum.arrived_square += out * out;
    sum.product += in * out;
    sum.error_max = fmax(sum.error_max, fabs(error));
    sum.given_max = fmax(sum.given_max, fabs(in));
  }
  sum.count = n;
  lcomm_quality_merge(quality, &sum);
}

void lcomm_quality_weigh(lcomm_quality *quality, const lcomm_under_test *tested) {
  lcomm_under_test_sizes sizes = lcomm_under_test_sizes_of(tested);
  quality->payload_bytes += sizes.payload_bytes;
  quality->sent_bytes += sizes.sent_bytes;
  quality->entries += sizes.entries;
  quality->index_bytes += sizes.index_bytes;
  quality->sent_index_bytes += sizes.sent_index_bytes;
  quality->limit_bits +=
      lcomm_entropy_payload(lcomm_under_test_format(tested), lcomm_under_test_payload(tested),
                            sizes.payload_bytes, lcomm_under_test_count(tested));
}

void lcomm_quality_merge(lcomm_quality *quality, const lcomm_quality *part) {
  quality->count += part->count;
  quality->payload_bytes += part->payload_bytes;
  quality->sent_bytes += part->sent_bytes;
  quality->limit_bits += part->limit_bits;
  quality->entries += part->entries;
  quality->index_bytes += part->index_bytes;
  quality->sent_index_bytes += part->sent_index_bytes;
  quality->error_square += part->error_square;
  quality->given_square += part->given_square;
  quality->arrived_square += part->arrived_square;
  quality->product += part->product;
  quality->error_max = fmax(quality->error_max, part->error_max);
  quality->given_max = fmax(quality->given_max, part->given_max);
  quality->not_zero += part->not_zero;
  quality->flushed += part->flushed;
  quality->not_finite_in += part->not_finite_in;
  quality->not_finite_out += part->not_finite_out;
}

static double share(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}

double lcomm_quality_ratio(const lcomm_quality *quality) {
  return share((double)sizeof(float) * (double)quality->count, (double)quality->sent_bytes);
}

double lcomm_quality_bits(const lcomm_quality *quality) {
  return share(8.0 * (double)quality->sent_bytes, (double)quality->count);
}

double lcomm_quality_limit(const lcomm_quality *quality) {
  return share(quality->limit_bits, (double)quality->count);
}

double lcomm_quality_nmse(const lcomm_quality *quality) {
  if (quality->given_square > 0.0) {
    return quality->error_square / quality->given_square;
  }
  return quality->error_square > 0.0 ? (double)INFINITY : 0.0;
}

double lcomm_quality_cosine(const lcomm_quality *quality) {
  double given = quality->given_square, arrived = quality->arrived_square;
  if (!(given > 0.0) && !(arrived > 0.0)) {
    return 1.0;
  }
  if (!(given > 0.0) || !(arrived > 0.0)) {
    return 0.0;
  }
  return quality->product / (sqrt(given) * sqrt(arrived));
}

double lcomm_quality_flushed(const lcomm_quality *quality) {
  return share((double)quality->flushed, (double)quality->not_zero);
}

double lcomm_quality_index_bits(const lcomm_quality *quality) {
  return share(8.0 * (double)quality->index_bytes, (double)quality->entries);
}

double lcomm_quality_sent_index_bits(const lcomm_quality *quality) {
  return share(8.0 * (double)quality->sent_index_bytes, (double)quality->entries);
}

double lcomm_quality_entry_bits(const lcomm_quality *quality) {
  return share(8.0 * (double)quality->sent_bytes, (double)quality->entries);
}

size_t lcomm_quality_figures(const lcomm_quality *q,
                             lcomm_named_figure figures[LCOMM_QUALITY_FIGURES]) {
  const lcomm_named_figure all[LCOMM_QUALITY_FIGURES] = {
      {"values", (double)q->count},
      {"sent_bytes", (double)q->sent_bytes},
      {"ratio", lcomm_quality_ratio(q)},
      {"bits_per_value", lcomm_quality_bits(q)},
      {"limit_bits_per_value", lcomm_quality_limit(q)},
      {"nmse", lcomm_quality_nmse(q)},
      {"cosine", lcomm_quality_cosine(q)},
      {"error_max", q->error_max},
      {"given_max", q->given_max},
      {"flushed_share", lcomm_quality_flushed(q)},
      {"not_finite_in", (double)q->not_finite_in},
      {"not_finite_out", (double)q->not_finite_out},
      /* of the sparse codec */
      {"entries", (double)q->entries},
      {"index_bits", lcomm_quality_index_bits(q)},
      {"sent_index_bits", lcomm_quality_sent_index_bits(q)},
      {"entry_bits", lcomm_quality_entry_bits(q)}};
  enum { OF_ENTRIES = 4 };
  memcpy(figures, all, sizeof all);
  return q->entries > 0 ? LCOMM_QUALITY_FIGURES : LCOMM_QUALITY_FIGURES - OF_ENTRIES;
}
