/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels for int8 and int4. Eight blocks at a time are encoded, so that
 * the search for their maxima and the divisions fill whole vectors.
 */

#include "kernels/avx2.h"
#include "kernels/avx2_block.h"

typedef enum width { INT8, INT4 } width;

enum { STEP = LCOMM_AVX2_STEP, LANES = LCOMM_AVX2_LANES, TILE = LCOMM_AVX2_TILE };

/* Bytes of `count` codes. */
LCOMM_AVX2_INLINE size_t code_size(width format, size_t count) {
  return format == INT8 ? count : (count + 1) / 2;
}

LCOMM_AVX2_INLINE float largest_code(width format) {
  return format == INT8 ? 127.0f : 7.0f;
}

/* Encoding */

LCOMM_AVX2_INLINE __m256i round_lanes(const float *source, __m256 inverse) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(source), inverse));
}

LCOMM_AVX2_INLINE void encode_step(width format, lcomm_avx2_way way, const float *source,
                                   __m256 inverse, uint8_t *code) {
  __m256i low = _mm256_packs_epi32(round_lanes(source, inverse), //
                                   round_lanes(source + LANES, inverse));
  __m256i high = _mm256_packs_epi32(round_lanes(source + 2 * LANES, inverse),
                                    round_lanes(source + 3 * LANES, inverse));
  __m256i bytes = lcomm_avx2_unmix_bytes(_mm256_packs_epi16(low, high));
  if (format == INT8) {
    lcomm_avx2_put(way, code, bytes);
    return;
  }
  __m256i nibbles = _mm256_and_si256(bytes, _mm256_set1_epi8(0xf));
  __m256i pairs = _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(0x1001)); /* even + 16 * odd */
  __m256i packed = lcomm_avx2_unmix_words(_mm256_packus_epi16(pairs, pairs));
  lcomm_avx2_put_half(way, code, _mm256_castsi256_si128(packed));
}

/* Returns the scale. */
LCOMM_AVX2_INLINE float encode_not_finite(width format, const float *source, size_t block,
                                          uint8_t *code) {
  int nan = 0;
  for (size_t i = 0; i < block; i++) {
    nan |= lcomm_f32_magnitude(source[i]) > (int32_t)LCOMM_F32_INF_BITS;
  }
  memset(code, 0, code_size(format, block));
  if (nan) {
    return lcomm_f32_from_bits(LCOMM_F32_NAN_BITS);
  }
  int most = (int)largest_code(format);
  for (size_t i = 0; i < block; i++) {
    int infinite = !lcomm_f32_is_finite(source[i]);
    int value = !infinite ? 0 : source[i] > 0.0f ? most : -most;
    if (format == INT8) {
      code[i] = (uint8_t)value;
    } else {
      code[i / 2] = (uint8_t)(code[i / 2] | (value & 0xf) << (i % 2 * 4));
    }
  }
  return lcomm_f32_from_bits(LCOMM_F32_INF_BITS);
}

/* The scales of eight blocks and their inverses, both 0 for tiny blocks. */
LCOMM_AVX2_INLINE __m256 scales_of(width format, __m256i amax, float *inverse) {
  __m256 most = _mm256_set1_ps(largest_code(format)), largest = _mm256_castsi256_ps(amax);
  __m256i tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(LCOMM_INTEGER_TINY_BITS), amax);
  __m256 zero_where = _mm256_castsi256_ps(tiny);
  _mm256_storeu_ps(inverse, _mm256_andnot_ps(zero_where, _mm256_div_ps(most, largest)));
  return _mm256_andnot_ps(zero_where, _mm256_div_ps(largest, most));
}

LCOMM_AVX2_INLINE void encode_tile(width format, lcomm_avx2_way way, const float *source,
                                   size_t block, uint8_t *code, float *scale) {
  __m256i amax = lcomm_avx2_amax(source, block);
  float inverse[LANES];
  int32_t amaxes[LANES];
  _mm256_storeu_si256((__m256i *)amaxes, amax);
  _mm256_storeu_ps(scale, scales_of(format, amax, inverse));
  for (size_t b = 0; b < LANES; b++, source += block, code += code_size(format, block)) {
    if (amaxes[b] >= (int32_t)LCOMM_F32_INF_BITS) {
      scale[b] = encode_not_finite(format, source, block, code);
      continue;
    }
    __m256 factor = _mm256_broadcast_ss(&inverse[b]);
    for (size_t i = 0; i < block; i += STEP) {
      lcomm_avx2_prefetch_tile(source + i, block);
      encode_step(format, way, source + i, factor, code + code_size(format, i));
    }
  }
}

LCOMM_AVX2_INLINE void encode_tiles(width format, lcomm_avx2_way way, const float *source,
                                    size_t block, uint8_t *code, float *scale, size_t n) {
  size_t tile = LANES * block;
  for (size_t i = 0; i < n; i += tile, scale += LANES) {
    encode_tile(format, way, source + i, block, code + code_size(format, i), scale);
  }
}

