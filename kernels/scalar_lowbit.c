/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels for sign and int2. One set of inline functions for both formats and all
 * blocks, which are constants wherever they are used; a short last block goes through a padded
 * copy.
 */

#include "kernels/lowbit.h"
#include "kernels/prefetch.h"
#include "kernels/scalar.h"
#include "kernels/scalar_block.h"

/* Bits of a code. */
static inline size_t width_of(lcomm_lowbit format) {
  return format == LCOMM_SIGN ? 1 : 2;
}

static inline size_t code_size(lcomm_lowbit format, size_t count) {
  return (count * width_of(format) + 7) / 8;
}

/* Encode */

static inline uint32_t sum_of_squares(const float *restrict source, size_t block, int32_t amax) {
  float steps_of_one = lcomm_sign_steps_of_one(amax);
  uint32_t sum = 0;
  for (size_t i = 0; i < block; i++) {
    uint32_t steps = lcomm_sign_steps(source[i], steps_of_one);
    sum += steps * steps;
  }
  return sum;
}

/* The scale of a block of which `count` elements are there, the others being 0. */
static inline uint8_t scale_of(lcomm_lowbit format, const float *source, size_t block,
                               size_t count) {
  int32_t amax = lcomm_block_amax(source, block);
  if (format == LCOMM_INT2) {
    return lcomm_int2_scale(amax);
  }
  bool is_coded = amax >= LCOMM_INTEGER_TINY_BITS && amax < (int32_t)LCOMM_F32_INF_BITS;
  uint32_t squares = is_coded ? sum_of_squares(source, block, amax) : 0;
  return lcomm_sign_scale(amax, squares, lcomm_sign_share((uint32_t)count));
}

static inline uint32_t code_of(lcomm_lowbit format, float value, int32_t limit) {
  uint32_t sign = lcomm_f32_bits(value) >> 31;
  return format == LCOMM_SIGN ? sign : sign | (uint32_t)(lcomm_f32_magnitude(value) > limit) << 1;
}

/* Returns the scale byte. */
static inline uint8_t encode_block(lcomm_lowbit format, const float *restrict source, size_t block,
                                   size_t count, uint8_t *restrict code) {
  uint8_t scale = scale_of(format, source, block, count);
  if (scale == LCOMM_E8M0_NAN) {
    memset(code, 0, code_size(format, block));
    return scale;
  }
  const size_t width = width_of(format), in_byte = 8 / width;
  int32_t limit = lcomm_int2_limit(scale);
  for (size_t i = 0; i < block; i += in_byte) {
    uint32_t byte = 0;
    for (size_t e = 0; e < in_byte; e++) {
      byte |= code_of(format, source[i + e], limit) << width * e;
    }
    code[i / in_byte] = (uint8_t)byte;
  }
  return scale;
}

static inline void encode(lcomm_lowbit format, const float *source, size_t block, uint8_t *code,
                          uint8_t *scale, size_t n) {
  size_t blocks = n / block, tail = n % block;
  for (size_t b = 0; b < blocks; b++) {
    scale[b] =
        encode_block(format, source + b * block, block, block, code + b * code_size(format, block));
  }
  if (tail == 0) {
    return;
  }
  float padded[LCOMM_BLOCK] = {0};
  uint8_t codes[LCOMM_BLOCK];
  memcpy(padded, source + blocks * block, tail * sizeof *padded);
  scale[blocks] = encode_block(format, padded, block, tail, codes);
  memcpy(code + blocks * code_size(format, block), codes, code_size(format, tail));
}

/* One call for each constant block. */
static inline void encode_any(lcomm_lowbit format, const float *source, size_t block, uint8_t *code,
                              uint8_t *scale, size_t n) {
  if (block == 32) {
    encode(format, source, 32, code, scale, n);
  } else if (block == 64) {
    encode(format, source, 64, code, scale, n);
  } else {
    encode(format, source, LCOMM_BLOCK, code, scale, n);
  }
}

void lcomm_scalar_f32_to_sign(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n) {
  encode_any(LCOMM_SIGN, source, block, code, scale, n);
}

void lcomm_scalar_f32_to_int2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n) {
  encode_any(LCOMM_INT2, source, block, code, scale, n);
}

/* Decode */

static inline float value_of(lcomm_lowbit format, const uint8_t *code, size_t i) {
  const size_t width = width_of(format), in_byte = 8 / width;
  uint32_t bits = (uint32_t)code[i / in_byte] >> width * (i % in_byte);
  return lcomm_lowbit_to_f32(format == LCOMM_SIGN ? bits & 1 : bits & 3);
}

static inline void decode(lcomm_lowbit format, const uint8_t *restrict code,
                          const uint8_t *restrict scale, size_t block, float factor,
                          float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += block) {
    float unit = lcomm_lowbit_scale_to_f32(scale[first / block]);
    size_t end = n - first < block ? n : first + block;
    for (size_t i = first; i < end; i++) {
      destination[i] = factor * (unit * value_of(format, code, i));
    }
  }
}

static inline void add(lcomm_lowbit format, const uint8_t *restrict code,
                       const uint8_t *restrict scale, size_t block, float factor,
                       float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += block) {
    float unit = lcomm_lowbit_scale_to_f32(scale[first / block]);
    size_t end = n - first < block ? n : first + block;
    if (first % LCOMM_BLOCK == 0) {
      lcomm_prefetch_write(destination + first);
    }
    for (size_t i = first; i < end; i++) {
      destination[i] += factor * (unit * value_of(format, code, i));
    }
  }
}

void lcomm_scalar_sign_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode(LCOMM_SIGN, code, scale, block, factor, destination, n);
}

void lcomm_scalar_int2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode(LCOMM_INT2, code, scale, block, factor, destination, n);
}

void lcomm_scalar_sign_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n) {
  add(LCOMM_SIGN, code, scale, block, factor, destination, n);
}

void lcomm_scalar_int2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n) {
  add(LCOMM_INT2, code, scale, block, factor, destination, n);
}
