/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Symmetric int4 with one float32 scale per block.
 *
 * Payload, with blocks = ceil(count / block):
 *   4 * blocks bytes        scales, little-endian float32
 *   0 or 4 bytes            zeros, up to a multiple of 8
 *   ceil(count / 2) bytes   codes -7..7 in two's complement, the even element
 *                           in the low half
 *
 * As int8 with 7 in the place of 127. One value in seven is lost to 0, so a
 * policy gives it error feedback unless told otherwise.
 */

#include "codecs/block.h"

static double bits(const lcomm_format *format) {
  return 4.0 + 32.0 / format->block;
}

static size_t code_offset(const lcomm_format *format, uint64_t count) {
  return lcomm_block_codes(count, format->block, sizeof(float));
}

static size_t size_of(const lcomm_format *format, uint64_t count) {
  return code_offset(format, count) + (size_t)(count / 2 + count % 2);
}

static void encode(const lcomm_format *format, const lcomm_kernels *kernels, const float *source,
                   lcomm_range range, uint64_t seed, uint8_t *payload) {
  (void)seed;
  uint8_t *code = (payload + code_offset(format, range.count) + range.first / 2);
  float *scale = (float *)(void *)payload + range.first / format->block;
  kernels->f32_to_int4(source, format->block, code, scale, (size_t)range.n);
  lcomm_block_pad(range, format->block, sizeof(float), payload);
}

static void decode(const lcomm_format *format, const lcomm_kernels *kernels, const uint8_t *payload,
                   lcomm_range range, float factor, float *destination) {
  const uint8_t *code = (payload + code_offset(format, range.count) + range.first / 2);
  const float *scale = (const float *)(const void *)payload + range.first / format->block;
  kernels->int4_to_f32(code, scale, format->block, factor, destination, (size_t)range.n);
}

static void accumulate(const lcomm_format *format, const lcomm_kernels *kernels,
                       const uint8_t *payload, lcomm_range range, float factor,
                       float *destination) {
  const uint8_t *code = (payload + code_offset(format, range.count) + range.first / 2);
  const float *scale = (const float *)(const void *)payload + range.first / format->block;
  kernels->int4_add(code, scale, format->block, factor, destination, (size_t)range.n);
}

const lcomm_codec lcomm_codec_int4 = {
    .id = LCOMM_CODEC_INT4,
    .name = "int4",
    .summary = "4-bit integers, one float32 scale per block",
    .blocks = {32, 128},
    .feeds_back = true,
    LCOMM_DENSE_FUNCTIONS,
};
