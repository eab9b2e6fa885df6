/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels for the 16-bit formats. */

#include "kernels/avx2.h"
#include "kernels/avx2_vector.h"

typedef enum half_format { F16, BF16 } half_format;

enum { STEP = LCOMM_AVX2_STEP, LANES = LCOMM_AVX2_LANES };

/* Codes in the low halves of the eight numbers. */
LCOMM_AVX2_INLINE __m256i round_bf16(__m256 value) {
  __m256i bits = _mm256_castps_si256(value);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}

LCOMM_AVX2_INLINE void encode_step(half_format format, lcomm_avx2_way way, const float *source,
                                   __m256 factor, uint16_t *code) {
  for (int i = 0; i < STEP; i += 2 * LANES) {
    __m256 even = _mm256_loadu_ps(source + i), odd = _mm256_loadu_ps(source + i + LANES);
    if (format == F16) {
      __m128i low = _mm256_cvtps_ph(_mm256_mul_ps(factor, even), _MM_FROUND_TO_NEAREST_INT);
      __m128i high = _mm256_cvtps_ph(_mm256_mul_ps(factor, odd), _MM_FROUND_TO_NEAREST_INT);
      lcomm_avx2_put_half(way, code + i, low);
      lcomm_avx2_put_half(way, code + i + LANES, high);
    } else {
      __m256i packed = _mm256_packus_epi32(round_bf16(even), round_bf16(odd));
      lcomm_avx2_put(way, code + i, lcomm_avx2_unmix_words(packed));
    }
  }
}

LCOMM_AVX2_INLINE void encode_steps(half_format format, lcomm_avx2_way way, const float *source,
                                    float factor, uint16_t *code, size_t n) {
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t i = 0; i < n; i += STEP) {
    lcomm_avx2_prefetch(source + i, STEP * sizeof *source);
    encode_step(format, way, source + i, factors, code + i);
  }
}

LCOMM_AVX2_INLINE void encode_few(half_format format, const float *source, float factor,
                                  uint16_t *code, size_t first, size_t end) {
  for (size_t i = first; i < end; i++) {
    code[i] = format == F16 ? lcomm_f32_to_f16(factor * source[i]) : lcomm_f32_to_bf16(source[i]);
  }
}

LCOMM_AVX2_INLINE void encode(half_format format, const float *source, float factor, uint16_t *code,
                              size_t n) {
  lcomm_avx2_span span = lcomm_avx2_cut(code, sizeof *code, n);
  encode_few(format, source, factor, code, 0, span.head);
  if (span.way == LCOMM_AVX2_STREAM) {
    encode_steps(format, LCOMM_AVX2_STREAM, source + span.head, factor, code + span.head,
                 span.body);
    lcomm_avx2_streamed();
  } else {
    encode_steps(format, LCOMM_AVX2_STORE, source, factor, code, span.body);
  }
  encode_few(format, source, factor, code, span.head + span.body, n);
}

LCOMM_AVX2_INLINE __m256 decode_lanes(half_format format, __m128i codes) {
  if (format == F16) {
    return _mm256_cvtph_ps(codes);
  }
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}

LCOMM_AVX2_INLINE void decode_steps(half_format format, lcomm_avx2_way way, const uint16_t *code,
                                    float factor, float *destination, size_t n) {
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t i = 0; i < n; i += STEP) {
    lcomm_avx2_prefetch(code + i, STEP * sizeof *code);
    if (way == LCOMM_AVX2_ADD) {
      lcomm_avx2_prefetch(destination + i, STEP * sizeof *destination);
    }
    for (size_t v = i; v < i + STEP; v += LANES) {
      __m256 value = decode_lanes(format, _mm_loadu_si128((const __m128i *)(code + v)));
      lcomm_avx2_put_f32(way, destination + v, _mm256_mul_ps(factors, value));
    }
  }
}

LCOMM_AVX2_INLINE void decode_few(half_format format, lcomm_avx2_way way, const uint16_t *code,
                                  float factor, float *destination, size_t first, size_t end) {
  for (size_t i = first; i < end; i++) {
    float value = factor * (format == F16 ? lcomm_f16_to_f32(code[i]) : lcomm_bf16_to_f32(code[i]));
    destination[i] = way == LCOMM_AVX2_ADD ? destination[i] + value : value;
  }
}

LCOMM_AVX2_INLINE void decode(half_format format, const uint16_t *code, float factor,
                              float *destination, size_t n) {
  lcomm_avx2_span span = lcomm_avx2_cut(destination, sizeof *destination, n);
  decode_few(format, LCOMM_AVX2_STORE, code, factor, destination, 0, span.head);
  if (span.way == LCOMM_AVX2_STREAM) {
    decode_steps(format, LCOMM_AVX2_STREAM, code + span.head, factor, destination + span.head,
                 span.body);
    lcomm_avx2_streamed();
  } else {
    decode_steps(format, LCOMM_AVX2_STORE, code, factor, destination, span.body);
  }
  decode_few(format, LCOMM_AVX2_STORE, code, factor, destination, span.head + span.body, n);
}

LCOMM_AVX2_INLINE void add(half_format format, const uint16_t *code, float factor,
                           float *destination, size_t n) {
  size_t body = n - n % STEP;
  decode_steps(format, LCOMM_AVX2_ADD, code, factor, destination, body);
  decode_few(format, LCOMM_AVX2_ADD, code, factor, destination, body, n);
}

void lcomm_avx2_f32_to_f16(const float *source, float factor, uint16_t *code, size_t n) {
  encode(F16, source, factor, code, n);
}

void lcomm_avx2_f32_to_bf16(const float *source, uint16_t *code, size_t n) {
  encode(BF16, source, 1.0f, code, n);
}

void lcomm_avx2_f16_to_f32(const uint16_t *code, float factor, float *destination, size_t n) {
  decode(F16, code, factor, destination, n);
}

void lcomm_avx2_bf16_to_f32(const uint16_t *code, float factor, float *destination, size_t n) {
  decode(BF16, code, factor, destination, n);
}

void lcomm_avx2_f16_add(const uint16_t *code, float factor, float *destination, size_t n) {
  add(F16, code, factor, destination, n);
}

void lcomm_avx2_bf16_add(const uint16_t *code, float factor, float *destination, size_t n) {
  add(BF16, code, factor, destination, n);
}