/* Fewer than eight blocks, the last one short: padded with zeros. */
LCOMM_AVX2_INLINE void encode_rest(width format, const float *source, size_t block, uint8_t *code,
                                   float *scale, size_t first, size_t end) {
  if (first == end) {
    return;
  }
  size_t n = end - first;
  float padded[TILE] = {0}, scales[LANES];
  uint8_t codes[TILE];
  memcpy(padded, source + first, n * sizeof *padded);
  encode_tile(format, LCOMM_AVX2_STORE, padded, block, codes, scales);
  memcpy(code + code_size(format, first), codes, code_size(format, n));
  memcpy(scale + first / block, scales, (n + block - 1) / block * sizeof *scale);
}

LCOMM_AVX2_INLINE void encode(width format, const float *source, size_t block, uint8_t *code,
                              float *scale, size_t n) {
  size_t body = n - n % (LANES * block);
  if (n >= LCOMM_STREAM_COUNT && lcomm_avx2_aligned(code)) {
    encode_tiles(format, LCOMM_AVX2_STREAM, source, block, code, scale, body);
    lcomm_avx2_streamed();
  } else {
    encode_tiles(format, LCOMM_AVX2_STORE, source, block, code, scale, body);
  }
  encode_rest(format, source, block, code, scale, body, n);
}

/* Decoding */

/* Eight codes from element i on. Those of int4 are four bytes: each lane moves
 * its own to the top and back, which extends the sign. */
LCOMM_AVX2_INLINE __m256i get_codes(width format, const uint8_t *code, size_t i) {
  if (format == INT8) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(code + i)));
  }
  int32_t nibbles;
  memcpy(&nibbles, code + i / 2, sizeof nibbles);
  __m256i above = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
  return _mm256_srai_epi32(_mm256_sllv_epi32(_mm256_set1_epi32(nibbles), above), 28);
}

LCOMM_AVX2_INLINE void decode_step(width format, lcomm_avx2_way way, const uint8_t *code,
                                   __m256 scale, __m256 factor, float *destination) {
  for (size_t i = 0; i < STEP; i += LANES) {
    __m256 value = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(get_codes(format, code, i)));
    lcomm_avx2_put_f32(way, destination + i, _mm256_mul_ps(factor, value));
  }
}

/* Whole blocks. */
LCOMM_AVX2_INLINE void decode_blocks(width format, lcomm_avx2_way way, const uint8_t *code,
                                     const float *scale, size_t block, float factor,
                                     float *destination, size_t n) {
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t first = 0; first < n; first += block, scale++) {
    __m256 scales = _mm256_broadcast_ss(scale);
    for (size_t i = first; i < first + block; i += STEP) {
      lcomm_avx2_prefetch(code + code_size(format, i), code_size(format, STEP));
      if (way == LCOMM_AVX2_ADD) {
        lcomm_avx2_prefetch(destination + i, STEP * sizeof *destination);
      }
      decode_step(format, way, code + code_size(format, i), scales, factors, destination + i);
    }
  }
}

/* Part of the last block. */
LCOMM_AVX2_INLINE void decode_few(width format, lcomm_avx2_way way, const uint8_t *code,
                                  const float *scale, size_t block, float factor,
                                  float *destination, size_t first, size_t end) {
  if (first == end) {
    return;
  }
  float unit = scale[first / block];
  for (size_t i = first; i < end; i++) {
    int8_t integer = format == INT8 ? (int8_t)code[i]
                     : i % 2 == 0   ? lcomm_int4_even(code[i / 2])
                                    : lcomm_int4_odd(code[i / 2]);
    float value = factor * (unit * (float)integer);
    destination[i] = way == LCOMM_AVX2_ADD ? destination[i] + value : value;
  }
}

typedef width code_format;
typedef float code_scale;

#include "kernels/avx2_decode_body.h"

void lcomm_avx2_f32_to_int8(const float *source, size_t block, int8_t *code, float *scale,
                            size_t n) {
  encode(INT8, source, block, (uint8_t *)code, scale, n);
}

void lcomm_avx2_f32_to_int4(const float *source, size_t block, uint8_t *code, float *scale,
                            size_t n) {
  encode(INT4, source, block, code, scale, n);
}

void lcomm_avx2_int8_to_f32(const int8_t *code, const float *scale, size_t block, float factor,
                            float *destination, size_t n) {
  decode(INT8, (const uint8_t *)code, scale, block, factor, destination, n);
}

void lcomm_avx2_int4_to_f32(const uint8_t *code, const float *scale, size_t block, float factor,
                            float *destination, size_t n) {
  decode(INT4, code, scale, block, factor, destination, n);
}

void lcomm_avx2_int8_add(const int8_t *code, const float *scale, size_t block, float factor,
                         float *destination, size_t n) {
  add(INT8, (const uint8_t *)code, scale, block, factor, destination, n);
}

void lcomm_avx2_int4_add(const uint8_t *code, const float *scale, size_t block, float factor,
                         float *destination, size_t n) {
  add(INT4, code, scale, block, factor, destination, n);
}
