/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels that encode fp8. One set of inline functions for both formats
 * and both roundings, which are constants wherever they are used.
 */

#include "kernels/avx2.h"
#include "kernels/avx2_block.h"

enum { STEP = LCOMM_AVX2_STEP, LANES = LCOMM_AVX2_LANES, TILE = LCOMM_AVX2_TILE };

typedef enum rounding { NEAREST, STOCHASTIC } rounding;

/* The random numbers of stochastic rounding; NEAREST needs none. */
typedef struct random_source {
  lcomm_random_key key;
  uint32_t index; /* of the first element */
} random_source;

LCOMM_AVX2_INLINE int cut_bits(lcomm_fp8 format) {
  return format == LCOMM_E4M3 ? 20 : 21;
}

/* float32 exponent field of the smallest normal number. */
LCOMM_AVX2_INLINE int lowest_exponent(lcomm_fp8 format) {
  return format == LCOMM_E4M3 ? 121 : 113;
}

LCOMM_AVX2_INLINE int nearest_shift(lcomm_fp8 format) {
  return cut_bits(format) - 16;
}

LCOMM_AVX2_INLINE int nearest_excess(lcomm_fp8 format) {
  return (lowest_exponent(format) + cut_bits(format)) << (23 - cut_bits(format));
}

/* lcomm_f32_to_small without the sign. The lower half of the sum's bits holds
 * the steps and the upper half its exponent: one multiplication of both gives
 * the code, too large by nearest_excess() and times 2^nearest_shift(). */
LCOMM_AVX2_INLINE __m256i round_nearest(lcomm_fp8 format, __m256 value) {
  __m256i magnitude = lcomm_avx2_magnitude(value);
  __m256i exponent = _mm256_and_si256(magnitude, _mm256_set1_epi32(LCOMM_F32_INF_BITS));
  exponent = _mm256_max_epi32(exponent, _mm256_set1_epi32(lowest_exponent(format) << 23));
  __m256i magic = _mm256_add_epi32(exponent, _mm256_set1_epi32(cut_bits(format) << 23));
  __m256 sum = _mm256_add_ps(_mm256_castsi256_ps(magnitude), _mm256_castsi256_ps(magic));
  __m256i weights = _mm256_set1_epi32(1 << 16 | 1 << nearest_shift(format));
  return _mm256_madd_epi16(_mm256_castps_si256(sum), weights);
}

/* lcomm_random_next */
LCOMM_AVX2_INLINE __m256i random_lanes(lcomm_random_key key, __m256i index) {
  __m256i x = _mm256_xor_si256(index, _mm256_set1_epi32((int)key.before));
  x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
  x = _mm256_mullo_epi32(x, _mm256_set1_epi32(0x7feb352d));
  x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
  x = _mm256_add_epi32(x, _mm256_set1_epi32((int)key.between));
  x = _mm256_mullo_epi32(x, _mm256_set1_epi32((int)0x846ca68bu));
  return _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
}

/* lcomm_f32_to_small_stochastic without the sign. */
LCOMM_AVX2_INLINE __m256i round_stochastic(lcomm_fp8 format, __m256 value, __m256i random) {
  int cut = cut_bits(format), lowest = lowest_exponent(format);
  __m256i floor = _mm256_set1_epi32(lowest << 23);
  __m256i magnitude = lcomm_avx2_magnitude(value);
  __m256 unit = _mm256_castsi256_ps(_mm256_set1_epi32((277 - lowest) << 23));
  __m256 units = _mm256_mul_ps(_mm256_castsi256_ps(magnitude), unit);
  __m256i normal = _mm256_sub_epi32(magnitude, _mm256_set1_epi32((lowest - 1) << 23));
  __m256i small = _mm256_cmpgt_epi32(floor, magnitude);
  __m256i fixed = _mm256_blendv_epi8(normal, _mm256_cvttps_epi32(units), small);
  fixed = _mm256_add_epi32(fixed, _mm256_srli_epi32(random, 32 - cut));
  return _mm256_srli_epi32(fixed, cut);
}

/* The numbers are below 2^15. Those to the nearest are turned into codes now,
 * where one vector holds twice as many. */
LCOMM_AVX2_INLINE __m256i pack_codes(lcomm_fp8 format, rounding how, const __m256i number[4]) {
  __m256i low = _mm256_packus_epi32(number[0], number[1]);
  __m256i high = _mm256_packus_epi32(number[2], number[3]);
  if (how == NEAREST) {
    int shift = nearest_shift(format);
    __m256i excess = _mm256_set1_epi16((short)(nearest_excess(format) << shift));
    low = _mm256_srli_epi16(_mm256_sub_epi16(low, excess), shift);
    high = _mm256_srli_epi16(_mm256_sub_epi16(high, excess), shift);
  }
  return _mm256_packus_epi16(low, high);
}

/* Packing as integers saturates, which keeps the sign. */
LCOMM_AVX2_INLINE __m256i pack_signs(const __m256 value[4]) {
  __m256i low = _mm256_packs_epi32(_mm256_castps_si256(value[0]), _mm256_castps_si256(value[1]));
  __m256i high = _mm256_packs_epi32(_mm256_castps_si256(value[2]), _mm256_castps_si256(value[3]));
  return _mm256_and_si256(_mm256_packs_epi16(low, high), _mm256_set1_epi8((char)0x80));
}

