/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* 8-bit floating point with one power-of-two scale per block.
 *
 * Payload, with blocks = ceil(count / block):
 *   blocks bytes   E8M0 scales, one per block
 *   0..7 bytes     zeros, up to a multiple of 8
 *   count bytes    codes
 *
 * Both codecs share all functions: the format says which of the two numbers it is.
 */

#include "codecs/block.h"

static lcomm_fp8 number_of(const lcomm_format *format) {
  return format->codec->id == LCOMM_CODEC_FP8E5M2 ? LCOMM_E5M2 : LCOMM_E4M3;
}

static double bits(const lcomm_format *format) {
  return 8.0 + 8.0 / format->block;
}

static size_t code_offset(const lcomm_format *format, lcomm_range range) {
  return lcomm_block_codes(range.count, format->block, 1) + (size_t)range.first;
}

static size_t size_of(const lcomm_format *format, uint64_t count) {
  return lcomm_block_codes(count, format->block, 1) + (size_t)count;
}

static void encode(const lcomm_format *format, const lcomm_kernels *kernels, const float *source,
                   lcomm_range range, uint64_t seed, uint8_t *payload) {
  uint8_t *code = payload + code_offset(format, range);
  uint8_t *scale = payload + range.first / format->block;
  if (format->stochastic) {
    kernels->f32_to_fp8_stochastic[number_of(format)](source, format->block, seed, range.first,
                                                      code, scale, (size_t)range.n);
  } else {
    kernels->f32_to_fp8[number_of(format)](source, format->block, code, scale, (size_t)range.n);
  }
  lcomm_block_pad(range, format->block, 1, payload);
}

static void decode(const lcomm_format *format, const lcomm_kernels *kernels, const uint8_t *payload,
                   lcomm_range range, float factor, float *destination) {
  kernels->fp8_to_f32[number_of(format)](payload + code_offset(format, range),
                                         payload + range.first / format->block, format->block,
                                         factor, destination, (size_t)range.n);
}

static void accumulate(const lcomm_format *format, const lcomm_kernels *kernels,
                       const uint8_t *payload, lcomm_range range, float factor,
                       float *destination) {
  kernels->fp8_add[number_of(format)](payload + code_offset(format, range),
                                      payload + range.first / format->block, format->block, factor,
                                      destination, (size_t)range.n);
}

const lcomm_codec lcomm_codec_fp8e4m3 = {
    .id = LCOMM_CODEC_FP8E4M3,
    .name = "fp8e4m3",
    .summary = "8-bit float, 4 significant bits, one power-of-two scale per block",
    .blocks = {128, 64, 32},
    LCOMM_DENSE_FUNCTIONS,
};

const lcomm_codec lcomm_codec_fp8e5m2 = {
    .id = LCOMM_CODEC_FP8E5M2,
    .name = "fp8e5m2",
    .summary = "8-bit float, 3 significant bits, one power-of-two scale per block",
    .blocks = {128, 64, 32},
    LCOMM_DENSE_FUNCTIONS,
};
