/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Symmetric int8 with one float32 scale per block.
 *
 * Payload, with blocks = ceil(count / block):
 *   4 * blocks bytes   scales, little-endian float32
 *   0 or 4 bytes       zeros, up to a multiple of 8
 *   count bytes        codes, -127..127
 *
 * The error of a value is at most half a step, scale / 2. A block whose
 * largest magnitude is below 2^-119 is sent as zeros. A block with an Inf has
 * the scale Inf and codes of +-127 where the Inf are, 0 elsewhere, so it
 * decodes to Inf and NaN; a block with a NaN has the scale NaN.
 */

#include "codecs/block.h"

static double bits(const lcomm_format *format) {
  return 8.0 + 32.0 / format->block;
}

static size_t code_offset(const lcomm_format *format, uint64_t count) {
  return lcomm_block_codes(count, format->block, sizeof(float));
}

static size_t size_of(const lcomm_format *format, uint64_t count) {
  return code_offset(format, count) + (size_t)count;
}

static void encode(const lcomm_format *format, const lcomm_kernels *kernels, const float *source,
                   lcomm_range range, uint64_t seed, uint8_t *payload) {
  (void)seed;
  int8_t *code = (int8_t *)(payload + code_offset(format, range.count) + range.first);
  float *scale = (float *)(void *)payload + range.first / format->block;
  kernels->f32_to_int8(source, format->block, code, scale, (size_t)range.n);
  lcomm_block_pad(range, format->block, sizeof(float), payload);
}

static void decode(const lcomm_format *format, const lcomm_kernels *kernels, const uint8_t *payload,
                   lcomm_range range, float factor, float *destination) {
  const int8_t *code = (const int8_t *)(payload + code_offset(format, range.count) + range.first);
  const float *scale = (const float *)(const void *)payload + range.first / format->block;
  kernels->int8_to_f32(code, scale, format->block, factor, destination, (size_t)range.n);
}

static void accumulate(const lcomm_format *format, const lcomm_kernels *kernels,
                       const uint8_t *payload, lcomm_range range, float factor,
                       float *destination) {
  const int8_t *code = (const int8_t *)(payload + code_offset(format, range.count) + range.first);
  const float *scale = (const float *)(const void *)payload + range.first / format->block;
  kernels->int8_add(code, scale, format->block, factor, destination, (size_t)range.n);
}

static void sum(const lcomm_format *format, const lcomm_kernels *kernels, lcomm_source *sources,
                size_t count, lcomm_range range, float factor, float *destination) {
  for (size_t i = 0; i < count; i++) {
    const uint8_t *payload = sources[i].code;
    if (sources[i].values) {
      continue;
    }
    sources[i].scale = (const float *)(const void *)payload;
    sources[i].code = payload + code_offset(format, range.count);
  }
  kernels->int8_sum(sources, count, format->block, (size_t)range.first, factor, destination,
                    (size_t)range.n);
}

const lcomm_codec lcomm_codec_int8 = {
    .id = LCOMM_CODEC_INT8,
    .name = "int8",
    .summary = "8-bit integers, one float32 scale per block",
    .blocks = {128, 32},
    LCOMM_DENSE_FUNCTIONS,
    .sum = sum,
};
