/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels for the 16-bit formats. */

#include "kernels/avx512.h"
#include "kernels/avx512_vector.h"

typedef enum format { F16, BF16 } format;

/* -------------------------------------------------------------------------- encode */

LCOMM_VECTOR __m256i f16_of(__m512 value, __m512 factor) {
  return _mm512_cvtps_ph(_mm512_mul_ps(factor, value),
                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

LCOMM_VECTOR __m512i f16_of_pair(__m512 low, __m512 high, __m512 factor) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(f16_of(low, factor)), f16_of(high, factor), 1);
}

LCOMM_VECTOR __m256i bf16_of(__m512i bits) {
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __mmask16 nan = _mm512_cmpgt_epi32_mask(lcomm_magnitudes(bits), _mm512_set1_epi32(0x7f800000));
  rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

/* 32 values. Half a step is added; where the low half then is 0, the value was
 * half way between two codes, and the even one is taken. */
LCOMM_VECTOR __m512i bf16_of_pair(__m512i low, __m512i high) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  if (_mm512_cmp_ps_mask(_mm512_castsi512_ps(low), _mm512_castsi512_ps(high), _CMP_UNORD_Q)) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(bf16_of(low)), bf16_of(high), 1);
  }
  const __m512i even_words =
      _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                       24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd_words = _mm512_add_epi16(even_words, _mm512_set1_epi16(1));
  low = _mm512_add_epi32(low, half);
  high = _mm512_add_epi32(high, half);
  __m512i code = _mm512_permutex2var_epi16(low, odd_words, high);
  __m512i rest = _mm512_permutex2var_epi16(low, even_words, high);
  __mmask32 odd =
      _mm512_mask_test_epi16_mask(_mm512_testn_epi16_mask(rest, rest), code, _mm512_set1_epi16(1));
  return _mm512_mask_sub_epi16(code, odd, code, _mm512_set1_epi16(1));
}

/* bf16 has no factor. */
LCOMM_VECTOR void encode(format kind, lcomm_path path, const float *source, __m512 factor,
                         uint16_t *code, size_t n) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    lcomm_prefetch(source + i, LCOMM_AHEAD);
    lcomm_prefetch(source + i + 16, LCOMM_AHEAD);
    __m512 low = _mm512_loadu_ps(source + i), high = _mm512_loadu_ps(source + i + 16);
    lcomm_store_bits(path, code + i,
                     kind == F16
                         ? f16_of_pair(low, high, factor)
                         : bf16_of_pair(_mm512_castps_si512(low), _mm512_castps_si512(high)));
  }
  for (; i < n; i += LCOMM_LANES) {
    __mmask16 lanes = lcomm_lanes(n - i);
    __m512 value = _mm512_maskz_loadu_ps(lanes, source + i);
    _mm256_mask_storeu_epi16(
        code + i, lanes, kind == F16 ? f16_of(value, factor) : bf16_of(_mm512_castps_si512(value)));
  }
}

LCOMM_VECTOR void encode_all(format kind, const float *source, float factor, uint16_t *code,
                             size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  if (n < LCOMM_STREAM_COUNT) {
    encode(kind, LCOMM_CACHED, source, factors, code, n);
    return;
  }
  size_t head = lcomm_line_head(code, sizeof *code, n);
  encode(kind, LCOMM_CACHED, source, factors, code, head);
  encode(kind, LCOMM_STREAMED, source + head, factors, code + head, n - head);
  _mm_sfence();
}

void lcomm_avx512_f32_to_f16(const float *source, float factor, uint16_t *code, size_t n) {
  encode_all(F16, source, factor, code, n);
}

void lcomm_avx512_f32_to_bf16(const float *source, uint16_t *code, size_t n) {
  encode_all(BF16, source, 1.0f, code, n);
}

/* -------------------------------------------------------------------------- decode */

LCOMM_VECTOR __m512 value_of(format kind, __m256i codes, __m512 factor) {
  __m512 value = kind == F16
                     ? _mm512_cvtph_ps(codes)
                     : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
  return _mm512_mul_ps(factor, value);
}

LCOMM_VECTOR __m512 value_at(format kind, const uint16_t *code, __m512 factor) {
  return value_of(kind, _mm256_loadu_si256((const __m256i *)code), factor);
}

LCOMM_VECTOR void decode(format kind, lcomm_path path, const uint16_t *code, __m512 factor,
                         float *destination, size_t n) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    lcomm_prefetch_codes(path, code + i);
    lcomm_put(path, destination + i, value_at(kind, code + i, factor));
    lcomm_put(path, destination + i + 16, value_at(kind, code + i + 16, factor));
  }
  for (; i < n; i += LCOMM_LANES) {
    __mmask16 lanes = lcomm_lanes(n - i);
    __m256i codes = _mm256_maskz_loadu_epi16(lanes, code + i);
    lcomm_put_lanes(path, destination + i, lanes, value_of(kind, codes, factor));
  }
}

LCOMM_VECTOR void decode_all(format kind, const uint16_t *code, float factor, float *destination,
                             size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  if (n < LCOMM_STREAM_COUNT) {
    decode(kind, LCOMM_CACHED, code, factors, destination, n);
    return;
  }
  size_t head = lcomm_line_head(destination, sizeof *destination, n);
  decode(kind, LCOMM_CACHED, code, factors, destination, head);
  decode(kind, LCOMM_STREAMED, code + head, factors, destination + head, n - head);
  _mm_sfence();
}

void lcomm_avx512_f16_to_f32(const uint16_t *code, float factor, float *destination, size_t n) {
  decode_all(F16, code, factor, destination, n);
}

void lcomm_avx512_bf16_to_f32(const uint16_t *code, float factor, float *destination, size_t n) {
  decode_all(BF16, code, factor, destination, n);
}

void lcomm_avx512_f16_add(const uint16_t *code, float factor, float *destination, size_t n) {
  decode(F16, LCOMM_ADDED, code, _mm512_set1_ps(factor), destination, n);
}

void lcomm_avx512_bf16_add(const uint16_t *code, float factor, float *destination, size_t n) {
  decode(BF16, LCOMM_ADDED, code, _mm512_set1_ps(factor), destination, n);
}
