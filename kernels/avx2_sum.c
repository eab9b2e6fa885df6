/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels that sum many coded arrays: the vectors that sum_body.h works
 * with. */

#include <immintrin.h>

#include "kernels/avx2.h"

typedef __m256 lcomm_vector;

enum { WIDTH = 8 };

static inline lcomm_vector plain(const float *values) {
  return _mm256_loadu_ps(values);
}

static inline lcomm_vector from_bf16(const uint16_t *code) {
  __m128i half = _mm_loadu_si128((const __m128i *)(const void *)code);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

static inline lcomm_vector from_int8(const int8_t *code, lcomm_vector scale) {
  __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)code);
  return _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
}

static inline lcomm_vector add(lcomm_vector a, lcomm_vector b) {
  return _mm256_add_ps(a, b);
}

static inline lcomm_vector multiply(lcomm_vector a, lcomm_vector b) {
  return _mm256_mul_ps(a, b);
}

static inline lcomm_vector broadcast(float value) {
  return _mm256_set1_ps(value);
}

static inline void put(float *destination, lcomm_vector values) {
  _mm256_storeu_ps(destination, values);
}

static inline void stream(float *destination, lcomm_vector values) {
  _mm256_stream_ps(destination, values);
}

#include "kernels/sum_body.h"

void lcomm_avx2_bf16_sum(const lcomm_source *sources, size_t count, size_t first, float factor,
                         float *destination, size_t n) {
  sum_bf16(sources, count, first, factor, destination, n);
}

void lcomm_avx2_int8_sum(const lcomm_source *sources, size_t count, size_t block, size_t first,
                         float factor, float *destination, size_t n) {
  sum_int8(sources, count, block, first, factor, destination, n);
}
