/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/codec_select_rank.h"

#include <stdbool.h>
#include <string.h>

enum {
  COARSE_SHIFT = 20, /* 31 bits in 2048 bins */
  FINE_SHIFT = 12    /* 23 bits in 2048 bins */
};

void lcomm_rank_coarse(lcomm_rank_histogram *histogram, uint32_t low) {
  memset(histogram, 0, sizeof *histogram);
  histogram->low = low;
  histogram->shift = COARSE_SHIFT;
}

void lcomm_rank_fine(lcomm_rank_histogram *histogram, uint32_t low) {
  memset(histogram, 0, sizeof *histogram);
  histogram->low = low;
  histogram->shift = FINE_SHIFT;
}

/* The bin of the rank-th greatest value; *within is its rank in that bin. */
static uint32_t find(const lcomm_rank_histogram *histogram, uint64_t rank, uint64_t *within) {
  uint32_t bin = LCOMM_RANK_BINS - 1;
  for (; bin > 0 && histogram->bin[bin] < rank; bin--) {
    rank -= histogram->bin[bin];
  }
  *within = rank;
  return bin;
}

/* Quickselect */

static uint64_t median(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t low = a < b ? a : b, high = a < b ? b : a;
  uint64_t middle = high < c ? high : c;
  return low > middle ? low : middle;
}

/* One key of each third: distinct keys, so the pivot is neither the smallest
 * nor the greatest. The places are pseudo-random, so that no regular data is
 * a bad case. */
static uint64_t choose_pivot(const uint64_t *key, size_t n, uint64_t *state) {
  size_t third = n / 3;
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  size_t place = (size_t)(*state >> 32) % third;
  return median(key[place], key[third + place], key[2 * third + place]);
}

/* Moves the keys above `pivot` to the front, without branches. Returns their
 * number. */
static size_t partition(uint64_t *key, size_t n, uint64_t pivot) {
  size_t above = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t moved = key[i];
    key[i] = key[above];
    key[above] = moved;
    above += moved > pivot;
  }
  return above;
}

static void sort_descending(uint64_t *key, size_t n) {
  for (size_t i = 1; i < n; i++) {
    uint64_t moved = key[i];
    size_t j = i;
    for (; j > 0 && key[j - 1] < moved; j--) {
      key[j] = key[j - 1];
    }
    key[j] = moved;
  }
}

/* The rank-th greatest of n distinct keys, 1 <= rank <= n. Permutes them. */
static uint64_t nth_greatest(uint64_t *key, size_t n, size_t rank) {
  uint64_t state = n;
  while (n > 16) {
    size_t above = partition(key, n, choose_pivot(key, n, &state));
    if (rank <= above) {
      n = above;
    } else {
      key += above;
      n -= above;
      rank -= above;
    }
  }
  sort_descending(key, n);
  return key[rank - 1];
}

/* Magnitudes [begin, begin + length). */
typedef struct magnitude_range {
  uint32_t begin, length;
} magnitude_range;

static magnitude_range range_of(const lcomm_rank_histogram *histogram, uint32_t bin) {
  bool last = bin == LCOMM_RANK_BINS - 1;
  return (magnitude_range){.begin = histogram->low + (bin << histogram->shift),
                           .length = last ? 1u << 31 : 1u << histogram->shift};
}

static bool is_in(magnitude_range range, float value) {
  return (uint32_t)lcomm_f32_magnitude(value) - range.begin < range.length;
}

/* A bin holds few of the values, so most groups have none of them and are skipped. */
enum { GROUP = 32 };

static bool any_in(magnitude_range range, const float value[GROUP]) {
  uint32_t any = 0;
  for (int i = 0; i < GROUP; i++) {
    any |= is_in(range, value[i]);
  }
  return any != 0;
}

/* The keys of the entries in the range; returns how many. */
static size_t gather(const lcomm_entries *entries, magnitude_range range, uint64_t *key) {
  size_t n = 0;
  for (size_t first = 0, end; first < entries->count; first = end) {
    end = entries->count - first < GROUP ? entries->count : first + GROUP;
    if (end == first + GROUP && !any_in(range, entries->value + first)) {
      continue;
    }
    for (size_t i = first; i < end; i++) {
      key[n] = lcomm_rank_key(entries->value[i], entries->position[i]);
      n += is_in(range, entries->value[i]);
    }
  }
  return n;
}

uint64_t lcomm_rank_nth(const lcomm_rank_histogram *histogram, const lcomm_entries *entries,
                        uint64_t rank, uint64_t *key) {
  uint64_t within;
  uint32_t bin = find(histogram, rank, &within);
  return nth_greatest(key, gather(entries, range_of(histogram, bin), key), (size_t)within);
}
