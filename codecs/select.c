/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/select.h"

#include <string.h>

#include "kernels/element.h"
#include "kernels/stripe.h"

enum {
  SAMPLE_LEAST = 512,  /* elements of a sample */
  SAMPLE_STRIDE = 256, /* at least one element in so many is sampled */
  SAMPLE_FROM = 1024,  /* smaller ranges are not sampled */
  CANDIDATES_LEAST = 8192,
  CHUNK = 8192 /* elements selected before their values are fetched, still cached */
};

/* Quickselect */

/* Keys are distinct: the larger magnitude is greater, then the lower index. */
static uint64_t key_of(uint32_t bits, uint32_t position) {
  return (uint64_t)(bits & 0x7fffffffu) << 32 | (uint32_t)~position;
}

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
    for (; j > 0 && key[j - 1] < moved; j--)
      key[j] = key[j - 1];
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

void lcomm_select_trim(lcomm_entries *entries, size_t kept, uint64_t *key) {
  if (entries->count <= kept)
    return;
  if (kept == 0) {
    entries->count = 0;
    return;
  }
  for (size_t i = 0; i < entries->count; i++)
    key[i] = key_of(entries->bits[i], entries->position[i]);
  uint64_t last = nth_greatest(key, entries->count, kept);
  size_t end = 0;
  for (size_t i = 0; i < entries->count; i++) {
    uint32_t position = entries->position[i], bits = entries->bits[i];
    entries->position[end] = position;
    entries->bits[end] = bits;
    end += key_of(bits, position) >= last;
  }
  entries->count = end;
}

/* Access by local index */

static uint64_t global_of(const lcomm_select_input *input, uint64_t local) {
  return lcomm_stripe_global(local, input->parts, input->part);
}

/* Where acc is once the pass is over. */
static const float *acc_at(const lcomm_select_input *input, uint64_t local) {
  const float *acc = input->residual != NULL ? input->residual : input->base;
  return acc + global_of(input, local);
}

static void append(lcomm_entries *entries, uint64_t position, uint32_t bits) {
  entries->position[entries->count] = (uint32_t)position;
  entries->bits[entries->count] = bits;
  entries->count++;
}

/* The sample */

static uint64_t sample_size(uint64_t count) {
  uint64_t size = count / SAMPLE_STRIDE;
  return size > SAMPLE_LEAST ? size : SAMPLE_LEAST;
}

size_t lcomm_select_capacity(uint64_t count, uint64_t kept) {
  uint64_t wanted = 4 * kept + CANDIDATES_LEAST;
  return (size_t)(count < wanted ? count : wanted);
}

size_t lcomm_select_keys(uint64_t count, uint64_t kept) {
  size_t candidates = lcomm_select_capacity(count, kept), sample = (size_t)sample_size(count);
  return candidates > sample ? candidates : sample;
}

static uint64_t root_up(uint64_t square) {
  uint64_t root = 0;
  while (root * root < square)
    root++;
  return root;
}

/* A place in each of `size` strata, spread by a hash of its number, so that
 * periodic data does not mislead it. */
static void take_sample(const lcomm_select_input *input, uint64_t first, uint64_t count,
                        uint64_t size, uint64_t *key) {
  uint64_t stratum = count / size;
  for (uint64_t i = 0; i < size; i++) {
    uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15u >> 32;
    uint64_t global = global_of(input, first + i * stratum + hash * stratum / (1ull << 32));
    float acc = input->base[global];
    if (input->residual != NULL)
      acc += input->residual[global];
    key[i] = key_of(lcomm_f32_bits(acc), (uint32_t)i);
  }
}

/* Magnitude bits that at least `kept` elements reach, most probably: four
 * standard deviations down. Never 0: zeros need no search. */
static uint32_t low_threshold(const lcomm_select_input *input, uint64_t first, uint64_t count,
                              uint64_t kept, uint64_t *key) {
  if (count < SAMPLE_FROM)
    return 1;
  uint64_t size = sample_size(count);
  uint64_t expected = kept * size / count + 1;
  uint64_t rank = expected + root_up(16 * expected);
  if (rank > size)
    return 1;
  take_sample(input, first, count, size, key);
  uint32_t magnitude = (uint32_t)(nth_greatest(key, (size_t)size, (size_t)rank) >> 32);
  return magnitude > 0 ? magnitude : 1;
}

/* The pass */

/* Accumulates the range, stores the candidates that fit, returns how many
 * there were. */
