/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels for f16 with one E8M0 scale per block. */

#include "kernels/avx512.h"
#include "kernels/avx512_scale.h"

LCOMM_VECTOR __m256i f16_of(const float *source, __m512 inverse) {
  return _mm512_cvtps_ph(_mm512_mul_ps(_mm512_loadu_ps(source), inverse),
                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

LCOMM_VECTOR void encode_tile(lcomm_path path, const float *source, uint16_t *code,
                              uint8_t *scale) {
  __m512i bytes = lcomm_scale_bytes(LCOMM_E5M2, lcomm_block_maxima(source, LCOMM_BLOCK));
  if (_mm512_cmpeq_epi32_mask(bytes, _mm512_set1_epi32(LCOMM_E8M0_NAN))) {
    lcomm_kernels_scalar.f16_block.f32_to_f16_block(source, code, scale, LCOMM_TILE_MOST);
    return;
  }
  float inverses[LCOMM_TILE_BLOCKS];
  lcomm_store_inverses(inverses, bytes);
  lcomm_store_scale_bytes(scale, LCOMM_BLOCK, bytes);
  for (size_t i = 0; i < LCOMM_TILE_MOST; i += 32) {
    __m512 inverse = _mm512_set1_ps(inverses[i / LCOMM_BLOCK]);
    lcomm_prefetch(source + i, LCOMM_TILE_MOST * sizeof *source);
    lcomm_prefetch(source + i + 16, LCOMM_TILE_MOST * sizeof *source);
    __m512i low = _mm512_castsi256_si512(f16_of(source + i, inverse));
    lcomm_store_bits(path, code + i, _mm512_inserti64x4(low, f16_of(source + i + 16, inverse), 1));
  }
}

/* Fewer elements than a tile: through a copy with zeros behind it. */
static void encode_padded(const float *source, uint16_t *code, uint8_t *scale, size_t n) {
  float padded[LCOMM_TILE_MOST];
  uint16_t codes[LCOMM_TILE_MOST];
  uint8_t scales[LCOMM_TILE_BLOCKS];
  lcomm_pad(padded, source, n, LCOMM_TILE_MOST);
  encode_tile(LCOMM_CACHED, padded, codes, scales);
  memcpy(code, codes, n * sizeof *code);
  memcpy(scale, scales, (n + LCOMM_BLOCK - 1) / LCOMM_BLOCK);
}

/* The last tile may overlap the one before it. */
LCOMM_VECTOR void encode(lcomm_path path, const float *source, uint16_t *code, uint8_t *scale,
                         size_t n) {
  size_t whole = n < LCOMM_TILE_MOST ? 0 : n - n % LCOMM_BLOCK;
  for (size_t i = 0; i < whole; i += LCOMM_TILE_MOST) {
    size_t at = i + LCOMM_TILE_MOST <= whole ? i : whole - LCOMM_TILE_MOST;
    encode_tile(path, source + at, code + at, scale + at / LCOMM_BLOCK);
  }
  if (whole < n) {
    encode_padded(source + whole, code + whole, scale + whole / LCOMM_BLOCK, n - whole);
  }
}

void lcomm_avx512_f32_to_f16_block(const float *source, uint16_t *code, uint8_t *scale, size_t n) {
  if (n < LCOMM_STREAM_COUNT) {
    encode(LCOMM_CACHED, source, code, scale, n);
    return;
  }
  if (lcomm_is_line(code)) {
    encode(LCOMM_STREAMED, source, code, scale, n);
    _mm_sfence();
    return;
  }
  uint16_t stage[LCOMM_STAGE];
  for (size_t i = 0; i < n; i += LCOMM_STAGE) {
    size_t count = n - i < LCOMM_STAGE ? n - i : LCOMM_STAGE;
    encode(LCOMM_CACHED, source + i, stage, scale + i / LCOMM_BLOCK, count);
    lcomm_stream_copy(code + i, stage, count * sizeof *stage);
  }
  _mm_sfence();
}

LCOMM_VECTOR void decode_lanes(lcomm_path path, const uint16_t *code, __m512 scale, __m512 factor,
                               float *destination, __mmask16 lanes) {
  __m512 value = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, code));
  value = _mm512_mul_ps(factor, _mm512_mul_ps(scale, value));
  lcomm_put_lanes(path, destination, lanes, value);
}

LCOMM_VECTOR void decode(lcomm_path path, const uint16_t *code, const uint8_t *scale, float factor,
                         float *destination, size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  size_t whole = n - n % LCOMM_BLOCK;
  for (size_t i = 0; i < whole; i += LCOMM_BLOCK) {
    __m512 scales = _mm512_set1_ps(lcomm_e8m0_to_f32(scale[i / LCOMM_BLOCK]));
    for (size_t line = i; line < i + LCOMM_BLOCK; line += 32) {
      lcomm_prefetch_codes(path, code + line);
    }
    for (size_t lane = i; lane < i + LCOMM_BLOCK; lane += LCOMM_LANES) {
      __m512 value = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(code + lane)));
      lcomm_put(path, destination + lane, _mm512_mul_ps(factors, _mm512_mul_ps(scales, value)));
    }
  }
  if (whole == n) {
    return;
  }
  __m512 scales = _mm512_set1_ps(lcomm_e8m0_to_f32(scale[whole / LCOMM_BLOCK]));
  for (size_t i = whole; i < n; i += LCOMM_LANES) {
    decode_lanes(path, code + i, scales, factors, destination + i, lcomm_lanes(n - i));
  }
}

void lcomm_avx512_f16_block_to_f32(const uint16_t *code, const uint8_t *scale, float factor,
                                   float *destination, size_t n) {
  if (n < LCOMM_STREAM_COUNT) {
    decode(LCOMM_CACHED, code, scale, factor, destination, n);
    return;
  }
  if (lcomm_is_line(destination)) {
    decode(LCOMM_STREAMED, code, scale, factor, destination, n);
    _mm_sfence();
    return;
  }
  float stage[LCOMM_STAGE];
  for (size_t i = 0; i < n; i += LCOMM_STAGE) {
    size_t count = n - i < LCOMM_STAGE ? n - i : LCOMM_STAGE;
    decode(LCOMM_CACHED, code + i, scale + i / LCOMM_BLOCK, factor, stage, count);
    lcomm_stream_copy(destination + i, stage, count * sizeof *stage);
  }
  _mm_sfence();
}

void lcomm_avx512_f16_block_add(const uint16_t *code, const uint8_t *scale, float factor,
                                float *destination, size_t n) {
  decode(LCOMM_ADDED, code, scale, factor, destination, n);
}
