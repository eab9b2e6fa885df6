/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels for int8 and int4. Blocks go in tiles of 16, whose scales
 * are computed as one vector; the scalar kernels encode tiles that hold a
 * NaN or an infinity.
 */

#include "kernels/avx512.h"
#include "kernels/avx512_vector.h"
#include "kernels/element.h"

typedef enum integer_format { INT8, INT4 } integer_format;

LCOMM_VECTOR size_t code_size(integer_format format, size_t count) {
  return format == INT8 ? count : (count + 1) / 2;
}

static void encode_by_scalar(integer_format format, const float *source, size_t block,
                             uint8_t *code, float *scale, size_t n) {
  if (format == INT8) {
    lcomm_kernels_scalar.f32_to_int8(source, block, (int8_t *)code, scale, n);
  } else {
    lcomm_kernels_scalar.f32_to_int4(source, block, code, scale, n);
  }
}

/* 16 codes as dwords */
LCOMM_VECTOR __m512i codes_at(const float *source, float inverse) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(source), _mm512_set1_ps(inverse)));
}

/* 64 bytes of int8 codes; the first 32 are multiplied by the first inverse. */
LCOMM_VECTOR __m512i int8_codes(const float *source, float first, float second) {
  __m512i codes[4] = {codes_at(source, first), codes_at(source + 16, first),
                      codes_at(source + 32, second), codes_at(source + 48, second)};
  return lcomm_in_order(lcomm_pack_bytes(codes));
}

/* 32 elements: the bytes of each pair, as dwords */
LCOMM_VECTOR __m512i int4_pairs(const float *source, float inverse) {
  __m512i words = _mm512_packs_epi32(codes_at(source, inverse), codes_at(source + 16, inverse));
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(words, 12), _mm512_set1_epi32(0xf0));
  /* (words & 0xf) | odd */
  return _mm512_ternarylogic_epi32(words, _mm512_set1_epi32(0xf), odd, 0xea);
}

/* 128 elements; inverses[i] is for the 32 elements from 32 * i on. Lane l of
 * the packed bytes holds two bytes of each vector of 16 elements. */
LCOMM_VECTOR __m512i int4_codes(const float *source, const float inverses[4]) {
  const __m512i order = _mm512_set_epi16(31, 23, 15, 7, 30, 22, 14, 6, 29, 21, 13, 5, 28, 20, 12, 4,
                                         27, 19, 11, 3, 26, 18, 10, 2, 25, 17, 9, 1, 24, 16, 8, 0);
  __m512i low =
      _mm512_packus_epi32(int4_pairs(source, inverses[0]), int4_pairs(source + 32, inverses[1]));
  __m512i high = _mm512_packus_epi32(int4_pairs(source + 64, inverses[2]),
                                     int4_pairs(source + 96, inverses[3]));
  return _mm512_permutexvar_epi16(order, _mm512_packus_epi16(low, high));
}

/* Writes the scales and the inverses of a tile. */
LCOMM_VECTOR void block_scales(integer_format format, __m512i amax, float *scale, size_t block,
                               float inverses[LCOMM_TILE_BLOCKS]) {
  __m512 top = _mm512_set1_ps(format == INT8 ? 127.0f : 7.0f);
  __mmask16 used = _mm512_cmpge_epi32_mask(amax, _mm512_set1_epi32(LCOMM_INTEGER_TINY_BITS));
  __m512 largest = _mm512_castsi512_ps(amax);
  __m512 scales = _mm512_maskz_div_ps(used, largest, top);
  if (lcomm_tile_size(block) / block == LCOMM_TILE_BLOCKS) {
    _mm512_storeu_ps(scale, scales);
  } else {
    _mm256_storeu_ps(scale, _mm512_castps512_ps256(scales));
  }
  _mm512_storeu_ps(inverses, _mm512_maskz_div_ps(used, top, largest));
}

