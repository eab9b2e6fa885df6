/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels that encode sign and int2, eight blocks at a time. One set of inline functions
 * for both formats, which are constants wherever they are used.
 */

#include "kernels/avx2.h"
#include "kernels/avx2_block.h"
#include "kernels/lowbit.h"

enum { STEP = LCOMM_AVX2_STEP, LANES = LCOMM_AVX2_LANES, TILE = LCOMM_AVX2_TILE };

/* Bytes of `count` codes. */
LCOMM_AVX2_INLINE size_t code_size(lcomm_lowbit format, size_t count) {
  return format == LCOMM_SIGN ? (count + 7) / 8 : (count + 3) / 4;
}

/* The sign bits of a step are the top bits of these bytes: packing saturates, which keeps the
 * sign. */
LCOMM_AVX2_INLINE __m256i pack_signs(const __m256i bits[4]) {
  return _mm256_packs_epi16(_mm256_packs_epi32(bits[0], bits[1]),
                            _mm256_packs_epi32(bits[2], bits[3]));
}

LCOMM_AVX2_INLINE void put_signs(const __m256i bits[4], uint8_t *code) {
  int32_t signs = _mm256_movemask_epi8(lcomm_avx2_unmix_bytes(pack_signs(bits)));
  memcpy(code, &signs, sizeof signs);
}

/* Codes as bytes, then two of them in each word, then four in each dword. */
LCOMM_AVX2_INLINE void put_int2(const __m256i bits[4], __m256i limit, uint8_t *code) {
  __m256i large[4];
  for (int v = 0; v < 4; v++) {
    __m256i magnitude = _mm256_and_si256(bits[v], _mm256_set1_epi32(0x7fffffff));
    large[v] = _mm256_cmpgt_epi32(magnitude, limit);
  }
  __m256i sign = _mm256_srli_epi16(pack_signs(bits), 7);
  sign = _mm256_and_si256(sign, _mm256_set1_epi8(1));
  __m256i codes = _mm256_or_si256(sign, _mm256_and_si256(pack_signs(large), _mm256_set1_epi8(2)));
  __m256i pairs = _mm256_maddubs_epi16(lcomm_avx2_unmix_bytes(codes), _mm256_set1_epi16(0x0401));
  __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00100001));
  __m256i words = lcomm_avx2_unmix_words(_mm256_packus_epi32(fours, fours));
  __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_castsi256_si128(words));
  _mm_storel_epi64((__m128i *)code, bytes);
}

/* lcomm_sign_scale of eight blocks. */
LCOMM_AVX2_INLINE __m256i sign_scales(__m256i amax, __m256i squares, __m256 share) {
  __m256 mean = _mm256_mul_ps(_mm256_cvtepi32_ps(squares), share);
  __m256i exponent = _mm256_srli_epi32(_mm256_castps_si256(mean), 23);
  __m256i half = _mm256_srli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(1)), 1);
  half = _mm256_sub_epi32(half, _mm256_set1_epi32(64));
  __m256i byte = _mm256_add_epi32(_mm256_srli_epi32(amax, 23), half);
  return _mm256_min_epi32(byte, _mm256_set1_epi32(LCOMM_E8M0_NAN - 1));
}

/* Those of blocks that are sent as zeros, and of those that are not finite. */
LCOMM_AVX2_INLINE __m256i special_scales(__m256i amax, __m256i byte) {
  __m256i tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(LCOMM_INTEGER_TINY_BITS), amax);
  __m256i infinite = _mm256_cmpgt_epi32(amax, _mm256_set1_epi32(LCOMM_F32_INF_BITS - 1));
  byte = _mm256_andnot_si256(tiny, byte);
  return _mm256_blendv_epi8(byte, _mm256_set1_epi32(LCOMM_E8M0_NAN), infinite);
}

LCOMM_AVX2_INLINE __m256i steps_at(const float *source, __m256 steps_of_one) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(source), steps_of_one));
}

/* Eight sums whose total is the sum of the squares of the steps of a block; writes its signs. */
LCOMM_AVX2_INLINE __m256i squares_and_signs(const float *source, size_t block, int32_t amax,
                                            uint8_t *code) {
  __m256 by = _mm256_set1_ps(lcomm_sign_steps_of_one(amax));
  __m256i sum = _mm256_setzero_si256(), bits[4];
  for (size_t i = 0; i < block; i += STEP) {
    lcomm_avx2_prefetch_tile(source + i, block);
    for (int v = 0; v < 4; v++) {
      bits[v] = lcomm_avx2_get(source + i + v * LANES);
    }
    for (int v = 0; v < STEP; v += 2 * LANES) {
      __m256i steps =
          _mm256_packs_epi32(steps_at(source + i + v, by), steps_at(source + i + v + LANES, by));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(steps, steps));
    }
    put_signs(bits, code + i / 8);
  }
  return sum;
}

