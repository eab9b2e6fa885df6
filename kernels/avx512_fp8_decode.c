/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels that decode fp8. The bits of E5M2 are the upper byte of an
 * f16, those of E4M3 the middle of an f16 that is 256 times smaller; the
 * processor converts f16. Scales are powers of two: scale * code is exact unless
 * it overflows, and so factor * scale may be multiplied first while it stays
 * normal. The scalar kernels decode the stretches where it does not, and those with
 * an E4M3 NaN.
 */

#include "kernels/avx512.h"
#include "kernels/avx512_scale.h"

/* factor * scale for a scale byte b is the number with the bits base + b * 2^23,
 * for b from `least` to `most`; none when most < least. */
typedef struct fp8_factor {
  uint32_t base;
  int32_t least, most;
} fp8_factor;

static inline fp8_factor factor_for(lcomm_fp8 format, float factor) {
  /* What the f16 are too small by */
  const int32_t missing = format == LCOMM_E4M3 ? 8 : 0;
  int32_t exponent = lcomm_f32_magnitude(factor) >> 23;
  int32_t shift = missing - LCOMM_E8M0_ONE;
  int32_t least = 1 - exponent - shift, most = 254 - exponent - shift;
  /* The largest number of the format must not overflow. */
  int32_t top = 254 - (format == LCOMM_E4M3 ? LCOMM_E4M3_TOP : LCOMM_E5M2_TOP);
  fp8_factor result = {lcomm_f32_bits(factor) + ((uint32_t)shift << 23), least,
                       most < top ? most : top};
  if (exponent == 0 || exponent == 255) {
    result.most = least - 1;
  }
  return result;
}

/* 16 codes, of E4M3 divided by 256 */
LCOMM_VECTOR __m512 values_at(lcomm_fp8 format, const uint8_t *code) {
  __m128i bytes = _mm_loadu_si128((const __m128i *)code);
  if (format == LCOMM_E5M2) {
    return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes), 8));
  }
  __m256i words = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7);
  return _mm512_cvtph_ps(_mm256_and_si256(words, _mm256_set1_epi16((short)0xbf80)));
}

LCOMM_VECTOR bool is_plain(lcomm_fp8 format, const uint8_t *code, const uint8_t *scale,
                           size_t block, fp8_factor factor) {
  bool plain = true;
  for (size_t b = 0; b < LCOMM_BLOCK / block; b++) {
    plain &= scale[b] >= factor.least && scale[b] <= factor.most;
  }
  if (format == LCOMM_E5M2) {
    return plain;
  }
  const __m512i nan = _mm512_set1_epi8(0x7f);
  __m512i low = _mm512_and_si512(_mm512_loadu_si512(code), nan);
  __m512i high = _mm512_and_si512(_mm512_loadu_si512(code + 64), nan);
  return plain && !_mm512_cmpeq_epi8_mask(_mm512_max_epu8(low, high), nan);
}

LCOMM_VECTOR void decode_unit(lcomm_fp8 format, lcomm_path path, const uint8_t *code,
                              const uint8_t *scale, size_t block, fp8_factor factor,
                              float *destination) {
  /* Read before anything is stored, which might be a scale for all we know. */
  __m512 factors[LCOMM_BLOCK / 32];
  for (size_t b = 0; b < LCOMM_BLOCK / block; b++) {
    uint32_t bits = factor.base + ((uint32_t)scale[b] << 23);
    factors[b] = _mm512_castsi512_ps(_mm512_set1_epi32((int)bits));
  }
  for (size_t i = 0; i < LCOMM_BLOCK; i += LCOMM_LANES) {
    __m512 value = values_at(format, code + i);
    lcomm_put(path, destination + i, _mm512_mul_ps(factors[i / block], value));
  }
}

static void decode_by_scalar(lcomm_fp8 format, lcomm_path path, const uint8_t *code,
                             const uint8_t *scale, size_t block, float factor, float *destination,
                             size_t n) {
  if (path == LCOMM_ADDED) {
    lcomm_kernels_scalar.fp8_add[format](code, scale, block, factor, destination, n);
  } else {
    lcomm_kernels_scalar.fp8_to_f32[format](code, scale, block, factor, destination, n);
  }
}

/* Returns how many elements were decoded before the first stretch that is not
 * plain. */
LCOMM_VECTOR size_t decode_plain(lcomm_fp8 format, lcomm_path path, const uint8_t *code,
                                 const uint8_t *scale, size_t block, fp8_factor factor,
                                 float *destination, size_t n) {
  size_t i = 0;
  for (; i + LCOMM_BLOCK <= n; i += LCOMM_BLOCK) {
    if (!is_plain(format, code + i, scale + i / block, block, factor)) {
      break;
    }
    lcomm_prefetch_codes(path, code + i);
    lcomm_prefetch_codes(path, code + i + 64);
    decode_unit(format, path, code + i, scale + i / block, block, factor, destination + i);
  }
  return i;
}

LCOMM_VECTOR void decode_blocks(lcomm_fp8 format, lcomm_path path, const uint8_t *code,
                                const uint8_t *scale, size_t block, float factor,
                                float *destination, size_t n) {
  fp8_factor factors = factor_for(format, factor);
  for (size_t i = 0; i < n;) {
    i += decode_plain(format, path, code + i, scale + i / block, block, factors, destination + i,
                      n - i);
    size_t count = n - i < LCOMM_BLOCK ? n - i : LCOMM_BLOCK;
    decode_by_scalar(format, path, code + i, scale + i / block, block, factor, destination + i,
                     count);
    i += count;
  }
}

LCOMM_VECTOR void decode(lcomm_fp8 format, lcomm_path path, const uint8_t *code,
                         const uint8_t *scale, size_t block, float factor, float *destination,
                         size_t n) {
  switch (block) {
  case 32:
    decode_blocks(format, path, code, scale, 32, factor, destination, n);
    return;
  case 64:
    decode_blocks(format, path, code, scale, 64, factor, destination, n);
    return;
  default:
    decode_blocks(format, path, code, scale, LCOMM_BLOCK, factor, destination, n);
  }
}

LCOMM_VECTOR void decode_any(lcomm_fp8 format, const uint8_t *code, const uint8_t *scale,
                             size_t block, float factor, float *destination, size_t n) {
  if (n < LCOMM_STREAM_COUNT) {
    decode(format, LCOMM_CACHED, code, scale, block, factor, destination, n);
    return;
  }
  if (lcomm_is_line(destination)) {
    decode(format, LCOMM_STREAMED, code, scale, block, factor, destination, n);
    _mm_sfence();
    return;
  }
  float stage[LCOMM_STAGE];
  for (size_t i = 0; i < n; i += LCOMM_STAGE) {
    size_t count = n - i < LCOMM_STAGE ? n - i : LCOMM_STAGE;
    decode(format, LCOMM_CACHED, code + i, scale + i / block, block, factor, stage, count);
    lcomm_stream_copy(destination + i, stage, count * sizeof *stage);
  }
  _mm_sfence();
}

void lcomm_avx512_e4m3_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode_any(LCOMM_E4M3, code, scale, block, factor, destination, n);
}

void lcomm_avx512_e5m2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode_any(LCOMM_E5M2, code, scale, block, factor, destination, n);
}

void lcomm_avx512_e4m3_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n) {
  decode(LCOMM_E4M3, LCOMM_ADDED, code, scale, block, factor, destination, n);
}

void lcomm_avx512_e5m2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n) {
  decode(LCOMM_E5M2, LCOMM_ADDED, code, scale, block, factor, destination, n);
}
