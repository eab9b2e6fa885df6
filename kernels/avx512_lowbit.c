/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels for sign and int2. Blocks go in tiles of 16 or 8, whose scales are computed as
 * one vector; the scalar kernels encode what is not a whole tile, and tiles that hold a NaN or an
 * infinity.
 */

#include "kernels/avx512.h"
#include "kernels/avx512_scale.h"
#include "kernels/avx512_vector.h"
#include "kernels/lowbit.h"

/* Bytes of `count` codes. */
LCOMM_VECTOR size_t code_size(lcomm_lowbit format, size_t count) {
  return format == LCOMM_SIGN ? (count + 7) / 8 : (count + 3) / 4;
}

/* ------------------------------------------------------------------------ encode */

/* Writes the codes of 16 elements. */
LCOMM_VECTOR void put_codes(lcomm_lowbit format, __m512i bits, __m512i limit, uint8_t *code) {
  uint16_t signs = _mm512_movepi32_mask(bits);
  if (format == LCOMM_SIGN) {
    memcpy(code, &signs, sizeof signs);
    return;
  }
  __mmask16 large = _mm512_cmpgt_epi32_mask(lcomm_magnitudes(bits), limit);
  __m512i codes = _mm512_or_si512(_mm512_srli_epi32(bits, 31), _mm512_maskz_set1_epi32(large, 2));
  __m128i bytes = _mm512_cvtepi32_epi8(codes);
  __m128i pairs = _mm_maddubs_epi16(bytes, _mm_set1_epi16(0x0401));
  __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x00100001));
  int32_t word = _mm_cvtsi128_si32(_mm_cvtepi32_epi8(fours));
  memcpy(code, &word, sizeof word);
}

/* lcomm_int2_scale of 16 finite blocks. */
LCOMM_VECTOR __m512i int2_scales(__m512i amax) {
  return _mm512_sub_epi32(_mm512_srli_epi32(amax, 23), _mm512_set1_epi32(2));
}

LCOMM_VECTOR __m512i steps_of(const float *source, __m512 steps_of_one) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(source), steps_of_one));
}

/* Sums of the squares of the steps of a block; steps are 128 at most, so words of 16 bits hold
 * them. */
LCOMM_VECTOR __m512i squares_of(const float *source, size_t block, int32_t amax) {
  __m512 by = _mm512_set1_ps(lcomm_sign_steps_of_one(amax));
  __m512i sum = _mm512_setzero_si512();
  for (size_t i = 0; i < block; i += 2 * LCOMM_LANES) {
    __m512i steps =
        _mm512_packs_epi32(steps_of(source + i, by), steps_of(source + i + LCOMM_LANES, by));
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(steps, steps));
  }
  return sum;
}

/* lcomm_sign_scale of 16 finite blocks. */
LCOMM_VECTOR __m512i sign_scales(const float *source, size_t block, __m512i amax) {
  const size_t blocks = lcomm_tile_size(block) / block;
  int32_t amaxes[LCOMM_TILE_BLOCKS];
  __m512i partial[LCOMM_TILE_BLOCKS];
  _mm512_storeu_si512(amaxes, amax);
  for (size_t b = 0; b < blocks; b++) {
    partial[b] = squares_of(source + b * block, block, amaxes[b]);
  }
  __m512i squares = lcomm_of_each(LCOMM_SUMMED, partial, blocks);
  __m512 share = _mm512_set1_ps(lcomm_sign_share((uint32_t)block));
  __m512 mean = _mm512_mul_ps(_mm512_cvtepi32_ps(squares), share);
  __m512i half = _mm512_srli_epi32(_mm512_castps_si512(mean), 23);
  half = _mm512_srli_epi32(_mm512_add_epi32(half, _mm512_set1_epi32(1)), 1);
  half = _mm512_sub_epi32(half, _mm512_set1_epi32(64));
  __m512i byte = _mm512_add_epi32(_mm512_srli_epi32(amax, 23), half);
  return _mm512_min_epi32(byte, _mm512_set1_epi32(LCOMM_E8M0_NAN - 1));
}

LCOMM_VECTOR void encode_tile(lcomm_lowbit format, const float *source, size_t block, uint8_t *code,
                              uint8_t *scale) {
  const size_t size = lcomm_tile_size(block);
  __m512i amax = lcomm_block_maxima(source, block);
  if (_mm512_cmpge_epi32_mask(amax, _mm512_set1_epi32(LCOMM_F32_INF_BITS))) {
    lcomm_kernels_scalar.f32_to_lowbit[format](source, block, code, scale, size);
    return;
  }
  __mmask16 used = _mm512_cmpge_epi32_mask(amax, _mm512_set1_epi32(LCOMM_INTEGER_TINY_BITS));
  __m512i byte = format == LCOMM_SIGN ? sign_scales(source, block, amax) : int2_scales(amax);
  lcomm_store_scale_bytes(scale, block, _mm512_maskz_mov_epi32(used, byte));
  for (size_t i = 0; i < size; i += LCOMM_LANES) {
    __m512i limit = _mm512_set1_epi32(lcomm_int2_limit(scale[i / block]));
    lcomm_prefetch(source + i, size * sizeof *source);
    put_codes(format, _mm512_loadu_si512(source + i), limit, code + code_size(format, i));
  }
}

