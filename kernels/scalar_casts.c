/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels for the 16-bit formats. */

#include "kernels/element.h"
#include "kernels/prefetch.h"
#include "kernels/scalar.h"

static size_t block_end(size_t first, size_t n) {
  return n - first < LCOMM_BLOCK ? n : first + LCOMM_BLOCK;
}

void lcomm_scalar_f32_to_f16(const float *restrict source, float factor, uint16_t *restrict code,
                             size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    size_t end = block_end(first, n);
    lcomm_prefetch_read(source + first);
    for (size_t i = first; i < end; i++) {
      code[i] = lcomm_f32_to_f16(factor * source[i]);
    }
  }
}

void lcomm_scalar_f32_to_bf16(const float *restrict source, uint16_t *restrict code, size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    size_t end = block_end(first, n);
    lcomm_prefetch_read(source + first);
    for (size_t i = first; i < end; i++) {
      code[i] = lcomm_f32_to_bf16(source[i]);
    }
  }
}

void lcomm_scalar_f16_to_f32(const uint16_t *restrict code, float factor,
                             float *restrict destination, size_t n) {
  for (size_t i = 0; i < n; i++) {
    destination[i] = factor * lcomm_f16_to_f32(code[i]);
  }
}

void lcomm_scalar_bf16_to_f32(const uint16_t *restrict code, float factor,
                              float *restrict destination, size_t n) {
  for (size_t i = 0; i < n; i++) {
    destination[i] = factor * lcomm_bf16_to_f32(code[i]);
  }
}

void lcomm_scalar_f16_add(const uint16_t *restrict code, float factor, float *restrict destination,
                          size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    size_t end = block_end(first, n);
    lcomm_prefetch_write(destination + first);
    for (size_t i = first; i < end; i++) {
      destination[i] += factor * lcomm_f16_to_f32(code[i]);
    }
  }
}

void lcomm_scalar_bf16_add(const uint16_t *restrict code, float factor, float *restrict destination,
                           size_t n) {
  for (size_t i = 0; i < n; i++) {
    destination[i] += factor * lcomm_bf16_to_f32(code[i]);
  }
}

/* float16 with a power-of-two scale for each block. */

static uint8_t encode_block(const float *restrict source, uint16_t *restrict code, size_t n) {
  int32_t amax = 0;
  for (size_t i = 0; i < n; i++) {
    int32_t magnitude = lcomm_f32_magnitude(source[i]);
    amax = magnitude > amax ? magnitude : amax;
  }
  uint8_t scale = lcomm_e8m0_scale(amax, LCOMM_E5M2_TOP);
  if (scale == LCOMM_E8M0_NAN) {
    memset(code, 0, n * sizeof *code);
    return scale;
  }
  float inverse = lcomm_e8m0_inverse(scale);
  for (size_t i = 0; i < n; i++) {
    code[i] = lcomm_f32_to_f16(source[i] * inverse);
  }
  return scale;
}

void lcomm_scalar_f32_to_f16_block(const float *source, uint16_t *code, uint8_t *scale, size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    lcomm_prefetch_read(source + first);
    scale[first / LCOMM_BLOCK] =
        encode_block(source + first, code + first, block_end(first, n) - first);
  }
}

void lcomm_scalar_f16_block_to_f32(const uint16_t *restrict code, const uint8_t *restrict scale,
                                   float factor, float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    float unit = lcomm_e8m0_to_f32(scale[first / LCOMM_BLOCK]);
    size_t end = block_end(first, n);
    for (size_t i = first; i < end; i++) {
      destination[i] = factor * (unit * lcomm_f16_to_f32(code[i]));
    }
  }
}

void lcomm_scalar_f16_block_add(const uint16_t *restrict code, const uint8_t *restrict scale,
                                float factor, float *restrict destination, size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    float unit = lcomm_e8m0_to_f32(scale[first / LCOMM_BLOCK]);
    size_t end = block_end(first, n);
    lcomm_prefetch_write(destination + first);
    for (size_t i = first; i < end; i++) {
      destination[i] += factor * (unit * lcomm_f16_to_f32(code[i]));
    }
  }
}
