/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels that decode fp8: a code is shifted into an f16, which the
 * processor converts exactly, subnormal numbers included. What that gets wrong,
 * NaN of E4M3 and scales near the end of float32, is rare and done slowly. */

#include "kernels/avx2.h"
#include "kernels/avx2_block.h"

enum { STEP = LCOMM_AVX2_STEP, LANES = LCOMM_AVX2_LANES, TILE = LCOMM_AVX2_TILE };

/* Part of one block. */
LCOMM_AVX2_INLINE void decode_few(lcomm_fp8 format, lcomm_avx2_way way, const uint8_t *code,
                                  const uint8_t *scale, size_t block, float factor,
                                  float *destination, size_t first, size_t end) {
  if (first == end) {
    return;
  }
  float unit = lcomm_e8m0_to_f32(scale[first / block]);
  for (size_t i = first; i < end; i++) {
    float number = format == LCOMM_E4M3 ? lcomm_e4m3_to_f32(code[i]) : lcomm_e5m2_to_f32(code[i]);
    float value = factor * (unit * number);
    destination[i] = way == LCOMM_AVX2_ADD ? destination[i] + value : value;
  }
}

/* E4M3 read as f16 is 2^-8 times too small, because its exponent is biased by
 * 7 and that of f16 by 15. The scale makes up for that, unless it overflows. */
LCOMM_AVX2_INLINE int scale_overflows(lcomm_fp8 format, uint8_t scale) {
  return format == LCOMM_E4M3 && scale > LCOMM_E8M0_NAN - 1 - 8 && scale != LCOMM_E8M0_NAN;
}

/* The NaN of E4M3 is a number of f16. */
LCOMM_AVX2_INLINE int holds_nan(lcomm_fp8 format, const uint8_t *code) {
  __m256i nan = _mm256_set1_epi8(0x7f);
  __m256i magnitude = _mm256_and_si256(lcomm_avx2_get(code), nan);
  return format == LCOMM_E4M3 && _mm256_movemask_epi8(_mm256_cmpeq_epi8(magnitude, nan)) != 0;
}

/* Sixteen codes as f16. */
LCOMM_AVX2_INLINE __m256i widen(lcomm_fp8 format, __m128i codes) {
  if (format == LCOMM_E5M2) {
    return _mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 8);
  }
  __m256i shifted = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
  return _mm256_and_si256(shifted, _mm256_set1_epi16((short)0xbf80));
}

LCOMM_AVX2_INLINE void decode_step(lcomm_fp8 format, lcomm_avx2_way way, const uint8_t *code,
                                   __m256 unit, __m256 factor, float *destination) {
  for (int i = 0; i < STEP; i += 2 * LANES) {
    __m256i f16 = widen(format, _mm_loadu_si128((const __m128i *)(code + i)));
    __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(f16));
    __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(f16, 1));
    low = _mm256_mul_ps(factor, _mm256_mul_ps(unit, low));
    high = _mm256_mul_ps(factor, _mm256_mul_ps(unit, high));
    lcomm_avx2_put_f32(way, destination + i, low);
    lcomm_avx2_put_f32(way, destination + i + LANES, high);
  }
}

/* Whole blocks. */
LCOMM_AVX2_INLINE void decode_blocks(lcomm_fp8 format, lcomm_avx2_way way, const uint8_t *code,
                                     const uint8_t *scale, size_t block, float factor,
                                     float *destination, size_t n) {
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t first = 0; first < n; first += block) {
    uint8_t byte = scale[first / block];
    float unit = lcomm_e8m0_to_f32(byte) * (format == LCOMM_E4M3 ? 256.0f : 1.0f);
    int slow = scale_overflows(format, byte);
    for (size_t i = first; i < first + block; i += STEP) {
      lcomm_avx2_prefetch(code + i, STEP);
      if (way == LCOMM_AVX2_ADD) {
        lcomm_avx2_prefetch(destination + i, STEP * sizeof *destination);
      }
      if (slow || holds_nan(format, code + i)) {
        decode_few(format, way, code, scale, block, factor, destination, i, i + STEP);
      } else {
        decode_step(format, way, code + i, _mm256_set1_ps(unit), factors, destination + i);
      }
    }
  }
}

/* Bytes of `count` codes. */
LCOMM_AVX2_INLINE size_t code_size(lcomm_fp8 format, size_t count) {
  (void)format;
  return count;
}

typedef lcomm_fp8 code_format;
typedef uint8_t code_scale;

#include "kernels/avx2_decode_body.h"

void lcomm_avx2_e4m3_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                            float *destination, size_t n) {
  decode(LCOMM_E4M3, code, scale, block, factor, destination, n);
}

void lcomm_avx2_e5m2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                            float *destination, size_t n) {
  decode(LCOMM_E5M2, code, scale, block, factor, destination, n);
}

void lcomm_avx2_e4m3_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                         float *destination, size_t n) {
  add(LCOMM_E4M3, code, scale, block, factor, destination, n);
}

void lcomm_avx2_e5m2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                         float *destination, size_t n) {
  add(LCOMM_E5M2, code, scale, block, factor, destination, n);
}
