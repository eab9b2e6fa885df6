/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The one pass of top-k with AVX-512. Few elements pass, so 64 are looked at
 * together; where any of them does, the indices are compressed in a register and
 * stored as a whole vector, without more branches. (Compressing to memory is
 * microcode on some processors, 100 times slower.) */

#include "kernels/avx512.h"
#include "kernels/avx512_vector.h"

typedef struct hit_list {
  uint32_t *index;
  size_t capacity, found;
} hit_list;

LCOMM_VECTOR void append(hit_list *hits, __mmask16 hit, __m512i indices) {
  __m512i packed = _mm512_maskz_compress_epi32(hit, indices);
  size_t found = hits->found;
  if (found + LCOMM_LANES <= hits->capacity) {
    _mm512_storeu_si512(hits->index + found, packed);
  } else if (found < hits->capacity) {
    _mm512_mask_storeu_epi32(hits->index + found, lcomm_lanes(hits->capacity - found), packed);
  }
  hits->found = found + (size_t)__builtin_popcount(hit);
}

typedef enum residual_use { NO_RESIDUAL, WITH_RESIDUAL } residual_use;

LCOMM_VECTOR __m512i accumulate(residual_use use, const float *source, const float *before,
                                float *residual) {
  __m512 value = _mm512_loadu_ps(source);
  if (use == NO_RESIDUAL) {
    return _mm512_castps_si512(value);
  }
  value = _mm512_add_ps(value, _mm512_loadu_ps(before));
  _mm512_storeu_ps(residual, value);
  return _mm512_castps_si512(value);
}

LCOMM_VECTOR __m512i accumulate_lanes(residual_use use, const float *source, const float *before,
                                      float *residual, __mmask16 lanes) {
  __m512 value = _mm512_maskz_loadu_ps(lanes, source);
  if (use == NO_RESIDUAL) {
    return _mm512_castps_si512(value);
  }
  value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes, before));
  _mm512_mask_storeu_ps(residual, lanes, value);
  return _mm512_castps_si512(value);
}

enum { GROUP = 4 };

LCOMM_VECTOR size_t run(residual_use use, const float *source, const float *before, float *residual,
                        size_t n, uint32_t threshold_bits, uint32_t first_index, hit_list hits) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i threshold = _mm512_set1_epi32((int)threshold_bits);
  size_t i = 0;
  for (; i + GROUP * LCOMM_LANES <= n; i += GROUP * LCOMM_LANES) {
    __m512i magnitude[GROUP];
    for (size_t v = 0; v < GROUP; v++) {
      size_t at = i + v * LCOMM_LANES;
      bool with = use == WITH_RESIDUAL;
      magnitude[v] = lcomm_magnitudes(
          accumulate(use, source + at, with ? before + at : NULL, with ? residual + at : NULL));
    }
    __m512i most = _mm512_max_epi32(_mm512_max_epi32(magnitude[0], magnitude[1]),
                                    _mm512_max_epi32(magnitude[2], magnitude[3]));
    if (_mm512_cmpge_epu32_mask(most, threshold) == 0) {
      continue;
    }
    __m512i indices = _mm512_add_epi32(_mm512_set1_epi32((int)(first_index + (uint32_t)i)), lane);
    for (size_t v = 0; v < GROUP; v++) {
      append(&hits, _mm512_cmpge_epu32_mask(magnitude[v], threshold), indices);
      indices = _mm512_add_epi32(indices, _mm512_set1_epi32(LCOMM_LANES));
    }
  }
  for (; i < n; i += LCOMM_LANES) {
    __mmask16 lanes = lcomm_lanes(n - i);
    bool with = use == WITH_RESIDUAL;
    __m512i magnitude = lcomm_magnitudes(accumulate_lanes(use, source + i, with ? before + i : NULL,
                                                          with ? residual + i : NULL, lanes));
    __m512i indices = _mm512_add_epi32(_mm512_set1_epi32((int)(first_index + (uint32_t)i)), lane);
    append(&hits, _mm512_mask_cmpge_epu32_mask(lanes, magnitude, threshold), indices);
  }
  return hits.found;
}

size_t lcomm_avx512_accumulate_select(const float *source, const float *before, float *residual,
                                      size_t n, uint32_t threshold_bits, uint32_t first_index,
                                      uint32_t *index, size_t capacity) {
  hit_list hits = {index, capacity, 0};
  if (!residual) {
    return run(NO_RESIDUAL, source, NULL, NULL, n, threshold_bits, first_index, hits);
  }
  return run(WITH_RESIDUAL, source, before, residual, n, threshold_bits, first_index, hits);
}
