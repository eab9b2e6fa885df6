/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The one pass of top-k. Few elements pass the threshold, so a step is first
 * asked as a whole whether it holds any. */

#include "kernels/avx2.h"
#include "kernels/avx2_vector.h"

enum { STEP = LCOMM_AVX2_STEP, LANES = LCOMM_AVX2_LANES, VECTORS = STEP / LANES };

typedef struct hit_list {
  uint32_t *index;
  size_t capacity, found;
} hit_list;

/* A bit of `mask` for each index from `first` on. */
LCOMM_AVX2_INLINE void append(hit_list *hits, uint32_t mask, uint32_t first) {
  for (; mask != 0; mask = _blsr_u32(mask), hits->found++) {
    if (hits->found < hits->capacity) {
      hits->index[hits->found] = first + _tzcnt_u32(mask);
    }
  }
}

LCOMM_AVX2_INLINE void select_step(const __m256 value[VECTORS], __m256i below, uint32_t first,
                                   hit_list *hits) {
  __m256 hit[VECTORS];
  for (int v = 0; v < VECTORS; v++) {
    hit[v] = _mm256_castsi256_ps(_mm256_cmpgt_epi32(lcomm_avx2_magnitude(value[v]), below));
  }
  __m256 any = _mm256_or_ps(_mm256_or_ps(hit[0], hit[1]), _mm256_or_ps(hit[2], hit[3]));
  if (_mm256_movemask_ps(any) == 0) {
    return;
  }
  uint32_t mask = 0;
  for (int v = 0; v < VECTORS; v++) {
    mask |= (uint32_t)_mm256_movemask_ps(hit[v]) << (v * LANES);
  }
  append(hits, mask, first);
}

static void select_steps(const float *source, size_t n, __m256i below, uint32_t first_index,
                         hit_list *hits) {
  for (size_t i = 0; i < n; i += STEP) {
    __m256 value[VECTORS];
    lcomm_avx2_prefetch(source + i, STEP * sizeof *source);
    for (int v = 0; v < VECTORS; v++) {
      value[v] = _mm256_loadu_ps(source + i + v * LANES);
    }
    select_step(value, below, first_index + (uint32_t)i, hits);
  }
}

static void accumulate_steps(const float *source, const float *before, float *residual, size_t n,
                             __m256i below, uint32_t first_index, hit_list *hits) {
  for (size_t i = 0; i < n; i += STEP) {
    __m256 value[VECTORS];
    lcomm_avx2_prefetch(source + i, STEP * sizeof *source);
    lcomm_avx2_prefetch(before + i, STEP * sizeof *before);
    for (int v = 0; v < VECTORS; v++) {
      size_t at = i + (size_t)(v * LANES);
      value[v] = _mm256_add_ps(_mm256_loadu_ps(source + at), _mm256_loadu_ps(before + at));
      _mm256_storeu_ps(residual + at, value[v]);
    }
    select_step(value, below, first_index + (uint32_t)i, hits);
  }
}

static void select_few(const float *source, const float *before, float *residual, size_t first,
                       size_t n, int32_t below, uint32_t first_index, hit_list *hits) {
  for (size_t i = first; i < n; i++) {
    float value = source[i];
    if (residual) {
      residual[i] = value = source[i] + before[i];
    }
    append(hits, lcomm_f32_magnitude(value) > below, first_index + (uint32_t)i);
  }
}

size_t lcomm_avx2_accumulate_select(const float *source, const float *before, float *residual,
                                    size_t n, uint32_t threshold_bits, uint32_t first_index,
                                    uint32_t *index, size_t capacity) {
  /* magnitude >= threshold, as a signed comparison that also knows 0. */
  int32_t below = threshold_bits > 0x7fffffffu ? INT32_MAX : (int32_t)threshold_bits - 1;
  hit_list hits = {.index = index, .capacity = capacity, .found = 0};
  size_t body = n - n % STEP;
  if (residual) {
    accumulate_steps(source, before, residual, body, _mm256_set1_epi32(below), first_index, &hits);
  } else {
    select_steps(source, body, _mm256_set1_epi32(below), first_index, &hits);
  }
  select_few(source, before, residual, body, n, below, first_index, &hits);
  return hits.found;
}