/* The sums of eight blocks: a transposition that adds at each of its steps. */
LCOMM_AVX2_INLINE __m256i add_up(const __m256i sum[LANES]) {
  __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), //
                                  _mm256_hadd_epi32(sum[2], sum[3]));
  __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[4], sum[5]), //
                                   _mm256_hadd_epi32(sum[6], sum[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                          _mm256_permute2x128_si256(low, high, 0x31));
}

LCOMM_AVX2_INLINE __m256i encode_signs(const float *source, size_t block, __m256i amax,
                                       __m256 share, uint8_t *code) {
  int32_t amaxes[LANES];
  __m256i sums[LANES];
  _mm256_storeu_si256((__m256i *)amaxes, amax);
  for (size_t b = 0; b < LANES; b++) {
    sums[b] = squares_and_signs(source + b * block, block, amaxes[b],
                                code + b * code_size(LCOMM_SIGN, block));
  }
  return special_scales(amax, sign_scales(amax, add_up(sums), share));
}

LCOMM_AVX2_INLINE void encode_int2(const float *source, size_t block, const uint8_t *scale,
                                   uint8_t *code) {
  __m256i bits[4];
  for (size_t i = 0; i < LANES * block; i += STEP) {
    __m256i limit = _mm256_set1_epi32(lcomm_int2_limit(scale[i / block]));
    lcomm_avx2_prefetch_tile(source + i, block);
    for (int v = 0; v < 4; v++) {
      bits[v] = lcomm_avx2_get(source + i + v * LANES);
    }
    put_int2(bits, limit, code + i / 4);
  }
}

LCOMM_AVX2_INLINE void store_scales(__m256i byte, uint8_t *scale) {
  __m256i words = lcomm_avx2_unmix_words(_mm256_packus_epi32(byte, byte));
  _mm_storel_epi64((__m128i *)scale, _mm256_castsi256_si128(_mm256_packus_epi16(words, words)));
}

LCOMM_AVX2_INLINE void encode_tile(lcomm_lowbit format, const float *source, size_t block,
                                   __m256 share, uint8_t *code, uint8_t *scale) {
  __m256i amax = lcomm_avx2_amax(source, block);
  if (format == LCOMM_SIGN) {
    store_scales(encode_signs(source, block, amax, share, code), scale);
  } else {
    store_scales(
        special_scales(amax, _mm256_sub_epi32(_mm256_srli_epi32(amax, 23), _mm256_set1_epi32(2))),
        scale);
    encode_int2(source, block, scale, code);
  }
  for (size_t b = 0; b < LANES; b++) {
    if (scale[b] == LCOMM_E8M0_NAN) {
      memset(code + b * code_size(format, block), 0, code_size(format, block));
    }
  }
}

/* Fewer than eight blocks, the last one short: padded with zeros. */
LCOMM_AVX2_INLINE void encode_rest(lcomm_lowbit format, const float *source, size_t block,
                                   uint8_t *code, uint8_t *scale, size_t n) {
  float padded[TILE] = {0}, share[LANES];
  uint8_t codes[TILE / 4], scales[LANES];
  for (size_t b = 0; b < LANES; b++) {
    bool is_short = b == n / block && n % block != 0;
    share[b] = lcomm_sign_share((uint32_t)(is_short ? n % block : block));
  }
  memcpy(padded, source, n * sizeof *padded);
  encode_tile(format, padded, block, _mm256_loadu_ps(share), codes, scales);
  memcpy(code, codes, code_size(format, n));
  memcpy(scale, scales, (n + block - 1) / block);
}

LCOMM_AVX2_INLINE void encode(lcomm_lowbit format, const float *source, size_t block, uint8_t *code,
                              uint8_t *scale, size_t n) {
  __m256 share = _mm256_set1_ps(lcomm_sign_share((uint32_t)block));
  size_t tile = LANES * block, body = n - n % tile;
  for (size_t i = 0; i < body; i += tile) {
    encode_tile(format, source + i, block, share, code + code_size(format, i), scale + i / block);
  }
  if (body < n) {
    encode_rest(format, source + body, block, code + code_size(format, body), scale + body / block,
                n - body);
  }
}

/* One call for each constant block. */
LCOMM_AVX2_INLINE void encode_any(lcomm_lowbit format, const float *source, size_t block,
                                  uint8_t *code, uint8_t *scale, size_t n) {
  if (block == LCOMM_BLOCK) {
    encode(format, source, LCOMM_BLOCK, code, scale, n);
  } else {
    encode(format, source, block, code, scale, n);
  }
}

void lcomm_avx2_f32_to_sign(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                            size_t n) {
  encode_any(LCOMM_SIGN, source, block, code, scale, n);
}

void lcomm_avx2_f32_to_int2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                            size_t n) {
  encode_any(LCOMM_INT2, source, block, code, scale, n);
}