LCOMM_VECTOR void encode_blocks(lcomm_lowbit format, const float *source, size_t block,
                                uint8_t *code, uint8_t *scale, size_t n) {
  size_t whole = n - n % lcomm_tile_size(block);
  for (size_t i = 0; i < whole; i += lcomm_tile_size(block)) {
    encode_tile(format, source + i, block, code + code_size(format, i), scale + i / block);
  }
  lcomm_kernels_scalar.f32_to_lowbit[format](source + whole, block, code + code_size(format, whole),
                                             scale + whole / block, n - whole);
}

LCOMM_VECTOR void encode(lcomm_lowbit format, const float *source, size_t block, uint8_t *code,
                         uint8_t *scale, size_t n) {
  if (block == 32) {
    encode_blocks(format, source, 32, code, scale, n);
  } else if (block == 64) {
    encode_blocks(format, source, 64, code, scale, n);
  } else {
    encode_blocks(format, source, LCOMM_BLOCK, code, scale, n);
  }
}

void lcomm_avx512_f32_to_sign(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n) {
  encode(LCOMM_SIGN, source, block, code, scale, n);
}

void lcomm_avx512_f32_to_int2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n) {
  encode(LCOMM_INT2, source, block, code, scale, n);
}

/* ------------------------------------------------------------------------ decode */

/* The values of the codes of a block, four times, to be looked up by the low bits of a lane. */
LCOMM_VECTOR __m512 values_of(lcomm_lowbit format, uint8_t scale, float factor) {
  const __m128 codes = format == LCOMM_SIGN ? _mm_setr_ps(1, -1, 1, -1) : _mm_setr_ps(1, -1, 4, -4);
  __m512 unit = _mm512_set1_ps(lcomm_lowbit_scale_to_f32(scale));
  return _mm512_mul_ps(_mm512_set1_ps(factor), _mm512_mul_ps(unit, _mm512_broadcast_f32x4(codes)));
}

LCOMM_VECTOR void decode_unit(lcomm_lowbit format, lcomm_path path, const uint8_t *code,
                              const uint8_t *scale, size_t block, float factor,
                              float *destination) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i shift = format == LCOMM_SIGN ? lane : _mm512_slli_epi32(lane, 1);
  const __m512 values = values_of(format, *scale, factor);
  for (size_t i = 0; i < block; i += LCOMM_LANES) {
    uint32_t bits = 0;
    memcpy(&bits, code + code_size(format, i), code_size(format, LCOMM_LANES));
    __m512i index = _mm512_srlv_epi32(_mm512_set1_epi32((int)bits), shift);
    lcomm_put(path, destination + i, _mm512_permutevar_ps(values, index));
  }
}

LCOMM_VECTOR void decode_blocks(lcomm_lowbit format, lcomm_path path, const uint8_t *code,
                                const uint8_t *scale, size_t block, float factor,
                                float *destination, size_t n) {
  size_t whole = n - n % block;
  for (size_t i = 0; i < whole; i += block) {
    decode_unit(format, path, code + code_size(format, i), scale + i / block, block, factor,
                destination + i);
  }
  const lcomm_kernels *scalar = &lcomm_kernels_scalar;
  (path == LCOMM_ADDED ? scalar->lowbit_add : scalar->lowbit_to_f32)[format](
      code + code_size(format, whole), scale + whole / block, block, factor, destination + whole,
      n - whole);
}

LCOMM_VECTOR void decode(lcomm_lowbit format, const uint8_t *code, const uint8_t *scale,
                         size_t block, float factor, float *destination, size_t n) {
  if (n < LCOMM_STREAM_COUNT) {
    decode_blocks(format, LCOMM_CACHED, code, scale, block, factor, destination, n);
    return;
  }
  if (lcomm_is_line(destination)) {
    decode_blocks(format, LCOMM_STREAMED, code, scale, block, factor, destination, n);
    _mm_sfence();
    return;
  }
  float stage[LCOMM_STAGE];
  for (size_t i = 0; i < n; i += LCOMM_STAGE) {
    size_t count = n - i < LCOMM_STAGE ? n - i : LCOMM_STAGE;
    decode_blocks(format, LCOMM_CACHED, code + code_size(format, i), scale + i / block, block,
                  factor, stage, count);
    lcomm_stream_copy(destination + i, stage, count * sizeof *stage);
  }
  _mm_sfence();
}

void lcomm_avx512_sign_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode(LCOMM_SIGN, code, scale, block, factor, destination, n);
}

void lcomm_avx512_int2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode(LCOMM_INT2, code, scale, block, factor, destination, n);
}

void lcomm_avx512_sign_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n) {
  decode_blocks(LCOMM_SIGN, LCOMM_ADDED, code, scale, block, factor, destination, n);
}

void lcomm_avx512_int2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n) {
  decode_blocks(LCOMM_INT2, LCOMM_ADDED, code, scale, block, factor, destination, n);
}
