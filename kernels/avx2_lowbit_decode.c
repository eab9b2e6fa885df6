/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels that decode sign and int2: the four values that a block can have are computed
 * once, and each lane blends them by its bits. (A look-up by shifted codes takes twice as long on
 * some processors.)
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

/* Of a block: the values of the codes 0..3. */
typedef struct levels {
  __m256 value[4];
} levels;

LCOMM_AVX2_INLINE levels levels_of(uint8_t scale, __m256 factor) {
  __m256 unit = _mm256_set1_ps(lcomm_lowbit_scale_to_f32(scale));
  levels all;
  for (uint32_t code = 0; code < 4; code++) {
    __m256 number = _mm256_set1_ps(lcomm_lowbit_to_f32(code));
    all.value[code] = _mm256_mul_ps(factor, _mm256_mul_ps(unit, number));
  }
  return all;
}

/* All ones in the lanes whose bit of `codes` is set; lane 0 has bit `first`, and each lane after it
 * a bit `width` further on. */
LCOMM_AVX2_INLINE __m256 lanes_with_bit(__m256i codes, int width, int first) {
  __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i shift =
      _mm256_add_epi32(width == 1 ? lane : _mm256_slli_epi32(lane, 1), _mm256_set1_epi32(first));
  __m256i bit = _mm256_sllv_epi32(_mm256_set1_epi32(1), shift); /* a constant */
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(codes, bit), bit));
}

/* Sixteen elements of int2, or 32 of sign, whose codes are in every lane of `codes`. */
LCOMM_AVX2_INLINE void decode_word(lcomm_lowbit format, lcomm_avx2_way way, __m256i codes,
                                   const levels *all, float *destination) {
  const int width = format == LCOMM_SIGN ? 1 : 2;
  for (int i = 0; i < 32 / width; i += LANES) {
    __m256 minus = lanes_with_bit(codes, width, i * width);
    __m256 value = _mm256_blendv_ps(all->value[0], all->value[1], minus);
    if (format == LCOMM_INT2) {
      __m256 large = lanes_with_bit(codes, width, i * width + 1);
      value = _mm256_blendv_ps(value, _mm256_blendv_ps(all->value[2], all->value[3], minus), large);
    }
    lcomm_avx2_put_f32(way, destination + i, value);
  }
}

/* Whole blocks. */
LCOMM_AVX2_INLINE void decode_blocks(lcomm_lowbit format, lcomm_avx2_way way, const uint8_t *code,
                                     const uint8_t *scale, size_t block, float factor,
                                     float *destination, size_t n) {
  const size_t in_word = format == LCOMM_SIGN ? 32 : 16;
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t first = 0; first < n; first += block, scale++) {
    levels all = levels_of(*scale, factors);
    for (size_t i = first; i < first + block; i += in_word, code += sizeof(int32_t)) {
      int32_t codes;
      memcpy(&codes, code, sizeof codes);
      if (way == LCOMM_AVX2_ADD) {
        lcomm_avx2_prefetch(destination + i, in_word * sizeof *destination);
      }
      decode_word(format, way, _mm256_set1_epi32(codes), &all, destination + i);
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
