/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels for the formats with one scale per block. Every inner loop
 * runs over exactly LCOMM_BLOCK elements, so that the compiler vectorises it
 * without a remainder; a short last block goes through a padded copy.
 */

#include "kernels/element.h"
#include "kernels/prefetch.h"
#include "kernels/scalar.h"

static int32_t block_amax(const float *restrict source) {
  int32_t amax = 0;
  lcomm_prefetch_read(source);
  for (int i = 0; i < LCOMM_BLOCK; i++) {
    int32_t magnitude = lcomm_f32_magnitude(source[i]);
    amax = magnitude > amax ? magnitude : amax;
  }
  return amax;
}

/* int8 */

static float encode_int8_not_finite(const float *source, int8_t *code, int32_t amax) {
  int nan = amax > (int32_t)LCOMM_F32_INF_BITS;
  for (int i = 0; i < LCOMM_BLOCK; i++) {
    int infinite = lcomm_f32_magnitude(source[i]) == (int32_t)LCOMM_F32_INF_BITS;
    code[i] = (int8_t)(nan || !infinite ? 0 : source[i] > 0.0f ? 127 : -127);
  }
  return lcomm_f32_from_bits(nan ? LCOMM_F32_NAN_BITS : LCOMM_F32_INF_BITS);
}

/* Returns the scale. */
static float encode_int8(const float *restrict source, int8_t *restrict code) {
  int32_t amax = block_amax(source);
  if (amax >= (int32_t)LCOMM_F32_INF_BITS)
    return encode_int8_not_finite(source, code, amax);
  if (amax < LCOMM_INT8_TINY_BITS) {
    memset(code, 0, LCOMM_BLOCK);
    return 0.0f;
  }
  float largest = lcomm_f32_from_bits((uint32_t)amax);
  float inverse = 127.0f / largest;
  for (int i = 0; i < LCOMM_BLOCK; i++)
    code[i] = lcomm_f32_to_int8(source[i] * inverse);
  return largest / 127.0f;
}

static void decode_int8(const int8_t *restrict code, float scale, float factor,
                        float *restrict destination) {
  for (int i = 0; i < LCOMM_BLOCK; i++)
    destination[i] = factor * (scale * (float)code[i]);
}

static void add_int8(const int8_t *restrict code, float scale, float factor,
                     float *restrict destination) {
  lcomm_prefetch_write(destination);
  for (int i = 0; i < LCOMM_BLOCK; i++)
    destination[i] += factor * (scale * (float)code[i]);
}

void lcomm_scalar_f32_to_int8(const float *source, int8_t *code, float *scale, size_t n) {
  size_t blocks = n / LCOMM_BLOCK, tail = n % LCOMM_BLOCK;
  for (size_t b = 0; b < blocks; b++)
    scale[b] = encode_int8(source + b * LCOMM_BLOCK, code + b * LCOMM_BLOCK);
  if (tail == 0)
    return;
  float padded[LCOMM_BLOCK] = {0};
  int8_t codes[LCOMM_BLOCK];
  memcpy(padded, source + blocks * LCOMM_BLOCK, tail * sizeof *padded);
  scale[blocks] = encode_int8(padded, codes);
  memcpy(code + blocks * LCOMM_BLOCK, codes, tail);
}

void lcomm_scalar_int8_to_f32(const int8_t *code, const float *scale, float factor,
                              float *destination, size_t n) {
  size_t blocks = n / LCOMM_BLOCK, tail = n % LCOMM_BLOCK;
  for (size_t b = 0; b < blocks; b++)
    decode_int8(code + b * LCOMM_BLOCK, scale[b], factor, destination + b * LCOMM_BLOCK);
  for (size_t i = n - tail; i < n; i++)
    destination[i] = factor * (scale[blocks] * (float)code[i]);
}

void lcomm_scalar_int8_add(const int8_t *code, const float *scale, float factor, float *destination,
                           size_t n) {
  size_t blocks = n / LCOMM_BLOCK, tail = n % LCOMM_BLOCK;
  for (size_t b = 0; b < blocks; b++)
    add_int8(code + b * LCOMM_BLOCK, scale[b], factor, destination + b * LCOMM_BLOCK);
  for (size_t i = n - tail; i < n; i++)
    destination[i] += factor * (scale[blocks] * (float)code[i]);
}

/* fp8. One set of functions for both formats; `format` is a constant wherever
 * they are inlined. */

static inline uint8_t encode_element(lcomm_fp8 format, float value) {
  return format == LCOMM_E4M3 ? lcomm_f32_to_e4m3(value) : lcomm_f32_to_e5m2(value);
}

static inline float decode_element(lcomm_fp8 format, uint8_t code) {
  return format == LCOMM_E4M3 ? lcomm_e4m3_to_f32(code) : lcomm_e5m2_to_f32(code);
}

