/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Selection where the candidates are not enough or too many: ranges that are
 * mostly zeros, floods of equal values, and samples that misled. */

#include <string.h>

#include "codecs/codec_select_internal.h"

void lcomm_select_with_zeros(const lcomm_select_input *acc, lcomm_select_span span,
                             const lcomm_entries *candidates, lcomm_entries *chosen) {
  size_t zeros = (size_t)span.kept - candidates->count, end = chosen->count + (size_t)span.kept;
  size_t next = chosen->count + zeros; /* candidates make room for what comes before them */
  memmove(chosen->position + next, candidates->position,
          candidates->count * sizeof *chosen->position);
  memmove(chosen->value + next, candidates->value, candidates->count * sizeof *chosen->value);
  for (uint64_t local = span.first; zeros > 0; local++) {
    if (next < end && chosen->position[next] == local) {
      lcomm_select_append(chosen, local, chosen->value[next++]);
      continue;
    }
    lcomm_select_append(chosen, local, acc->base[lcomm_select_global(acc, local)]);
    zeros--;
  }
  chosen->count = end; /* the rest is in its place */
}

enum { DIGIT_BITS = 11, DIGITS = 3 }; /* 33 bits, the magnitude has 31 */

static void count_digits(const lcomm_select_input *acc, lcomm_select_span span, unsigned shift,
                         uint64_t prefix, uint32_t *histogram) {
  memset(histogram, 0, sizeof *histogram << DIGIT_BITS);
  for (uint64_t local = span.first, end = local + span.count, length; local < end;
       local += length) {
    length = lcomm_stripe_run(local, end, acc->parts);
    const float *value = acc->base + lcomm_select_global(acc, local);
    for (uint64_t i = 0; i < length; i++) {
      uint64_t magnitude = (uint64_t)lcomm_f32_magnitude(value[i]);
      if (magnitude >> shift >> DIGIT_BITS == prefix) {
        histogram[(magnitude >> shift) & ((1u << DIGIT_BITS) - 1)]++;
      }
    }
  }
}

/* The kept-th magnitude; *ties is how many elements of just this magnitude
 * belong to the kept ones. */
static uint32_t nth_magnitude(const lcomm_select_input *acc, lcomm_select_span span,
                              uint64_t *ties) {
  uint32_t histogram[1u << DIGIT_BITS];
  uint64_t prefix = 0, left = span.kept;
  for (unsigned digit = DIGITS; digit-- > 0;) {
    count_digits(acc, span, digit * DIGIT_BITS, prefix, histogram);
    uint32_t bin = (1u << DIGIT_BITS) - 1;
    for (; histogram[bin] < left; bin--) {
      left -= histogram[bin];
    }
    prefix = prefix << DIGIT_BITS | bin;
  }
  *ties = left;
  return (uint32_t)prefix;
}

void lcomm_select_exhaustively(const lcomm_select_input *acc, lcomm_select_span span,
                               lcomm_entries *chosen) {
  uint64_t ties;
  uint32_t last = nth_magnitude(acc, span, &ties);
  for (uint64_t local = span.first, end = local + span.count, length; local < end;
       local += length) {
    length = lcomm_stripe_run(local, end, acc->parts);
    const float *value = acc->base + lcomm_select_global(acc, local);
    for (uint64_t i = 0; i < length; i++) {
      uint32_t magnitude = (uint32_t)lcomm_f32_magnitude(value[i]);
      if (magnitude < last || (magnitude == last && ties == 0)) {
        continue;
      }
      ties -= magnitude == last;
      lcomm_select_append(chosen, local + i, value[i]);
    }
  }
}
