/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels that decode sign and int2: the four values that a block can have are computed
 * once and looked up, by the lowest two bits of a lane. The second one is of another element
 * where codes have one bit, and there the values of both are equal.
 */

#include "kernels/avx2.h"
#include "kernels/avx2_block.h"
#include "kernels/lowbit.h"

enum { STEP = LCOMM_AVX2_STEP, LANES = LCOMM_AVX2_LANES, TILE = LCOMM_AVX2_TILE };

/* Bytes of `count` codes. */
LCOMM_AVX2_INLINE size_t code_size(lcomm_lowbit format, size_t count) {
  return format == LCOMM_SIGN ? (count + 7) / 8 : (count + 3) / 4;
}

LCOMM_AVX2_INLINE float value_of(lcomm_lowbit format, float unit, uint32_t code, float factor) {
  return factor * (unit * lcomm_lowbit_to_f32(format == LCOMM_SIGN ? code & 1 : code & 3));
}

LCOMM_AVX2_INLINE __m256 values_of(lcomm_lowbit format, uint8_t scale, __m256 factor) {
  const __m256 sign = _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1);
  const __m256 int2 = _mm256_setr_ps(1, -1, 4, -4, 1, -1, 4, -4);
  __m256 unit = _mm256_set1_ps(lcomm_lowbit_scale_to_f32(scale));
  return _mm256_mul_ps(factor, _mm256_mul_ps(unit, format == LCOMM_SIGN ? sign : int2));
}

/* Sixteen elements of int2, or 32 of sign, whose codes are in every lane of `codes`. */
LCOMM_AVX2_INLINE void decode_word(lcomm_lowbit format, lcomm_avx2_way way, __m256i codes,
                                   __m256 values, float *destination) {
  __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  int width = format == LCOMM_SIGN ? 1 : 2;
  for (int i = 0; i < 32 / width; i += LANES) {
    __m256i shift = _mm256_add_epi32(format == LCOMM_SIGN ? lane : _mm256_slli_epi32(lane, 1),
                                     _mm256_set1_epi32(i * width));
    __m256i index = _mm256_srlv_epi32(codes, shift);
    lcomm_avx2_put_f32(way, destination + i, _mm256_permutevar_ps(values, index));
  }
}

/* Whole blocks. */
LCOMM_AVX2_INLINE void decode_blocks(lcomm_lowbit format, lcomm_avx2_way way, const uint8_t *code,
                                     const uint8_t *scale, size_t block, float factor,
                                     float *destination, size_t n) {
  const size_t in_word = format == LCOMM_SIGN ? 32 : 16;
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t first = 0; first < n; first += block, scale++) {
    __m256 values = values_of(format, *scale, factors);
    for (size_t i = first; i < first + block; i += in_word, code += sizeof(int32_t)) {
      int32_t codes;
      memcpy(&codes, code, sizeof codes);
      if (way == LCOMM_AVX2_ADD) {
        lcomm_avx2_prefetch(destination + i, in_word * sizeof *destination);
      }
      decode_word(format, way, _mm256_set1_epi32(codes), values, destination + i);
    }
  }
}

/* Part of the last block. */
LCOMM_AVX2_INLINE void decode_few(lcomm_lowbit format, lcomm_avx2_way way, const uint8_t *code,
                                  const uint8_t *scale, size_t block, float factor,
                                  float *destination, size_t first, size_t end) {
  const size_t width = format == LCOMM_SIGN ? 1 : 2, in_byte = 8 / width;
  if (first == end) {
    return;
  }
  float unit = lcomm_lowbit_scale_to_f32(scale[first / block]);
  for (size_t i = first; i < end; i++) {
    uint32_t bits = (uint32_t)code[i / in_byte] >> width * (i % in_byte);
    float value = value_of(format, unit, bits, factor);
    destination[i] = way == LCOMM_AVX2_ADD ? destination[i] + value : value;
  }
}

typedef lcomm_lowbit code_format;
typedef uint8_t code_scale;

#include "kernels/avx2_decode_body.h"

void lcomm_avx2_sign_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                            float *destination, size_t n) {
  decode(LCOMM_SIGN, code, scale, block, factor, destination, n);
}

void lcomm_avx2_int2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                            float *destination, size_t n) {
  decode(LCOMM_INT2, code, scale, block, factor, destination, n);
}

void lcomm_avx2_sign_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                         float *destination, size_t n) {
  add(LCOMM_SIGN, code, scale, block, factor, destination, n);
}

void lcomm_avx2_int2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                         float *destination, size_t n) {
  add(LCOMM_INT2, code, scale, block, factor, destination, n);
}
