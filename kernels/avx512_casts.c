/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels for the 16-bit formats. */

#include "kernels/avx512.h"
#include "kernels/avx512_vector.h"

/* f16 */

LCOMM_VECTOR __m256i f16_of(__m512 value, __m512 factor) {
  return _mm512_cvtps_ph(_mm512_mul_ps(factor, value),
                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

LCOMM_VECTOR void encode_f16(lcomm_path path, const float *source, __m512 factor, uint16_t *code,
                             size_t n) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    lcomm_prefetch(source + i, LCOMM_AHEAD);
    lcomm_prefetch(source + i + 16, LCOMM_AHEAD);
    __m256i low = f16_of(_mm512_loadu_ps(source + i), factor);
    __m256i high = f16_of(_mm512_loadu_ps(source + i + 16), factor);
    lcomm_store_bits(path, code + i, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
  }
  for (; i < n; i += LCOMM_LANES) {
    __mmask16 lanes = lcomm_lanes(n - i);
    __m512 value = _mm512_maskz_loadu_ps(lanes, source + i);
    _mm256_mask_storeu_epi16(code + i, lanes, f16_of(value, factor));
  }
}

void lcomm_avx512_f32_to_f16(const float *source, float factor, uint16_t *code, size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  if (n < LCOMM_STREAM_COUNT) {
    encode_f16(LCOMM_CACHED, source, factors, code, n);
    return;
  }
  size_t head = lcomm_line_head(code, sizeof *code, n);
  encode_f16(LCOMM_CACHED, source, factors, code, head);
  encode_f16(LCOMM_STREAMED, source + head, factors, code + head, n - head);
  _mm_sfence();
}

LCOMM_VECTOR __m512 f16_at(const uint16_t *code, __m512 factor) {
  return _mm512_mul_ps(factor, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)code)));
}

LCOMM_VECTOR __m512 f16_at_lanes(const uint16_t *code, __mmask16 lanes, __m512 factor) {
  return _mm512_mul_ps(factor, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, code)));
}

LCOMM_VECTOR void decode_f16(lcomm_path path, const uint16_t *code, __m512 factor,
                             float *destination, size_t n) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    lcomm_prefetch_codes(path, code + i);
    lcomm_put(path, destination + i, f16_at(code + i, factor));
    lcomm_put(path, destination + i + 16, f16_at(code + i + 16, factor));
  }
  for (; i < n; i += LCOMM_LANES) {
    __mmask16 lanes = lcomm_lanes(n - i);
    lcomm_put_lanes(path, destination + i, lanes, f16_at_lanes(code + i, lanes, factor));
  }
}

void lcomm_avx512_f16_to_f32(const uint16_t *code, float factor, float *destination, size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  if (n < LCOMM_STREAM_COUNT) {
    decode_f16(LCOMM_CACHED, code, factors, destination, n);
    return;
  }
  size_t head = lcomm_line_head(destination, sizeof *destination, n);
  decode_f16(LCOMM_CACHED, code, factors, destination, head);
  decode_f16(LCOMM_STREAMED, code + head, factors, destination + head, n - head);
  _mm_sfence();
}

void lcomm_avx512_f16_add(const uint16_t *code, float factor, float *destination, size_t n) {
  decode_f16(LCOMM_ADDED, code, _mm512_set1_ps(factor), destination, n);
}

/* bf16 */

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

LCOMM_VECTOR void encode_bf16(lcomm_path path, const float *source, uint16_t *code, size_t n) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    lcomm_prefetch(source + i, LCOMM_AHEAD);
    lcomm_prefetch(source + i + 16, LCOMM_AHEAD);
    __m512i low = _mm512_loadu_si512(source + i);
    __m512i high = _mm512_loadu_si512(source + i + 16);
    lcomm_store_bits(path, code + i, bf16_of_pair(low, high));
  }
  for (; i < n; i += LCOMM_LANES) {
    __mmask16 lanes = lcomm_lanes(n - i);
    __m512i bits = _mm512_maskz_loadu_epi32(lanes, source + i);
    _mm256_mask_storeu_epi16(code + i, lanes, bf16_of(bits));
  }
}

void lcomm_avx512_f32_to_bf16(const float *source, uint16_t *code, size_t n) {
  if (n < LCOMM_STREAM_COUNT) {
    encode_bf16(LCOMM_CACHED, source, code, n);
    return;
  }
  size_t head = lcomm_line_head(code, sizeof *code, n);
  encode_bf16(LCOMM_CACHED, source, code, head);
  encode_bf16(LCOMM_STREAMED, source + head, code + head, n - head);
  _mm_sfence();
}

LCOMM_VECTOR __m512 bf16_value(__m256i codes, __m512 factor) {
  __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16);
  return _mm512_mul_ps(factor, _mm512_castsi512_ps(bits));
}

LCOMM_VECTOR __m512 bf16_at(const uint16_t *code, __m512 factor) {
  return bf16_value(_mm256_loadu_si256((const __m256i *)code), factor);
}

LCOMM_VECTOR __m512 bf16_at_lanes(const uint16_t *code, __mmask16 lanes, __m512 factor) {
  return bf16_value(_mm256_maskz_loadu_epi16(lanes, code), factor);
}

LCOMM_VECTOR void decode_bf16(lcomm_path path, const uint16_t *code, __m512 factor,
                              float *destination, size_t n) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    lcomm_prefetch_codes(path, code + i);
    lcomm_put(path, destination + i, bf16_at(code + i, factor));
    lcomm_put(path, destination + i + 16, bf16_at(code + i + 16, factor));
  }
  for (; i < n; i += LCOMM_LANES) {
    __mmask16 lanes = lcomm_lanes(n - i);
    lcomm_put_lanes(path, destination + i, lanes, bf16_at_lanes(code + i, lanes, factor));
  }
}

void lcomm_avx512_bf16_to_f32(const uint16_t *code, float factor, float *destination, size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  if (n < LCOMM_STREAM_COUNT) {
    decode_bf16(LCOMM_CACHED, code, factors, destination, n);
    return;
  }
  size_t head = lcomm_line_head(destination, sizeof *destination, n);
  decode_bf16(LCOMM_CACHED, code, factors, destination, head);
  decode_bf16(LCOMM_STREAMED, code + head, factors, destination + head, n - head);
  _mm_sfence();
}

void lcomm_avx512_bf16_add(const uint16_t *code, float factor, float *destination, size_t n) {
  decode_bf16(LCOMM_ADDED, code, _mm512_set1_ps(factor), destination, n);
}
