/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels that encode fp8 with stochastic rounding; element.h has the
 * maths. Tiles and what is left to the scalar kernels are as in avx512_fp8.c.
 */

#include "kernels/avx512.h"
#include "kernels/avx512_scale.h"

/* lcomm_random_next for 16 indices, where `mixed` is x ^ (x >> 16) for the first
 * of an aligned group of 64, and lane i is the place in the group: those six
 * bits do not reach what is shifted. */
LCOMM_VECTOR __m512i random_bits(lcomm_random_key key, uint32_t mixed, __m512i lane) {
  __m512i x = _mm512_xor_si512(_mm512_set1_epi32((int)mixed), lane);
  x = _mm512_mullo_epi32(x, _mm512_set1_epi32(0x7feb352d));
  x = _mm512_xor_si512(x, _mm512_srli_epi32(x, 15));
  x = _mm512_add_epi32(x, _mm512_set1_epi32((int)key.between));
  x = _mm512_mullo_epi32(x, _mm512_set1_epi32((int)0x846ca68b));
  return _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
}

/* The magnitudes of 16 codes, as dwords */
LCOMM_VECTOR __m512i magnitudes_at(lcomm_fp8 format, const float *source, float inverse,
                                   __m512i random) {
  const uint32_t lowest = format == LCOMM_E4M3 ? LCOMM_E4M3_LOWEST : LCOMM_E5M2_LOWEST;
  const __m512i smallest = _mm512_set1_epi32((int)(lowest << 23));
  const __m512i unit = _mm512_set1_epi32((int)((277 - lowest) << 23));
  __m512 value = _mm512_mul_ps(_mm512_loadu_ps(source), _mm512_set1_ps(inverse));
  __m512i magnitude = lcomm_magnitudes(_mm512_castps_si512(value));
  __m512 units = _mm512_mul_ps(_mm512_castsi512_ps(magnitude), _mm512_castsi512_ps(unit));
  __mmask16 subnormal = _mm512_cmplt_epi32_mask(magnitude, smallest);
  __m512i offset = _mm512_sub_epi32(smallest, _mm512_set1_epi32(1 << 23));
  __m512i fixed = _mm512_sub_epi32(magnitude, offset);
  fixed = _mm512_mask_cvttps_epi32(fixed, subnormal, units);
  if (format == LCOMM_E4M3) {
    return _mm512_srli_epi32(_mm512_add_epi32(fixed, _mm512_srli_epi32(random, 12)), 20);
  }
  return _mm512_srli_epi32(_mm512_add_epi32(fixed, _mm512_srli_epi32(random, 11)), 21);
}

/* 64 codes; the first 32 are multiplied by inverse[0]. */
LCOMM_VECTOR __m512i codes_of(lcomm_fp8 format, const float *source, const float inverse[2],
                              lcomm_random_key key, uint32_t index) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  uint32_t mixed = (index ^ key.before) ^ ((index ^ key.before) >> 16);
  __m512i magnitude[4], value[4];
  for (int i = 0; i < 4; i++) {
    __m512i lane = _mm512_add_epi32(lanes, _mm512_set1_epi32(16 * i));
    __m512i random = random_bits(key, mixed, lane);
    magnitude[i] = magnitudes_at(format, source + 16 * i, inverse[i / 2], random);
    value[i] = _mm512_loadu_si512(source + 16 * i);
  }
  /* Cut to int8 range, a value keeps its sign bit, zeros too. */
  __m512i signs = lcomm_pack_bytes(value);
  __m512i codes = lcomm_pack_bytes(magnitude);
  codes = _mm512_ternarylogic_epi32(codes, signs, _mm512_set1_epi8((char)0x80), 0xf8);
  return lcomm_in_order(codes);
}

typedef struct random_position {
  uint64_t seed, first;
} random_position;

LCOMM_VECTOR void encode_tile(lcomm_fp8 format, size_t block, const float *source,
                              random_position at, uint8_t *code, uint8_t *scale) {
  const size_t size = lcomm_tile_size(block);
  __m512i bytes = lcomm_scale_bytes(format, lcomm_block_maxima(source, block));
  if (_mm512_cmpeq_epi32_mask(bytes, _mm512_set1_epi32(LCOMM_E8M0_NAN))) {
    lcomm_kernels_scalar.f32_to_fp8_stochastic[format](source, block, at.seed, at.first, code,
                                                       scale, size);
    return;
  }
  float inverses[LCOMM_TILE_BLOCKS];
  lcomm_store_inverses(inverses, bytes);
  lcomm_store_scale_bytes(scale, block, bytes);
  lcomm_random_key key = lcomm_random_open(at.seed, at.first);
  for (size_t i = 0; i < size; i += 64) {
    uint32_t index = (uint32_t)(at.first + i);
    if (index == 0) {
      key = lcomm_random_open(at.seed, at.first + i);
    }
    const float inverse[2] = {inverses[i / block], inverses[(i + 32) / block]};
    for (size_t line = 0; line < 64; line += LCOMM_LANES) {
      lcomm_prefetch(source + i + line, size * sizeof *source);
    }
    _mm512_storeu_si512(code + i, codes_of(format, source + i, inverse, key, index));
  }
}

/* Fewer elements than a tile: through a copy with zeros behind it. */
LCOMM_VECTOR void encode_padded(lcomm_fp8 format, size_t block, const float *source,
                                random_position at, uint8_t *code, uint8_t *scale, size_t n) {
  float padded[LCOMM_TILE_MOST];
  uint8_t codes[LCOMM_TILE_MOST], scales[LCOMM_TILE_BLOCKS];
  lcomm_pad(padded, source, n, lcomm_tile_size(block));
  encode_tile(format, block, padded, at, codes, scales);
  memcpy(code, codes, n);
  memcpy(scale, scales, (n + block - 1) / block);
}

/* The last tile may overlap the one before it. */
LCOMM_VECTOR void encode_blocks(lcomm_fp8 format, const float *source, size_t block,
                                random_position at, uint8_t *code, uint8_t *scale, size_t n) {
  const size_t size = lcomm_tile_size(block);
  size_t whole = n < size ? 0 : n - n % LCOMM_BLOCK;
  for (size_t i = 0; i < whole; i += size) {
    size_t start = i + size <= whole ? i : whole - size;
    random_position here = {at.seed, at.first + start};
    encode_tile(format, block, source + start, here, code + start, scale + start / block);
  }
  random_position rest = {at.seed, at.first + whole};
  if (whole < n) {
    encode_padded(format, block, source + whole, rest, code + whole, scale + whole / block,
                  n - whole);
  }
}

LCOMM_VECTOR void encode(lcomm_fp8 format, const float *source, size_t block, random_position at,
                         uint8_t *code, uint8_t *scale, size_t n) {
  switch (block) {
  case 32:
    encode_blocks(format, source, 32, at, code, scale, n);
    return;
  case 64:
    encode_blocks(format, source, 64, at, code, scale, n);
    return;
  default:
    encode_blocks(format, source, LCOMM_BLOCK, at, code, scale, n);
  }
}

void lcomm_avx512_f32_to_e4m3_stochastic(const float *source, size_t block, uint64_t seed,
                                         uint64_t first, uint8_t *code, uint8_t *scale, size_t n) {
  random_position at = {seed, first};
  encode(LCOMM_E4M3, source, block, at, code, scale, n);
}

void lcomm_avx512_f32_to_e5m2_stochastic(const float *source, size_t block, uint64_t seed,
                                         uint64_t first, uint8_t *code, uint8_t *scale, size_t n) {
  random_position at = {seed, first};
  encode(LCOMM_E5M2, source, block, at, code, scale, n);
}
