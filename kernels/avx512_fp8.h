/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX512_FP8_H
#define LCOMM_KERNELS_AVX512_FP8_H

/* How the AVX-512 kernels encode fp8. Blocks go in tiles, whose scales are
 * computed as one vector. The scales are powers of two, so nothing is
 * multiplied: the magic number that rounds (element.h) is chosen for the scaled
 * format. A tile with scales for which that number would leave the range of
 * float32, or with a NaN or an infinity, is the scalar kernels' business. How
 * codes are packed depends on the instructions there are: the file that includes
 * this one says it.
 */

#include "kernels/avx512_scale.h"
#include "kernels/avx512_vector.h"

enum { LCOMM_FP8_GROUP = 64, LCOMM_FP8_VECTORS = LCOMM_FP8_GROUP / LCOMM_LANES };

/* To be defined by the file. The codes of a group from its sums. adjust[0] is
 * for the first half of the group, adjust[1] for the other. */
LCOMM_VECTOR __m512i lcomm_fp8_pack(lcomm_fp8 format, const __m512i sum[LCOMM_FP8_VECTORS],
                                    const __m512i adjust[2]);

/* A sum is a word that counts the steps of the format, below a word of sign,
 * float32 exponent and seven zeros. The product has exponent and steps in byte
 * 1, where they are a code and the adjustment of its block, and the sign all over
 * byte 3. */
LCOMM_VECTOR __m512i lcomm_fp8_place(lcomm_fp8 format, __m512i sum) {
  int places = 2 << (lcomm_fp8_mantissa(format) + 16) | 1 << 8;
  return _mm512_madd_epi16(sum, _mm512_set1_epi32(places));
}

/* The adjustments of blocks, in each byte, for the exponents of the magic numbers
 * that belong to the smallest normal number: their lowest bits, where a code has
 * its exponent. */
LCOMM_VECTOR __m512i lcomm_fp8_adjust(lcomm_fp8 format, __m512i exponents) {
  const int mantissa = lcomm_fp8_mantissa(format);
  __m512i low = _mm512_and_si512(exponents, _mm512_set1_epi32(0xff >> mantissa));
  return _mm512_mullo_epi32(low, _mm512_set1_epi32(0x01010101 << mantissa));
}

LCOMM_VECTOR __m512i lcomm_fp8_with_signs(__m512i magnitudes, __m512i signs) {
  const __m512i sign = _mm512_set1_epi8((char)0x80);
  return _mm512_ternarylogic_epi32(magnitudes, signs, sign, 0xf8); /* m | (s & 0x80) */
}

/* What the elements of a tile need to know of their blocks */
typedef struct lcomm_fp8_tile {
  float floor[LCOMM_TILE_BLOCKS];     /* smallest normal number, scaled */
  uint32_t adjust[LCOMM_TILE_BLOCKS]; /* see lcomm_fp8_adjust */
  bool in_range;                      /* or else the scalar kernel encodes it */
} lcomm_fp8_tile;

/* Writes the scales too. */
LCOMM_VECTOR void lcomm_fp8_prepare(lcomm_fp8 format, size_t block, const float *source,
                                    uint8_t *scale, lcomm_fp8_tile *tile) {
  const int lowest = format == LCOMM_E4M3 ? LCOMM_E4M3_LOWEST : LCOMM_E5M2_LOWEST;
  const int top = format == LCOMM_E4M3 ? LCOMM_E4M3_TOP : LCOMM_E5M2_TOP;
  __m512i bytes = lcomm_scale_bytes(format, lcomm_block_maxima(source, block));
  __m512i exponent = _mm512_sub_epi32(bytes, _mm512_set1_epi32(127 - lowest));
  /* 0 < exponent, and the magic number of the largest magnitude is finite */
  int most = 254 - top - lcomm_fp8_cut(format) - (127 - lowest);
  __m512i one = _mm512_set1_epi32(1);
  __mmask16 outside =
      _mm512_cmpge_epu32_mask(_mm512_sub_epi32(exponent, one), _mm512_set1_epi32(most));
  __m512i magic = _mm512_add_epi32(exponent, _mm512_set1_epi32(lcomm_fp8_cut(format)));
  tile->in_range = outside == 0;
  _mm512_storeu_si512(tile->floor, _mm512_slli_epi32(exponent, 23));
  _mm512_storeu_si512(tile->adjust, lcomm_fp8_adjust(format, magic));
  lcomm_store_scale_bytes(scale, block, bytes);
}

/* The sums of a group; floor[0] is for its first half. A vector in each step, so
 * that the processor, which looks ahead over some 64 vector operations, finds
 * independent ones. */