LCOMM_AVX2_INLINE __m256i encode_step(lcomm_fp8 format, rounding how, const float *source,
                                      __m256 inverse, random_source random) {
  __m256 value[4];
  __m256i number[4], index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (int v = 0; v < 4; v++) {
    value[v] = _mm256_mul_ps(_mm256_loadu_ps(source + v * LANES), inverse);
    if (how == NEAREST) {
      number[v] = round_nearest(format, value[v]);
    } else {
      __m256i first = _mm256_set1_epi32((int)(random.index + (uint32_t)(v * LANES)));
      __m256i bits = random_lanes(random.key, _mm256_add_epi32(first, index));
      number[v] = round_stochastic(format, value[v], bits);
    }
  }
  __m256i codes = pack_codes(format, how, number);
  return lcomm_avx2_unmix_bytes(_mm256_or_si256(codes, pack_signs(value)));
}

LCOMM_AVX2_INLINE void encode_tile(lcomm_fp8 format, rounding how, lcomm_avx2_way way,
                                   const float *source, size_t block, random_source random,
                                   uint8_t *code, uint8_t *scale) {
  float inverse[LANES];
  int32_t top = format == LCOMM_E4M3 ? LCOMM_E4M3_TOP : LCOMM_E5M2_TOP;
  lcomm_avx2_e8m0(lcomm_avx2_amax(source, block), top, scale, inverse);
  for (size_t b = 0; b < LANES; b++, source += block, code += block) {
    __m256 factor = _mm256_broadcast_ss(&inverse[b]);
    for (size_t i = 0; i < block; i += STEP) {
      lcomm_avx2_prefetch_tile(source + i, block);
      lcomm_avx2_put(way, code + i, encode_step(format, how, source + i, factor, random));
      random.index += STEP;
    }
    if (scale[b] == LCOMM_E8M0_NAN) {
      memset(code, 0, block);
    }
  }
}

LCOMM_AVX2_INLINE void encode_tiles(lcomm_fp8 format, rounding how, lcomm_avx2_way way,
                                    const float *source, size_t block, random_source random,
                                    uint8_t *code, uint8_t *scale, size_t n) {
  size_t tile = LANES * block;
  for (size_t i = 0; i < n; i += tile, scale += LANES) {
    encode_tile(format, how, way, source + i, block, random, code + i, scale);
    random.index += (uint32_t)tile;
  }
}

/* Fewer than eight blocks, the last one short: padded with zeros. */
LCOMM_AVX2_INLINE void encode_rest(lcomm_fp8 format, rounding how, const float *source,
                                   size_t block, random_source random, uint8_t *code,
                                   uint8_t *scale, size_t first, size_t end) {
  if (first == end) {
    return;
  }
  size_t n = end - first;
  random.index += (uint32_t)first;
  float padded[TILE] = {0};
  uint8_t codes[TILE], scales[LANES];
  memcpy(padded, source + first, n * sizeof *padded);
  encode_tile(format, how, LCOMM_AVX2_STORE, padded, block, random, codes, scales);
  memcpy(code + first, codes, n);
  memcpy(scale + first / block, scales, (n + block - 1) / block);
}

LCOMM_AVX2_INLINE void encode(lcomm_fp8 format, rounding how, const float *source, size_t block,
                              random_source random, uint8_t *code, uint8_t *scale, size_t n) {
  size_t body = n - n % (LANES * block);
  if (n >= LCOMM_STREAM_COUNT && lcomm_avx2_aligned(code)) {
    encode_tiles(format, how, LCOMM_AVX2_STREAM, source, block, random, code, scale, body);
    lcomm_avx2_streamed();
  } else {
    encode_tiles(format, how, LCOMM_AVX2_STORE, source, block, random, code, scale, body);
  }
  encode_rest(format, how, source, block, random, code, scale, body, n);
}

/* The key changes where the lower half of the index begins anew. */
LCOMM_AVX2_INLINE void encode_stochastic(lcomm_fp8 format, const float *source, size_t block,
                                         uint64_t seed, uint64_t first, uint8_t *code,
                                         uint8_t *scale, size_t n) {
  while (n > 0) {
    random_source random = {lcomm_random_open(seed, first), (uint32_t)first};
    uint64_t left = ((uint64_t)1 << 32) - random.index;
    size_t length = n < left ? n : (size_t)left;
    encode(format, STOCHASTIC, source, block, random, code, scale, length);
    source += length, code += length, first += length, n -= length;
    scale += length / block;
  }
}

static const random_source no_random = {{0, 0}, 0};

void lcomm_avx2_f32_to_e4m3(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                            size_t n) {
  encode(LCOMM_E4M3, NEAREST, source, block, no_random, code, scale, n);
}

void lcomm_avx2_f32_to_e5m2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                            size_t n) {
  encode(LCOMM_E5M2, NEAREST, source, block, no_random, code, scale, n);
}

void lcomm_avx2_f32_to_e4m3_stochastic(const float *source, size_t block, uint64_t seed,
                                       uint64_t first, uint8_t *code, uint8_t *scale, size_t n) {
  encode_stochastic(LCOMM_E4M3, source, block, seed, first, code, scale, n);
}

void lcomm_avx2_f32_to_e5m2_stochastic(const float *source, size_t block, uint64_t seed,
                                       uint64_t first, uint8_t *code, uint8_t *scale, size_t n) {
  encode_stochastic(LCOMM_E5M2, source, block, seed, first, code, scale, n);
}
