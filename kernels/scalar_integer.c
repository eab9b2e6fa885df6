/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels for int8 and int4. Every inner loop runs over a constant
 * number of elements, so that the compiler vectorises it without a remainder;
 * a short last block goes through a padded copy. `block` is a constant
 * wherever the inline functions are used.
 */

#include "kernels/element.h"
#include "kernels/prefetch.h"
#include "kernels/scalar.h"
#include "kernels/scalar_block.h"

/* Codes of -top..top, and the scale. */
static inline float quantise_not_finite(const float *source, size_t block, float top, int8_t *code,
                                        int32_t amax) {
  int nan = amax > (int32_t)LCOMM_F32_INF_BITS;
  for (size_t i = 0; i < block; i++) {
    int infinite = lcomm_f32_magnitude(source[i]) == (int32_t)LCOMM_F32_INF_BITS;
    code[i] = (int8_t)(nan || !infinite ? 0 : source[i] > 0.0f ? (int8_t)top : -(int8_t)top);
  }
  return lcomm_f32_from_bits(nan ? LCOMM_F32_NAN_BITS : LCOMM_F32_INF_BITS);
}

static inline float quantise(const float *restrict source, size_t block, float top,
                             int8_t *restrict code) {
  int32_t amax = lcomm_block_amax(source, block);
  if (amax >= (int32_t)LCOMM_F32_INF_BITS) {
    return quantise_not_finite(source, block, top, code, amax);
  }
  if (amax < LCOMM_INTEGER_TINY_BITS) {
    memset(code, 0, block);
    return 0.0f;
  }
  float largest = lcomm_f32_from_bits((uint32_t)amax);
  float inverse = top / largest;
  for (size_t i = 0; i < block; i++) {
    code[i] = lcomm_f32_to_int8(source[i] * inverse);
  }
  return largest / top;
}

/* int8 */

static inline void encode_int8(const float *source, size_t block, int8_t *code, float *scale,
                               size_t n) {
  size_t blocks = n / block, tail = n % block;
  for (size_t b = 0; b < blocks; b++) {
    scale[b] = quantise(source + b * block, block, 127.0f, code + b * block);
  }
  if (tail == 0) {
    return;
  }
  float padded[LCOMM_BLOCK] = {0};
  int8_t codes[LCOMM_BLOCK];
  memcpy(padded, source + blocks * block, tail * sizeof *padded);
  scale[blocks] = quantise(padded, block, 127.0f, codes);
  memcpy(code + blocks * block, codes, tail);
}

void lcomm_scalar_f32_to_int8(const float *source, size_t block, int8_t *code, float *scale,
                              size_t n) {
  if (block == 32) {
    encode_int8(source, 32, code, scale, n);
  } else {
    encode_int8(source, LCOMM_BLOCK, code, scale, n);
  }
}

void lcomm_scalar_int8_to_f32(const int8_t *restrict code, const float *restrict scale,
                              size_t block, float factor, float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += block) {
    float unit = scale[first / block];
    size_t end = n - first < block ? n : first + block;
    for (size_t i = first; i < end; i++) {
      destination[i] = factor * (unit * (float)code[i]);
    }
  }
}

void lcomm_scalar_int8_add(const int8_t *restrict code, const float *restrict scale, size_t block,
                           float factor, float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += block) {
    float unit = scale[first / block];
    size_t end = n - first < block ? n : first + block;
    if (first % LCOMM_BLOCK == 0) {
      lcomm_prefetch_write(destination + first);
    }
    for (size_t i = first; i < end; i++) {
      destination[i] += factor * (unit * (float)code[i]);
    }
  }
}

/* int4 */

static inline float encode_int4_block(const float *source, size_t block, uint8_t *code) {
  int8_t codes[LCOMM_BLOCK];
  float scale = quantise(source, block, 7.0f, codes);
  for (size_t i = 0; i < block / 2; i++) {
    code[i] = lcomm_int4_pack(codes[2 * i], codes[2 * i + 1]);
  }
  return scale;
}

static inline void encode_int4(const float *source, size_t block, uint8_t *code, float *scale,
                               size_t n) {
  size_t blocks = n / block, tail = n % block;
  for (size_t b = 0; b < blocks; b++) {
    scale[b] = encode_int4_block(source + b * block, block, code + b * block / 2);
  }
  if (tail == 0) {
    return;
  }
  float padded[LCOMM_BLOCK] = {0};
  uint8_t codes[LCOMM_BLOCK / 2];
  memcpy(padded, source + blocks * block, tail * sizeof *padded);
  scale[blocks] = encode_int4_block(padded, block, codes);
  memcpy(code + blocks * block / 2, codes, (tail + 1) / 2);
}

void lcomm_scalar_f32_to_int4(const float *source, size_t block, uint8_t *code, float *scale,
                              size_t n) {
  if (block == 32) {
    encode_int4(source, 32, code, scale, n);
  } else {
    encode_int4(source, LCOMM_BLOCK, code, scale, n);
  }
}

static inline float int4_value(const uint8_t *code, size_t i) {
  return (float)(i % 2 == 0 ? lcomm_int4_even(code[i / 2]) : lcomm_int4_odd(code[i / 2]));
}

void lcomm_scalar_int4_to_f32(const uint8_t *restrict code, const float *restrict scale,
                              size_t block, float factor, float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += block) {
    float unit = scale[first / block];
    size_t end = n - first < block ? n : first + block;
    for (size_t i = first; i < end; i++) {
      destination[i] = factor * (unit * int4_value(code, i));
    }
  }
}

void lcomm_scalar_int4_add(const uint8_t *restrict code, const float *restrict scale, size_t block,
                           float factor, float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += block) {
    float unit = scale[first / block];
    size_t end = n - first < block ? n : first + block;
    for (size_t i = first; i < end; i++) {
      destination[i] += factor * (unit * int4_value(code, i));
    }
  }
}
