/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Symmetric int8 with one float32 scale per block.
 *
 * Payload, with blocks = ceil(count / LCOMM_BLOCK):
 *   4 * blocks bytes   scales, little-endian float32
 *   0 or 4 bytes       zeros, up to a multiple of 8
 *   count bytes        codes, -127..127
 *
 * The error of a value is at most half a step, scale / 2. A block whose
 * largest magnitude is below 2^-119 is sent as zeros. A block with an Inf has
 * the scale Inf and codes of +-127 where the Inf are, 0 elsewhere, so it
 * decodes to Inf and NaN; a block with a NaN has the scale NaN.
 */

#include <string.h>

#include "codecs/codec.h"

static size_t block_count(uint64_t count) {
  return (size_t)(count / LCOMM_BLOCK + (count % LCOMM_BLOCK != 0));
}

static size_t code_offset(uint64_t count) {
  return (block_count(count) + 1) / 2 * 8;
}

static size_t size_of(uint64_t count) {
  return code_offset(count) + (size_t)count;
}

static void encode(const lcomm_kernels *kernels, const float *source, uint64_t count,
                   uint64_t first, uint64_t n, uint8_t *payload) {
  size_t codes = code_offset(count), scales = block_count(count) * sizeof(float);
  kernels->f32_to_int8(source, (int8_t *)payload + codes + first,
                       (float *)payload + first / LCOMM_BLOCK, (size_t)n);
  if (first + n == count)
    memset(payload + scales, 0, codes - scales);
}

static void decode(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                   uint64_t first, uint64_t n, float factor, float *destination) {
  kernels->int8_to_f32((const int8_t *)payload + code_offset(count) + first,
                       (const float *)payload + first / LCOMM_BLOCK, factor, destination,
                       (size_t)n);
}

static void accumulate(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                       uint64_t first, uint64_t n, float factor, float *destination) {
  kernels->int8_add((const int8_t *)payload + code_offset(count) + first,
                    (const float *)payload + first / LCOMM_BLOCK, factor, destination, (size_t)n);
}

const lcomm_codec lcomm_codec_int8 = {
    .id = LCOMM_CODEC_INT8,
    .name = "int8",
    .summary = "8-bit integers, one float32 scale per 128 values",
    .bits = 8.0 + 32.0 / LCOMM_BLOCK,
    .size = size_of,
    .encode = encode,
    .decode = decode,
    .accumulate = accumulate,
};
