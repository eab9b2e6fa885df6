/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels for fp8. One set of inline functions for both formats and all
 * blocks, which are constants wherever they are used. Every inner loop runs
 * over a constant number of elements, so that the compiler vectorises it
 * without a remainder; a short last block goes through a padded copy.
 */

#include "kernels/element.h"
#include "kernels/prefetch.h"
#include "kernels/scalar.h"
#include "kernels/scalar_block.h"

static inline uint8_t encode_element(lcomm_fp8 format, float value) {
  return format == LCOMM_E4M3 ? lcomm_f32_to_e4m3(value) : lcomm_f32_to_e5m2(value);
}

static inline uint8_t encode_element_stochastic(lcomm_fp8 format, float value, uint32_t random) {
  return format == LCOMM_E4M3 ? lcomm_f32_to_e4m3_stochastic(value, random)
                              : lcomm_f32_to_e5m2_stochastic(value, random);
}

static inline float decode_element(lcomm_fp8 format, uint8_t code) {
  return format == LCOMM_E4M3 ? lcomm_e4m3_to_f32(code) : lcomm_e5m2_to_f32(code);
}

static inline uint8_t scale_of(lcomm_fp8 format, const float *source, size_t block) {
  return lcomm_e8m0_scale(lcomm_block_amax(source, block),
                          format == LCOMM_E4M3 ? LCOMM_E4M3_TOP : LCOMM_E5M2_TOP);
}

/* Returns the scale byte. */
static inline uint8_t encode_block(lcomm_fp8 format, const float *restrict source, size_t block,
                                   uint8_t *restrict code) {
  uint8_t scale = scale_of(format, source, block);
  if (scale == LCOMM_E8M0_NAN) {
    memset(code, 0, block);
    return scale;
  }
  float inverse = lcomm_e8m0_inverse(scale);
  for (size_t i = 0; i < block; i++) {
    code[i] = encode_element(format, source[i] * inverse);
  }
  return scale;
}

static inline void encode(lcomm_fp8 format, const float *source, size_t block, uint8_t *code,
                          uint8_t *scale, size_t n) {
  size_t blocks = n / block, tail = n % block;
  for (size_t b = 0; b < blocks; b++) {
    scale[b] = encode_block(format, source + b * block, block, code + b * block);
  }
  if (tail == 0) {
    return;
  }
  float padded[LCOMM_BLOCK] = {0};
  uint8_t codes[LCOMM_BLOCK];
  memcpy(padded, source + blocks * block, tail * sizeof *padded);
  scale[blocks] = encode_block(format, padded, block, codes);
  memcpy(code + blocks * block, codes, tail);
}

/* One call for each constant block. */
static inline void encode_any(lcomm_fp8 format, const float *source, size_t block, uint8_t *code,
                              uint8_t *scale, size_t n) {
  if (block == 32) {
    encode(format, source, 32, code, scale, n);
  } else if (block == 64) {
    encode(format, source, 64, code, scale, n);
  } else {
    encode(format, source, LCOMM_BLOCK, code, scale, n);
  }
}

void lcomm_scalar_f32_to_e4m3(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n) {
  encode_any(LCOMM_E4M3, source, block, code, scale, n);
}

void lcomm_scalar_f32_to_e5m2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n) {
  encode_any(LCOMM_E5M2, source, block, code, scale, n);
}

/* Stochastic */

/* Returns the scale byte. `first` is the index of the block's first element. */
static inline uint8_t encode_block_stochastic(lcomm_fp8 format, const float *restrict source,
                                              size_t block, uint64_t seed, uint64_t first,
                                              uint8_t *restrict code) {
  uint8_t scale = scale_of(format, source, block);
  if (scale == LCOMM_E8M0_NAN) {
    memset(code, 0, block);
    return scale;
  }
  float inverse = lcomm_e8m0_inverse(scale);
  lcomm_random_key key = lcomm_random_open(seed, first);
  for (size_t i = 0; i < block; i++) {
    code[i] = encode_element_stochastic(format, source[i] * inverse,
                                        lcomm_random_next(key, (uint32_t)first + (uint32_t)i));
  }
  return scale;
}

static inline void encode_stochastic(lcomm_fp8 format, const float *source, size_t block,
                                     uint64_t seed, uint64_t first, uint8_t *code, uint8_t *scale,
                                     size_t n) {
  size_t blocks = n / block, tail = n % block;
  for (size_t b = 0; b < blocks; b++) {
    scale[b] = encode_block_stochastic(format, source + b * block, block, seed, first + b * block,
                                       code + b * block);
  }
  if (tail == 0) {
    return;
  }
  float padded[LCOMM_BLOCK] = {0};
  uint8_t codes[LCOMM_BLOCK];
  memcpy(padded, source + blocks * block, tail * sizeof *padded);
  scale[blocks] =
      encode_block_stochastic(format, padded, block, seed, first + blocks * block, codes);
  memcpy(code + blocks * block, codes, tail);
}

void lcomm_scalar_f32_to_e4m3_stochastic(const float *source, size_t block, uint64_t seed,
                                         uint64_t first, uint8_t *code, uint8_t *scale, size_t n) {
  encode_stochastic(LCOMM_E4M3, source, block, seed, first, code, scale, n);
}

void lcomm_scalar_f32_to_e5m2_stochastic(const float *source, size_t block, uint64_t seed,
                                         uint64_t first, uint8_t *code, uint8_t *scale, size_t n) {
  encode_stochastic(LCOMM_E5M2, source, block, seed, first, code, scale, n);
}

/* Decode */

static inline void decode(lcomm_fp8 format, const uint8_t *restrict code,
                          const uint8_t *restrict scale, size_t block, float factor,
                          float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += block) {
    float unit = lcomm_e8m0_to_f32(scale[first / block]);
    size_t end = n - first < block ? n : first + block;
    for (size_t i = first; i < end; i++) {
      destination[i] = factor * (unit * decode_element(format, code[i]));
    }
  }
}

static inline void add(lcomm_fp8 format, const uint8_t *restrict code,
                       const uint8_t *restrict scale, size_t block, float factor,
                       float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += block) {
    float unit = lcomm_e8m0_to_f32(scale[first / block]);
    size_t end = n - first < block ? n : first + block;
    if (first % LCOMM_BLOCK == 0) {
      lcomm_prefetch_write(destination + first);
    }
    for (size_t i = first; i < end; i++) {
      destination[i] += factor * (unit * decode_element(format, code[i]));
    }
  }
}

void lcomm_scalar_e4m3_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode(LCOMM_E4M3, code, scale, block, factor, destination, n);
}

void lcomm_scalar_e5m2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode(LCOMM_E5M2, code, scale, block, factor, destination, n);
}

void lcomm_scalar_e4m3_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n) {
  add(LCOMM_E4M3, code, scale, block, factor, destination, n);
}

void lcomm_scalar_e5m2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n) {
  add(LCOMM_E5M2, code, scale, block, factor, destination, n);
}
