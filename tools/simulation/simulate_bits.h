/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_BITS_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_BITS_H

/* A set of numbers below a bound, whose smallest member is found fast: a bit for each, and a bit
 * for each word of those. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct simulate_bits {
  uint64_t *words;   /* simulate_bits_words(bound) of them, first 0 */
  uint64_t *summary; /* behind them */
  uint32_t count;
} simulate_bits;

static inline size_t simulate_bits_low(uint32_t bound) {
  return (size_t)bound / 64 + 1;
}

/* Words of memory of a set of numbers below `bound`. */
static inline size_t simulate_bits_words(uint32_t bound) {
  return simulate_bits_low(bound) + simulate_bits_low((uint32_t)simulate_bits_low(bound));
}

static inline simulate_bits simulate_bits_at(uint64_t *zeros, uint32_t bound) {
  return (simulate_bits){zeros, zeros + simulate_bits_low(bound), 0};
}

static inline void simulate_bits_add(simulate_bits *bits, uint32_t number) {
  bits->words[number / 64] |= UINT64_C(1) << (number % 64);
  bits->summary[number / 4096] |= UINT64_C(1) << (number / 64 % 64);
  bits->count++;
}

/* The smallest member, which is taken away. The set is not empty. */
static inline uint32_t simulate_bits_take(simulate_bits *bits) {
  size_t high = 0;
  while (bits->summary[high] == 0) {
    high++;
  }
  size_t low = high * 64 + (size_t)__builtin_ctzll(bits->summary[high]);
  uint32_t number = (uint32_t)(low * 64) + (uint32_t)__builtin_ctzll(bits->words[low]);
  bits->words[low] &= bits->words[low] - 1;
  if (bits->words[low] == 0) {
    bits->summary[high] &= bits->summary[high] - 1;
  }
  bits->count--;
  return number;
}

#endif