LCOMM_VECTOR void lcomm_fp8_round(lcomm_fp8 format, const float *source, const __m512 floor[2],
                                  __m512i sum[LCOMM_FP8_VECTORS]) {
  enum { LARGER_MAGNITUDE = 3 }; /* with the sign of the first operand */
  const __m512i exponent = _mm512_set1_epi32((int)0xff800000);
  const __m512i above = _mm512_set1_epi32(lcomm_fp8_cut(format) << 23);
  __m512 value[LCOMM_FP8_VECTORS], clamped[LCOMM_FP8_VECTORS];
  __m512i magic[LCOMM_FP8_VECTORS];
  for (int i = 0; i < LCOMM_FP8_VECTORS; i++) {
    value[i] = _mm512_loadu_ps(source + i * LCOMM_LANES);
  }
  for (int i = 0; i < LCOMM_FP8_VECTORS; i++) {
    clamped[i] = _mm512_range_ps(value[i], floor[i / 2], LARGER_MAGNITUDE);
  }
  for (int i = 0; i < LCOMM_FP8_VECTORS; i++) {
    magic[i] = _mm512_and_si512(_mm512_castps_si512(clamped[i]), exponent);
  }
  for (int i = 0; i < LCOMM_FP8_VECTORS; i++) {
    magic[i] = _mm512_add_epi32(magic[i], above);
  }
  for (int i = 0; i < LCOMM_FP8_VECTORS; i++) {
    sum[i] = _mm512_castps_si512(_mm512_add_ps(value[i], _mm512_castsi512_ps(magic[i])));
  }
}

LCOMM_VECTOR void lcomm_fp8_encode_tile(lcomm_fp8 format, lcomm_path path, size_t block,
                                        const float *source, uint8_t *code, uint8_t *scale) {
  lcomm_fp8_tile tile;
  lcomm_fp8_prepare(format, block, source, scale, &tile);
  if (!tile.in_range) {
    lcomm_kernels_scalar.f32_to_fp8[format](source, block, code, scale, lcomm_tile_size(block));
    return;
  }
  for (size_t i = 0; i < lcomm_tile_size(block); i += LCOMM_FP8_GROUP) {
    size_t first = i / block, second = (i + LCOMM_FP8_GROUP / 2) / block;
    const __m512 floor[2] = {_mm512_set1_ps(tile.floor[first]), _mm512_set1_ps(tile.floor[second])};
    const __m512i adjust[2] = {_mm512_set1_epi32((int)tile.adjust[first]),
                               _mm512_set1_epi32((int)tile.adjust[second])};
    for (size_t line = 0; line < LCOMM_FP8_GROUP; line += LCOMM_LANES) {
      lcomm_prefetch(source + i + line, lcomm_tile_size(block) * sizeof *source);
    }
    __m512i sum[LCOMM_FP8_VECTORS];
    lcomm_fp8_round(format, source + i, floor, sum);
    lcomm_store_bits(path, code + i, lcomm_fp8_pack(format, sum, adjust));
  }
}

/* Fewer elements than a tile: through a copy with zeros behind it. */
LCOMM_VECTOR void lcomm_fp8_encode_padded(lcomm_fp8 format, const float *source, size_t block,
                                          uint8_t *code, uint8_t *scale, size_t n) {
  float padded[LCOMM_TILE_MOST];
  uint8_t codes[LCOMM_TILE_MOST], scales[LCOMM_TILE_BLOCKS];
  lcomm_pad(padded, source, n, lcomm_tile_size(block));
  lcomm_fp8_encode_tile(format, LCOMM_CACHED, block, padded, codes, scales);
  memcpy(code, codes, n);
  memcpy(scale, scales, (n + block - 1) / block);
}

/* The last tile may overlap the one before it. */
LCOMM_VECTOR void lcomm_fp8_encode_blocks(lcomm_fp8 format, lcomm_path path, const float *source,
                                          size_t block, uint8_t *code, uint8_t *scale, size_t n) {
  const size_t size = lcomm_tile_size(block);
  size_t whole = n < size ? 0 : n - n % LCOMM_BLOCK;
  for (size_t i = 0; i < whole; i += size) {
    size_t at = i + size <= whole ? i : whole - size;
    lcomm_fp8_encode_tile(format, path, block, source + at, code + at, scale + at / block);
  }
  if (whole < n) {
    lcomm_fp8_encode_padded(format, source + whole, block, code + whole, scale + whole / block,
                            n - whole);
  }
}

LCOMM_VECTOR void lcomm_fp8_encode(lcomm_fp8 format, lcomm_path path, const float *source,
                                   size_t block, uint8_t *code, uint8_t *scale, size_t n) {
  switch (block) {
  case 32:
    lcomm_fp8_encode_blocks(format, path, source, 32, code, scale, n);
    return;
  case 64:
    lcomm_fp8_encode_blocks(format, path, source, 64, code, scale, n);
    return;
  default:
    lcomm_fp8_encode_blocks(format, path, source, LCOMM_BLOCK, code, scale, n);
  }
}

LCOMM_VECTOR void lcomm_fp8_encode_any(lcomm_fp8 format, const float *source, size_t block,
                                       uint8_t *code, uint8_t *scale, size_t n) {
  if (n < LCOMM_STREAM_COUNT) {
    lcomm_fp8_encode(format, LCOMM_CACHED, source, block, code, scale, n);
    return;
  }
  if (lcomm_is_line(code)) {
    lcomm_fp8_encode(format, LCOMM_STREAMED, source, block, code, scale, n);
    _mm_sfence();
    return;
  }
  uint8_t stage[LCOMM_STAGE];
  for (size_t i = 0; i < n; i += LCOMM_STAGE) {
    size_t count = n - i < LCOMM_STAGE ? n - i : LCOMM_STAGE;
    lcomm_fp8_encode(format, LCOMM_CACHED, source + i, block, stage, scale + i / block, count);
    lcomm_stream_copy(code + i, stage, count);
  }
  _mm_sfence();
}

#endif
