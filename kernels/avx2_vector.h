/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX2_VECTOR_H
#define LCOMM_KERNELS_AVX2_VECTOR_H

/* What the files of the AVX2 table share; only they can include it.
 *
 * Shape of a kernel: whole steps of LCOMM_AVX2_STEP elements in vectors, and
 * what is left over by the scalar maths of element.h, or padded to a whole
 * step. Loops take the way their results go as a constant, so that each is
 * written once and compiled for every way.
 */

#include <immintrin.h>

#include "kernels/element.h"
#include "kernels/kernels.h"

#define LCOMM_AVX2_INLINE static inline __attribute__((always_inline))

enum {
  LCOMM_AVX2_STEP = 32,   /* elements: a byte of each fills a vector */
  LCOMM_AVX2_LANES = 8,   /* float32 in a vector */
  LCOMM_AVX2_LINE = 64,   /* bytes of a cache line */
  LCOMM_AVX2_AHEAD = 2048 /* bytes from a read to its prefetch */
};

/* Where results go: into the caches, past them (the destination is aligned to
 * a vector, and lcomm_avx2_streamed() follows), or onto what is there. */
typedef enum lcomm_avx2_way { LCOMM_AVX2_STORE, LCOMM_AVX2_STREAM, LCOMM_AVX2_ADD } lcomm_avx2_way;

/* A range of n elements: `head` of them up to a cache line, then `body` in
 * whole steps that go the way named, then a rest. */
typedef struct lcomm_avx2_span {
  size_t head, body;
  lcomm_avx2_way way;
} lcomm_avx2_span;

/* All of it stored. */
LCOMM_AVX2_INLINE lcomm_avx2_span lcomm_avx2_stored(size_t n) {
  lcomm_avx2_span span = {0, n - n % LCOMM_AVX2_STEP, LCOMM_AVX2_STORE};
  return span;
}

/* Streams long ranges, if their elements can be aligned at all: memory is
 * written in whole lines, or not faster than through the caches. */
LCOMM_AVX2_INLINE lcomm_avx2_span lcomm_avx2_cut(const void *destination, size_t element_size,
                                                 size_t n) {
  lcomm_avx2_span span = lcomm_avx2_stored(n);
  size_t missing = (size_t)(0 - (uintptr_t)destination) % LCOMM_AVX2_LINE;
  if (n < LCOMM_STREAM_COUNT || missing % element_size != 0) {
    return span;
  }
  span.head = missing / element_size;
  span.body = (n - span.head) - (n - span.head) % LCOMM_AVX2_STEP;
  span.way = LCOMM_AVX2_STREAM;
  return span;
}

/* For formats with blocks, whose elements cannot be shifted to a line. */
LCOMM_AVX2_INLINE int lcomm_avx2_aligned(const void *address) {
  return (uintptr_t)address % LCOMM_AVX2_LINE == 0;
}

/* Makes streamed results visible in the order of the program. */
LCOMM_AVX2_INLINE void lcomm_avx2_streamed(void) {
  _mm_sfence();
}

/* Ask for the `size` bytes that follow in `ahead` bytes. Integer addresses:
 * they may lie past the end of the array, where a prefetch does nothing. */
LCOMM_AVX2_INLINE void lcomm_avx2_prefetch_from(const void *address, size_t ahead, size_t size) {
  for (size_t i = 0; i < size; i += LCOMM_AVX2_LINE) {
    _mm_prefetch((const char *)((uintptr_t)address + ahead + i), _MM_HINT_T0);
  }
}

LCOMM_AVX2_INLINE void lcomm_avx2_prefetch(const void *address, size_t size) {
  lcomm_avx2_prefetch_from(address, LCOMM_AVX2_AHEAD, size);
}

LCOMM_AVX2_INLINE void lcomm_avx2_put_f32(lcomm_avx2_way way, float *destination, __m256 value) {
  if (way == LCOMM_AVX2_STREAM) {
    _mm256_stream_ps(destination, value);
  } else if (way == LCOMM_AVX2_ADD) {
    _mm256_storeu_ps(destination, _mm256_add_ps(_mm256_loadu_ps(destination), value));
  } else {
    _mm256_storeu_ps(destination, value);
  }
}

LCOMM_AVX2_INLINE void lcomm_avx2_put(lcomm_avx2_way way, void *destination, __m256i bytes) {
  if (way == LCOMM_AVX2_STREAM) {
    _mm256_stream_si256(destination, bytes);
  } else {
    _mm256_storeu_si256(destination, bytes);
  }
}

LCOMM_AVX2_INLINE void lcomm_avx2_put_half(lcomm_avx2_way way, void *destination, __m128i bytes) {
  if (way == LCOMM_AVX2_STREAM) {
    _mm_stream_si128(destination, bytes);
  } else {
    _mm_storeu_si128(destination, bytes);
  }
}

LCOMM_AVX2_INLINE __m256i lcomm_avx2_get(const void *source) {
  return _mm256_loadu_si256(source);
}

LCOMM_AVX2_INLINE __m256i lcomm_avx2_magnitude(__m256 value) {
  return _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(0x7fffffff));
}

/* All bits set where the value is finite. */
LCOMM_AVX2_INLINE __m256i lcomm_avx2_finite(__m256 value) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(LCOMM_F32_INF_BITS), lcomm_avx2_magnitude(value));
}

LCOMM_AVX2_INLINE __m256 lcomm_avx2_finite_or_zero(__m256 value) {
  return _mm256_and_ps(value, _mm256_castsi256_ps(lcomm_avx2_finite(value)));
}

/* lcomm_error_kept */
LCOMM_AVX2_INLINE __m256 lcomm_avx2_error_kept(__m256 value, __m256 decoded) {
  __m256 difference = _mm256_sub_ps(value, decoded);
  __m256 kept =
      _mm256_blendv_ps(value, difference, _mm256_castsi256_ps(lcomm_avx2_finite(decoded)));
  __m256i infinite = _mm256_set1_epi32((int)LCOMM_F32_INF_BITS);
  __m256i overflows = _mm256_cmpeq_epi32(lcomm_avx2_magnitude(decoded), infinite);
  return _mm256_and_ps(
      kept, _mm256_castsi256_ps(_mm256_andnot_si256(overflows, lcomm_avx2_finite(value))));
}

/* Packing interleaves the halves of its vectors. These put the elements into
 * order again: of bytes packed from 32 bits, of anything packed once. */
LCOMM_AVX2_INLINE __m256i lcomm_avx2_unmix_bytes(__m256i packed_twice) {
  return _mm256_permutevar8x32_epi32(packed_twice, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

LCOMM_AVX2_INLINE __m256i lcomm_avx2_unmix_words(__m256i packed_once) {
  return _mm256_permute4x64_epi64(packed_once, 0xd8);
}

#endif
