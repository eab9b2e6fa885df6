/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The one pass of top-k, scalar. Few elements pass, so a block is first
 * compared as a whole into one byte per element, which compilers vectorise,
 * and only words of eight bytes that hold a hit are looked at closer.
 */

#include "kernels/element.h"
#include "kernels/prefetch.h"
#include "kernels/scalar.h"

enum { BLOCK = LCOMM_BLOCK, WORD = 8 };

typedef struct hit_list {
  uint32_t *index;
  size_t capacity, found;
} hit_list;

static void append(hit_list *hits, uint32_t index) {
  if (hits->found < hits->capacity) {
    hits->index[hits->found] = index;
  }
  hits->found++;
}

/* `before` may be the residual, so the sums are stored when all are made. */
static void accumulate_block(const float *source, const float *before, float *residual) {
  float sum[BLOCK];
  lcomm_prefetch_write(residual);
  for (int i = 0; i < BLOCK; i++) {
    sum[i] = source[i] + before[i];
  }
  memcpy(residual, sum, sizeof sum);
}

static void select_block(const float *restrict value, int32_t below, uint32_t first_index,
                         hit_list *hits) {
  uint8_t hit[BLOCK];
  for (int i = 0; i < BLOCK; i++) {
    hit[i] = lcomm_f32_magnitude(value[i]) > below;
  }
  for (uint32_t w = 0; w < BLOCK; w += WORD) {
    uint64_t word;
    memcpy(&word, hit + w, sizeof word);
    for (; word != 0; word &= word - 1) {
      append(hits, first_index + w + (uint32_t)__builtin_ctzll(word) / WORD);
    }
  }
}

static void select_tail(const float *source, const float *before, float *residual, size_t n,
                        int32_t below, uint32_t first_index, hit_list *hits) {
  for (size_t i = 0; i < n; i++) {
    float value = source[i];
    if (residual) {
      residual[i] = value = source[i] + before[i];
    }
    if (lcomm_f32_magnitude(value) > below) {
      append(hits, first_index + (uint32_t)i);
    }
  }
}

size_t lcomm_scalar_accumulate_select(const float *source, const float *before, float *residual,
                                      size_t n, uint32_t threshold_bits, uint32_t first_index,
                                      uint32_t *index, size_t capacity) {
  /* magnitude >= threshold, as a signed comparison that also knows 0. */
  int32_t below = threshold_bits > 0x7fffffffu ? INT32_MAX : (int32_t)threshold_bits - 1;
  hit_list hits = {.index = index, .capacity = capacity, .found = 0};
  size_t whole = n - n % BLOCK;
  for (size_t i = 0; i < whole; i += BLOCK) {
    lcomm_prefetch_read(source + i);
    if (residual) {
      accumulate_block(source + i, before + i, residual + i);
    }
    select_block(residual ? residual + i : source + i, below, first_index + (uint32_t)i, &hits);
  }
  select_tail(source + whole, residual ? before + whole : NULL, residual ? residual + whole : NULL,
              n - whole, below, first_index + (uint32_t)whole, &hits);
  return hits.found;
}