/* Returns the scale byte. */
static inline uint8_t encode_fp8(lcomm_fp8 format, const float *restrict source,
                                 uint8_t *restrict code) {
  int32_t top = format == LCOMM_E4M3 ? 8 : 15;
  uint8_t scale = lcomm_e8m0_scale(block_amax(source), top);
  if (scale == LCOMM_E8M0_NAN) {
    memset(code, 0, LCOMM_BLOCK);
    return scale;
  }
  float inverse = lcomm_e8m0_inverse(scale);
  for (int i = 0; i < LCOMM_BLOCK; i++)
    code[i] = encode_element(format, source[i] * inverse);
  return scale;
}

static inline void encode_fp8_blocks(lcomm_fp8 format, const float *source, uint8_t *code,
                                     uint8_t *scale, size_t n) {
  size_t blocks = n / LCOMM_BLOCK, tail = n % LCOMM_BLOCK;
  for (size_t b = 0; b < blocks; b++)
    scale[b] = encode_fp8(format, source + b * LCOMM_BLOCK, code + b * LCOMM_BLOCK);
  if (tail == 0)
    return;
  float padded[LCOMM_BLOCK] = {0};
  uint8_t codes[LCOMM_BLOCK];
  memcpy(padded, source + blocks * LCOMM_BLOCK, tail * sizeof *padded);
  scale[blocks] = encode_fp8(format, padded, codes);
  memcpy(code + blocks * LCOMM_BLOCK, codes, tail);
}

static inline void decode_fp8(lcomm_fp8 format, const uint8_t *restrict code, float scale,
                              float factor, float *restrict destination) {
  for (int i = 0; i < LCOMM_BLOCK; i++)
    destination[i] = factor * (scale * decode_element(format, code[i]));
}

static inline void decode_fp8_blocks(lcomm_fp8 format, const uint8_t *code, const uint8_t *scale,
                                     float factor, float *destination, size_t n) {
  size_t blocks = n / LCOMM_BLOCK, tail = n % LCOMM_BLOCK;
  for (size_t b = 0; b < blocks; b++)
    decode_fp8(format, code + b * LCOMM_BLOCK, lcomm_e8m0_to_f32(scale[b]), factor,
               destination + b * LCOMM_BLOCK);
  if (tail == 0)
    return;
  float last = lcomm_e8m0_to_f32(scale[blocks]);
  for (size_t i = n - tail; i < n; i++)
    destination[i] = factor * (last * decode_element(format, code[i]));
}

static inline void add_fp8(lcomm_fp8 format, const uint8_t *restrict code, float scale,
                           float factor, float *restrict destination) {
  lcomm_prefetch_write(destination);
  for (int i = 0; i < LCOMM_BLOCK; i++)
    destination[i] += factor * (scale * decode_element(format, code[i]));
}

static inline void add_fp8_blocks(lcomm_fp8 format, const uint8_t *code, const uint8_t *scale,
                                  float factor, float *destination, size_t n) {
  size_t blocks = n / LCOMM_BLOCK, tail = n % LCOMM_BLOCK;
  for (size_t b = 0; b < blocks; b++)
    add_fp8(format, code + b * LCOMM_BLOCK, lcomm_e8m0_to_f32(scale[b]), factor,
            destination + b * LCOMM_BLOCK);
  if (tail == 0)
    return;
  float last = lcomm_e8m0_to_f32(scale[blocks]);
  for (size_t i = n - tail; i < n; i++)
    destination[i] += factor * (last * decode_element(format, code[i]));
}

void lcomm_scalar_f32_to_e4m3(const float *source, uint8_t *code, uint8_t *scale, size_t n) {
  encode_fp8_blocks(LCOMM_E4M3, source, code, scale, n);
}

void lcomm_scalar_f32_to_e5m2(const float *source, uint8_t *code, uint8_t *scale, size_t n) {
  encode_fp8_blocks(LCOMM_E5M2, source, code, scale, n);
}

void lcomm_scalar_e4m3_to_f32(const uint8_t *code, const uint8_t *scale, float factor,
                              float *destination, size_t n) {
  decode_fp8_blocks(LCOMM_E4M3, code, scale, factor, destination, n);
}

void lcomm_scalar_e5m2_to_f32(const uint8_t *code, const uint8_t *scale, float factor,
                              float *destination, size_t n) {
  decode_fp8_blocks(LCOMM_E5M2, code, scale, factor, destination, n);
}

void lcomm_scalar_e4m3_add(const uint8_t *code, const uint8_t *scale, float factor,
                           float *destination, size_t n) {
  add_fp8_blocks(LCOMM_E4M3, code, scale, factor, destination, n);
}

void lcomm_scalar_e5m2_add(const uint8_t *code, const uint8_t *scale, float factor,
                           float *destination, size_t n) {
  add_fp8_blocks(LCOMM_E5M2, code, scale, factor, destination, n);
}
