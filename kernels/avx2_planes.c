/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels that split numbers into planes of bytes and join them. A step
 * of 32 numbers fills one vector of each plane; the last numbers go through a
 * padded step.
 */

#include "kernels/avx2.h"
#include "kernels/avx2_vector.h"

enum { STEP = LCOMM_AVX2_STEP, VECTOR = sizeof(__m256i) };

/* What lcomm_avx2_unmix_bytes undoes. */
LCOMM_AVX2_INLINE __m256i mix_bytes(__m256i plane) {
  return _mm256_permutevar8x32_epi32(plane, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

/* Two bytes */

LCOMM_AVX2_INLINE __m256i rotate_left2(__m256i number) {
  return _mm256_or_si256(_mm256_slli_epi16(number, 1), _mm256_srli_epi16(number, 15));
}

LCOMM_AVX2_INLINE __m256i rotate_right2(__m256i number) {
  return _mm256_or_si256(_mm256_srli_epi16(number, 1), _mm256_slli_epi16(number, 15));
}

LCOMM_AVX2_INLINE void split2_step(lcomm_avx2_way way, const uint8_t *source,
                                   uint8_t *const plane[2], size_t i) {
  __m256i first = rotate_left2(lcomm_avx2_get(source + 2 * i));
  __m256i second = rotate_left2(lcomm_avx2_get(source + 2 * i + VECTOR));
  __m256i low_byte = _mm256_set1_epi16(0xff);
  __m256i top = _mm256_packus_epi16(_mm256_srli_epi16(first, 8), _mm256_srli_epi16(second, 8));
  __m256i low =
      _mm256_packus_epi16(_mm256_and_si256(first, low_byte), _mm256_and_si256(second, low_byte));
  lcomm_avx2_put(way, plane[0] + i, lcomm_avx2_unmix_words(top));
  lcomm_avx2_put(way, plane[1] + i, lcomm_avx2_unmix_words(low));
}

LCOMM_AVX2_INLINE void join2_step(lcomm_avx2_way way, const uint8_t *const plane[2], size_t i,
                                  uint8_t *destination) {
  __m256i top = lcomm_avx2_unmix_words(lcomm_avx2_get(plane[0] + i));
  __m256i low = lcomm_avx2_unmix_words(lcomm_avx2_get(plane[1] + i));
  __m256i first = rotate_right2(_mm256_unpacklo_epi8(low, top));
  __m256i second = rotate_right2(_mm256_unpackhi_epi8(low, top));
  lcomm_avx2_put(way, destination + 2 * i, first);
  lcomm_avx2_put(way, destination + 2 * i + VECTOR, second);
}

/* Four bytes */

LCOMM_AVX2_INLINE __m256i rotate_left4(__m256i number) {
  return _mm256_or_si256(_mm256_slli_epi32(number, 1), _mm256_srli_epi32(number, 31));
}

LCOMM_AVX2_INLINE __m256i rotate_right4(__m256i number) {
  return _mm256_or_si256(_mm256_srli_epi32(number, 1), _mm256_slli_epi32(number, 31));
}

/* Rotated, and the bytes of the four numbers of each half sorted by plane. */
LCOMM_AVX2_INLINE __m256i sort_bytes(const uint8_t *source) {
  __m256i order = _mm256_setr_epi8(3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12, //
                                   3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12);
  return _mm256_shuffle_epi8(rotate_left4(lcomm_avx2_get(source)), order);
}

LCOMM_AVX2_INLINE void split4_step(lcomm_avx2_way way, const uint8_t *source,
                                   uint8_t *const plane[4], size_t i) {
  const uint8_t *from = source + 4 * i;
  __m256i a = sort_bytes(from), b = sort_bytes(from + VECTOR);
  __m256i c = sort_bytes(from + 2 * VECTOR), d = sort_bytes(from + 3 * VECTOR);
  __m256i ab01 = _mm256_unpacklo_epi32(a, b), ab23 = _mm256_unpackhi_epi32(a, b);
  __m256i cd01 = _mm256_unpacklo_epi32(c, d), cd23 = _mm256_unpackhi_epi32(c, d);
  lcomm_avx2_put(way, plane[0] + i, lcomm_avx2_unmix_bytes(_mm256_unpacklo_epi64(ab01, cd01)));
  lcomm_avx2_put(way, plane[1] + i, lcomm_avx2_unmix_bytes(_mm256_unpackhi_epi64(ab01, cd01)));
  lcomm_avx2_put(way, plane[2] + i, lcomm_avx2_unmix_bytes(_mm256_unpacklo_epi64(ab23, cd23)));
  lcomm_avx2_put(way, plane[3] + i, lcomm_avx2_unmix_bytes(_mm256_unpackhi_epi64(ab23, cd23)));
}

LCOMM_AVX2_INLINE void join4_step(lcomm_avx2_way way, const uint8_t *const plane[4], size_t i,
                                  uint8_t *destination) {
  __m256i p0 = mix_bytes(lcomm_avx2_get(plane[0] + i));
  __m256i p1 = mix_bytes(lcomm_avx2_get(plane[1] + i));
  __m256i p2 = mix_bytes(lcomm_avx2_get(plane[2] + i));
  __m256i p3 = mix_bytes(lcomm_avx2_get(plane[3] + i));
  __m256i low_a = _mm256_unpacklo_epi8(p3, p2), low_b = _mm256_unpackhi_epi8(p3, p2);
  __m256i top_a = _mm256_unpacklo_epi8(p1, p0), top_b = _mm256_unpackhi_epi8(p1, p0);
  uint8_t *to = destination + 4 * i;
  lcomm_avx2_put(way, to, rotate_right4(_mm256_unpacklo_epi16(low_a, top_a)));
  lcomm_avx2_put(way, to + VECTOR, rotate_right4(_mm256_unpackhi_epi16(low_a, top_a)));
  lcomm_avx2_put(way, to + 2 * VECTOR, rotate_right4(_mm256_unpacklo_epi16(low_b, top_b)));
  lcomm_avx2_put(way, to + 3 * VECTOR, rotate_right4(_mm256_unpackhi_epi16(low_b, top_b)));
}

/* Both; `size` is the bytes of a number */

LCOMM_AVX2_INLINE void split_steps(size_t size, lcomm_avx2_way way, const uint8_t *source,
                                   uint8_t *const *plane, size_t n) {
  for (size_t i = 0; i < n; i += STEP) {
    lcomm_avx2_prefetch(source + size * i, size * STEP);
    if (size == 2) {
      split2_step(way, source, plane, i);
    } else {
      split4_step(way, source, plane, i);
    }
  }
}

LCOMM_AVX2_INLINE void join_steps(size_t size, lcomm_avx2_way way, const uint8_t *const *plane,
                                  uint8_t *destination, size_t n) {
  for (size_t i = 0; i < n; i += STEP) {
    for (size_t p = 0; p < size; p++) {
      lcomm_avx2_prefetch(plane[p] + i, STEP);
    }
    if (size == 2) {
      join2_step(way, plane, i, destination);
    } else {
      join4_step(way, plane, i, destination);
    }
  }
}

LCOMM_AVX2_INLINE void split(size_t size, const uint8_t *source, uint8_t *const *plane, size_t n) {
  size_t body = n - n % STEP;
  int aligned = 1;
  for (size_t p = 0; p < size; p++) {
    aligned &= lcomm_avx2_aligned(plane[p]);
  }
  if (n >= LCOMM_STREAM_COUNT && aligned) {
    split_steps(size, LCOMM_AVX2_STREAM, source, plane, body);
    lcomm_avx2_streamed();
  } else {
    split_steps(size, LCOMM_AVX2_STORE, source, plane, body);
  }
  if (body == n) {
    return;
  }
  uint8_t padded[4 * STEP] = {0}, byte[4][STEP];
  uint8_t *const bytes[4] = {byte[0], byte[1], byte[2], byte[3]};
  memcpy(padded, source + size * body, size * (n - body));
  split_steps(size, LCOMM_AVX2_STORE, padded, bytes, STEP);
  for (size_t p = 0; p < size; p++) {
    memcpy(plane[p] + body, byte[p], n - body);
  }
}

LCOMM_AVX2_INLINE void join(size_t size, const uint8_t *const *plane, uint8_t *destination,
                            size_t n) {
  size_t body = n - n % STEP;
  if (n >= LCOMM_STREAM_COUNT && lcomm_avx2_aligned(destination)) {
    join_steps(size, LCOMM_AVX2_STREAM, plane, destination, body);
    lcomm_avx2_streamed();
  } else {
    join_steps(size, LCOMM_AVX2_STORE, plane, destination, body);
  }
  if (body == n) {
    return;
  }
  uint8_t padded[4 * STEP], byte[4][STEP] = {{0}};
  const uint8_t *const bytes[4] = {byte[0], byte[1], byte[2], byte[3]};
  for (size_t p = 0; p < size; p++) {
    memcpy(byte[p], plane[p] + body, n - body);
  }
  join_steps(size, LCOMM_AVX2_STORE, bytes, padded, STEP);
  memcpy(destination + size * body, padded, size * (n - body));
}

void lcomm_avx2_split2(const uint8_t *source, uint8_t *const plane[2], size_t n) {
  split(2, source, plane, n);
}

void lcomm_avx2_split4(const uint8_t *source, uint8_t *const plane[4], size_t n) {
  split(4, source, plane, n);
}

void lcomm_avx2_join2(const uint8_t *const plane[2], uint8_t *destination, size_t n) {
  join(2, plane, destination, n);
}

void lcomm_avx2_join4(const uint8_t *const plane[4], uint8_t *destination, size_t n) {
  join(4, plane, destination, n);
}
