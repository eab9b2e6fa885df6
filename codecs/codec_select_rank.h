/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_SELECT_RANK_H
#define LCOMM_CODECS_CODEC_SELECT_RANK_H

/* The rank-th greatest of values in memory: a histogram of the magnitudes
 * finds the bin it lies in, quickselect finds it among the few of that bin. */

#include <stddef.h>
#include <stdint.h>

#include "kernels/element.h"

/* Positions in ascending order, and the values there. */
typedef struct lcomm_entries {
  uint32_t *position;
  float *value;
  size_t count;
} lcomm_entries;

/* The larger magnitude is greater, then the lower position. Keys of different
 * positions are different. */
static inline uint64_t lcomm_rank_key(float value, uint32_t position) {
  return (uint64_t)lcomm_f32_magnitude(value) << 32 | (uint32_t)~position;
}

enum { LCOMM_RANK_BINS = 2048 };

/* Bins of 2^shift magnitude bits from `low` on; the last one holds all that is
 * above. Values below `low` must not be counted. */
typedef struct lcomm_rank_histogram {
  uint32_t low, shift;
  uint32_t bin[LCOMM_RANK_BINS];
} lcomm_rank_histogram;

/* All magnitudes from `low` on, an eighth of an octave in each bin. */
void lcomm_rank_coarse(lcomm_rank_histogram *histogram, uint32_t low);

/* An octave above `low` in all bins but the last. */
void lcomm_rank_fine(lcomm_rank_histogram *histogram, uint32_t low);

static inline uint32_t lcomm_rank_bin(const lcomm_rank_histogram *histogram, float value) {
  uint32_t bin = ((uint32_t)lcomm_f32_magnitude(value) - histogram->low) >> histogram->shift;
  return bin < LCOMM_RANK_BINS ? bin : LCOMM_RANK_BINS - 1;
}

static inline void lcomm_rank_count(lcomm_rank_histogram *histogram, float value) {
  histogram->bin[lcomm_rank_bin(histogram, value)]++;
}

/* The key of the rank-th greatest of the entries, all of which were counted;
 * 1 <= rank <= entries->count. `key` has room for a key of each entry. */
uint64_t lcomm_rank_nth(const lcomm_rank_histogram *histogram, const lcomm_entries *entries,
                        uint64_t rank, uint64_t *key);

#endif
