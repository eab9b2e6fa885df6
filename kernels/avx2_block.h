/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX2_BLOCK_H
#define LCOMM_KERNELS_AVX2_BLOCK_H

/* What the AVX2 kernels of the formats with one scale for each block share.
 * Encoders take a tile of eight blocks at a time, so that the search for their
 * maxima and the making of scales fill whole vectors. The tile is read from
 * memory by the search and from the cache by the rounding.
 */

#include "kernels/avx2_vector.h"

enum {
  LCOMM_AVX2_TILE = LCOMM_AVX2_LANES * LCOMM_BLOCK /* elements in the largest tile */
};

/* Four maxima each of lanes 0..3 and 4..7: the four largest blocks of both. */
LCOMM_AVX2_INLINE __m256i lcomm_avx2_fold(const __m256i amax[4]) {
  __m256i first = _mm256_max_epi32(_mm256_unpacklo_epi32(amax[0], amax[1]),
                                   _mm256_unpackhi_epi32(amax[0], amax[1]));
  __m256i second = _mm256_max_epi32(_mm256_unpacklo_epi32(amax[2], amax[3]),
                                    _mm256_unpackhi_epi32(amax[2], amax[3]));
  return _mm256_max_epi32(_mm256_unpacklo_epi64(first, second),
                          _mm256_unpackhi_epi64(first, second));
}

/* The largest magnitudes of the eight blocks of a tile. */
LCOMM_AVX2_INLINE __m256i lcomm_avx2_amax(const float *source, size_t block) {
  __m256i amax[LCOMM_AVX2_LANES];
  for (int b = 0; b < LCOMM_AVX2_LANES; b++, source += block) {
    __m256i most = _mm256_setzero_si256();
    for (size_t i = 0; i < block; i += LCOMM_AVX2_STEP) {
      for (size_t v = i; v < i + LCOMM_AVX2_STEP; v += LCOMM_AVX2_LANES) {
        most = _mm256_max_epi32(most, lcomm_avx2_magnitude(_mm256_loadu_ps(source + v)));
      }
    }
    amax[b] = most;
  }
  __m256i low = lcomm_avx2_fold(amax), high = lcomm_avx2_fold(amax + 4);
  return _mm256_max_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                          _mm256_permute2x128_si256(low, high, 0x31));
}

/* Ask for the step of the next tile at the place of this one: while a tile is
 * rounded, the next comes from memory. */
LCOMM_AVX2_INLINE void lcomm_avx2_prefetch_tile(const float *step, size_t block) {
  lcomm_avx2_prefetch_from(step, LCOMM_AVX2_LANES * block * sizeof *step,
                           LCOMM_AVX2_STEP * sizeof *step);
}

/* lcomm_e8m0_scale and lcomm_e8m0_inverse of eight blocks. The inverse of a
 * block that is not finite is of no use. */
LCOMM_AVX2_INLINE void lcomm_avx2_e8m0(__m256i amax, int32_t top, uint8_t *scale, float *inverse) {
  __m256i mantissa = _mm256_and_si256(amax, _mm256_set1_epi32(0x7fffff));
  __m256i beyond = _mm256_cmpgt_epi32(mantissa, _mm256_set1_epi32(0x600000)); /* -1 */
  __m256i byte = _mm256_sub_epi32(_mm256_srli_epi32(amax, 23), _mm256_set1_epi32(top));
  __m256i zero = _mm256_setzero_si256();
  byte = _mm256_max_epi32(_mm256_sub_epi32(byte, beyond), zero);
  byte =
      _mm256_blendv_epi8(byte, _mm256_set1_epi32(LCOMM_E8M0_ONE), _mm256_cmpeq_epi32(amax, zero));
  __m256i infinite = _mm256_cmpgt_epi32(amax, _mm256_set1_epi32(LCOMM_F32_INF_BITS - 1));
  byte = _mm256_blendv_epi8(byte, _mm256_set1_epi32(LCOMM_E8M0_NAN), infinite);
  __m256i bits = _mm256_slli_epi32(_mm256_sub_epi32(_mm256_set1_epi32(254), byte), 23);
  _mm256_storeu_ps(inverse, _mm256_castsi256_ps(bits));
  __m256i words = lcomm_avx2_unmix_words(_mm256_packus_epi32(byte, byte));
  _mm_storel_epi64((__m128i *)scale, _mm256_castsi256_si128(_mm256_packus_epi16(words, words)));
}

/* Copies what was made in the caches to any address of memory past them;
 * lcomm_avx2_streamed() follows. */
LCOMM_AVX2_INLINE void lcomm_avx2_stream(float *destination, const float *tile, size_t n) {
  enum { LINE = LCOMM_AVX2_LINE / sizeof(float) };
  size_t head = (size_t)(0 - (uintptr_t)destination) % LCOMM_AVX2_LINE / sizeof *tile;
  head = head < n ? head : n;
  size_t end = n - (n - head) % LINE;
  memcpy(destination, tile, head * sizeof *tile);
  for (size_t i = head; i < end; i += LCOMM_AVX2_LANES) {
    _mm256_stream_ps(destination + i, _mm256_loadu_ps(tile + i));
  }
  memcpy(destination + end, tile + end, (n - end) * sizeof *tile);
}

#endif
