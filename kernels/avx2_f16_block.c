/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels for f16 with one E8M0 scale for each LCOMM_BLOCK. */

#include "kernels/avx2.h"
#include "kernels/avx2_block.h"

enum { BLOCK = LCOMM_BLOCK, LANES = LCOMM_AVX2_LANES, TILE = LCOMM_AVX2_TILE };

LCOMM_AVX2_INLINE void encode_tile(lcomm_avx2_way way, const float *source, uint16_t *code,
                                   uint8_t *scale) {
  float inverse[LANES];
  lcomm_avx2_e8m0(lcomm_avx2_amax(source, BLOCK), LCOMM_E5M2_TOP, scale, inverse);
  for (size_t b = 0; b < LANES; b++, source += BLOCK, code += BLOCK) {
    __m256 factor = _mm256_broadcast_ss(&inverse[b]);
    for (size_t i = 0; i < BLOCK; i += LANES) {
      if (i % LCOMM_AVX2_STEP == 0) {
        lcomm_avx2_prefetch_tile(source + i, BLOCK);
      }
      __m256 value = _mm256_mul_ps(_mm256_loadu_ps(source + i), factor);
      lcomm_avx2_put_half(way, code + i, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }
    if (scale[b] == LCOMM_E8M0_NAN) {
      memset(code, 0, BLOCK * sizeof *code);
    }
  }
}

LCOMM_AVX2_INLINE void encode_tiles(lcomm_avx2_way way, const float *source, uint16_t *code,
                                    uint8_t *scale, size_t n) {
  for (size_t i = 0; i < n; i += TILE, scale += LANES) {
    encode_tile(way, source + i, code + i, scale);
  }
}

/* Fewer than eight blocks, the last one short: padded with zeros. */
static void encode_rest(const float *source, uint16_t *code, uint8_t *scale, size_t first,
                        size_t end) {
  if (first == end) {
    return;
  }
  size_t n = end - first;
  float padded[TILE] = {0};
  uint16_t codes[TILE];
  uint8_t scales[LANES];
  memcpy(padded, source + first, n * sizeof *padded);
  encode_tile(LCOMM_AVX2_STORE, padded, codes, scales);
  memcpy(code + first, codes, n * sizeof *code);
  memcpy(scale + first / BLOCK, scales, (n + BLOCK - 1) / BLOCK);
}

void lcomm_avx2_f32_to_f16_block(const float *source, uint16_t *code, uint8_t *scale, size_t n) {
  size_t body = n - n % TILE;
  if (n >= LCOMM_STREAM_COUNT && lcomm_avx2_aligned(code)) {
    encode_tiles(LCOMM_AVX2_STREAM, source, code, scale, body);
    lcomm_avx2_streamed();
  } else {
    encode_tiles(LCOMM_AVX2_STORE, source, code, scale, body);
  }
  encode_rest(source, code, scale, body, n);
}

/* Whole blocks. */
LCOMM_AVX2_INLINE void decode_blocks(lcomm_avx2_way way, const uint16_t *code, const uint8_t *scale,
                                     float factor, float *destination, size_t n) {
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t first = 0; first < n; first += BLOCK, scale++) {
    __m256 scales = _mm256_set1_ps(lcomm_e8m0_to_f32(*scale));
    lcomm_avx2_prefetch(code + first, BLOCK * sizeof *code);
    if (way == LCOMM_AVX2_ADD) {
      lcomm_avx2_prefetch(destination + first, BLOCK * sizeof *destination);
    }
    for (size_t i = first; i < first + BLOCK; i += LANES) {
      __m256 number = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(code + i)));
      __m256 value = _mm256_mul_ps(factors, _mm256_mul_ps(scales, number));
      lcomm_avx2_put_f32(way, destination + i, value);
    }
  }
}

/* Part of the last block. */
LCOMM_AVX2_INLINE void decode_few(lcomm_avx2_way way, const uint16_t *code, const uint8_t *scale,
                                  float factor, float *destination, size_t first, size_t end) {
  if (first == end) {
    return;
  }
  float unit = lcomm_e8m0_to_f32(scale[first / BLOCK]);
  for (size_t i = first; i < end; i++) {
    float value = factor * (unit * lcomm_f16_to_f32(code[i]));
    destination[i] = way == LCOMM_AVX2_ADD ? destination[i] + value : value;
  }
}

/* Past the caches to an address between lines: through a tile in the caches. */
static void decode_shifted(const uint16_t *code, const uint8_t *scale, float factor,
                           float *destination, size_t n) {
  float tile[TILE];
  for (size_t i = 0; i < n; i += TILE) {
    size_t length = n - i < TILE ? n - i : TILE;
    decode_blocks(LCOMM_AVX2_STORE, code + i, scale + i / BLOCK, factor, tile, length);
    lcomm_avx2_stream(destination + i, tile, length);
  }
}

void lcomm_avx2_f16_block_to_f32(const uint16_t *code, const uint8_t *scale, float factor,
                                 float *destination, size_t n) {
  size_t body = n - n % BLOCK;
  if (n < LCOMM_STREAM_COUNT) {
    decode_blocks(LCOMM_AVX2_STORE, code, scale, factor, destination, body);
  } else if (lcomm_avx2_aligned(destination)) {
    decode_blocks(LCOMM_AVX2_STREAM, code, scale, factor, destination, body);
    lcomm_avx2_streamed();
  } else {
    decode_shifted(code, scale, factor, destination, body);
    lcomm_avx2_streamed();
  }
  decode_few(LCOMM_AVX2_STORE, code, scale, factor, destination, body, n);
}

void lcomm_avx2_f16_block_add(const uint16_t *code, const uint8_t *scale, float factor,
                              float *destination, size_t n) {
  size_t body = n - n % BLOCK;
  decode_blocks(LCOMM_AVX2_ADD, code, scale, factor, destination, body);
  decode_few(LCOMM_AVX2_ADD, code, scale, factor, destination, body, n);
}