static size_t collect(const lcomm_select_input *input, uint64_t first, uint64_t count,
                      uint32_t threshold, lcomm_select_scratch *scratch) {
  lcomm_entries *stored = &scratch->candidates;
  size_t found = 0;
  stored->count = 0;
  for (uint64_t local = first, length; local < first + count; local += length) {
    length = lcomm_stripe_run(local, first + count, input->parts);
    length = length < CHUNK ? length : CHUNK;
    uint64_t global = global_of(input, local);
    float *residual = input->residual != NULL ? input->residual + global : NULL;
    size_t room = scratch->capacity - stored->count;
    size_t hits =
        input->kernels->accumulate_select(input->base + global, residual, (size_t)length, threshold,
                                          (uint32_t)local, stored->position + stored->count, room);
    const float *acc = residual != NULL ? residual : input->base + global;
    size_t end = stored->count + (hits < room ? hits : room);
    for (; stored->count < end; stored->count++)
      stored->bits[stored->count] =
          lcomm_f32_bits(acc[stored->position[stored->count] - (uint32_t)local]);
    found += hits;
  }
  return found;
}

/* All that is not zero was found and is less than `kept`: the zeros with the
 * lowest indices make up the number. */
static void choose_with_zeros(const lcomm_select_input *input, uint64_t first, uint64_t kept,
                              const lcomm_entries *candidates, lcomm_entries *chosen) {
  size_t next = 0;
  uint64_t zeros = kept - candidates->count;
  for (uint64_t local = first; zeros > 0; local++) {
    if (next < candidates->count && candidates->position[next] == local) {
      append(chosen, local, candidates->bits[next++]);
      continue;
    }
    append(chosen, local, lcomm_f32_bits(*acc_at(input, local)));
    zeros--;
  }
  for (; next < candidates->count; next++)
    append(chosen, candidates->position[next], candidates->bits[next]);
}

/* The long way */

enum { DIGIT_BITS = 11, DIGITS = 3 }; /* 33 bits, the magnitude has 31 */

static void count_digits(const lcomm_select_input *input, uint64_t first, uint64_t count,
                         unsigned shift, uint64_t prefix, uint32_t *histogram) {
  memset(histogram, 0, sizeof *histogram << DIGIT_BITS);
  for (uint64_t local = first, length; local < first + count; local += length) {
    length = lcomm_stripe_run(local, first + count, input->parts);
    const float *acc = acc_at(input, local);
    for (uint64_t i = 0; i < length; i++) {
      uint64_t magnitude = (uint64_t)lcomm_f32_magnitude(acc[i]);
      if (magnitude >> shift >> DIGIT_BITS == prefix)
        histogram[(magnitude >> shift) & ((1u << DIGIT_BITS) - 1)]++;
    }
  }
}

/* The kept-th magnitude; *ties is how many elements of just this magnitude
 * belong to the kept ones. */
static uint32_t nth_magnitude(const lcomm_select_input *input, uint64_t first, uint64_t count,
                              uint64_t kept, uint64_t *ties) {
  uint32_t histogram[1u << DIGIT_BITS];
  uint64_t prefix = 0, left = kept;
  for (unsigned digit = DIGITS; digit-- > 0;) {
    count_digits(input, first, count, digit * DIGIT_BITS, prefix, histogram);
    uint32_t value = (1u << DIGIT_BITS) - 1;
    for (; histogram[value] < left; value--)
      left -= histogram[value];
    prefix = prefix << DIGIT_BITS | value;
  }
  *ties = left;
  return (uint32_t)prefix;
}

static void choose_exhaustively(const lcomm_select_input *input, uint64_t first, uint64_t count,
                                uint64_t kept, lcomm_entries *chosen) {
  uint64_t ties;
  uint32_t last = nth_magnitude(input, first, count, kept, &ties);
  for (uint64_t local = first, length; local < first + count; local += length) {
    length = lcomm_stripe_run(local, first + count, input->parts);
    const float *acc = acc_at(input, local);
    for (uint64_t i = 0; i < length; i++) {
      uint32_t magnitude = (uint32_t)lcomm_f32_magnitude(acc[i]);
      if (magnitude < last || (magnitude == last && ties == 0))
        continue;
      ties -= magnitude == last;
      append(chosen, local + i, lcomm_f32_bits(acc[i]));
    }
  }
}

void lcomm_select_range(const lcomm_select_input *input, uint64_t first, uint64_t count,
                        uint64_t kept, lcomm_select_scratch *scratch, lcomm_entries *chosen) {
  uint32_t threshold = low_threshold(input, first, count, kept, scratch->key);
  size_t found = collect(input, first, count, threshold, scratch);
  lcomm_entries *candidates = &scratch->candidates;
  if (found > scratch->capacity || (found < kept && threshold > 1)) {
    choose_exhaustively(input, first, count, kept, chosen);
    return;
  }
  if (found < kept) {
    choose_with_zeros(input, first, kept, candidates, chosen);
    return;
  }
  lcomm_select_trim(candidates, (size_t)kept, scratch->key);
  memcpy(chosen->position + chosen->count, candidates->position,
         candidates->count * sizeof *chosen->position);
  memcpy(chosen->bits + chosen->count, candidates->bits, candidates->count * sizeof *chosen->bits);
  chosen->count += candidates->count;
}