LCOMM_VECTOR void encode_tile(integer_format format, lcomm_path path, size_t block,
                              const float *source, uint8_t *code, float *scale) {
  const size_t size = lcomm_tile_size(block);
  __m512i amax = lcomm_block_maxima(source, block);
  if (_mm512_cmpge_epi32_mask(amax, _mm512_set1_epi32(LCOMM_F32_INF_BITS))) {
    encode_by_scalar(format, source, block, code, scale, size);
    return;
  }
  float inverses[LCOMM_TILE_BLOCKS];
  block_scales(format, amax, scale, block, inverses);
  for (size_t i = 0; i < size; i += LCOMM_BLOCK) {
    float inverse[4];
    for (size_t part = 0; part < 4; part++) {
      inverse[part] = inverses[(i + 32 * part) / block];
    }
    for (size_t line = 0; line < LCOMM_BLOCK; line += LCOMM_LANES) {
      lcomm_prefetch(source + i + line, size * sizeof *source);
    }
    if (format == INT4) {
      lcomm_store_bits(path, code + i / 2, int4_codes(source + i, inverse));
      continue;
    }
    lcomm_store_bits(path, code + i, int8_codes(source + i, inverse[0], inverse[1]));
    lcomm_store_bits(path, code + i + 64, int8_codes(source + i + 64, inverse[2], inverse[3]));
  }
}

/* Fewer elements than a tile: through a copy with zeros behind it. */
LCOMM_VECTOR void encode_padded(integer_format format, const float *source, size_t block,
                                uint8_t *code, float *scale, size_t n) {
  float padded[LCOMM_TILE_MOST], scales[LCOMM_TILE_BLOCKS];
  uint8_t codes[LCOMM_TILE_MOST];
  lcomm_pad(padded, source, n, lcomm_tile_size(block));
  encode_tile(format, LCOMM_CACHED, block, padded, codes, scales);
  memcpy(code, codes, code_size(format, n));
  memcpy(scale, scales, (n + block - 1) / block * sizeof *scale);
}

/* The last tile may overlap the one before it. */
LCOMM_VECTOR void encode_blocks(integer_format format, lcomm_path path, const float *source,
                                size_t block, uint8_t *code, float *scale, size_t n) {
  const size_t size = lcomm_tile_size(block);
  size_t whole = n < size ? 0 : n - n % LCOMM_BLOCK;
  for (size_t i = 0; i < whole; i += size) {
    size_t at = i + size <= whole ? i : whole - size;
    encode_tile(format, path, block, source + at, code + code_size(format, at), scale + at / block);
  }
  if (whole < n) {
    encode_padded(format, source + whole, block, code + code_size(format, whole),
                  scale + whole / block, n - whole);
  }
}

LCOMM_VECTOR void encode(integer_format format, lcomm_path path, const float *source, size_t block,
                         uint8_t *code, float *scale, size_t n) {
  if (block == 32) {
    encode_blocks(format, path, source, 32, code, scale, n);
  } else {
    encode_blocks(format, path, source, LCOMM_BLOCK, code, scale, n);
  }
}

/* Codes that do not start with a cache line go through a buffer. */
LCOMM_VECTOR void encode_staged(integer_format format, const float *source, size_t block,
                                uint8_t *code, float *scale, size_t n) {
  uint8_t stage[LCOMM_STAGE];
  for (size_t i = 0; i < n; i += LCOMM_STAGE) {
    size_t count = n - i < LCOMM_STAGE ? n - i : LCOMM_STAGE;
    encode(format, LCOMM_CACHED, source + i, block, stage, scale + i / block, count);
    lcomm_stream_copy(code + code_size(format, i), stage, code_size(format, count));
  }
}

LCOMM_VECTOR void encode_any(integer_format format, const float *source, size_t block,
                             uint8_t *code, float *scale, size_t n) {
  if (n < LCOMM_STREAM_COUNT) {
    encode(format, LCOMM_CACHED, source, block, code, scale, n);
    return;
  }
  if (lcomm_is_line(code)) {
    encode(format, LCOMM_STREAMED, source, block, code, scale, n);
  } else {
    encode_staged(format, source, block, code, scale, n);
  }
  _mm_sfence();
}

void lcomm_avx512_f32_to_int8(const float *source, size_t block, int8_t *code, float *scale,
                              size_t n) {
  encode_any(INT8, source, block, (uint8_t *)code, scale, n);
}

void lcomm_avx512_f32_to_int4(const float *source, size_t block, uint8_t *code, float *scale,
                              size_t n) {
  encode_any(INT4, source, block, code, scale, n);
}
