/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* 8-bit floating point with one power-of-two scale per block.
 *
 * Payload, with blocks = ceil(count / block):
 *   blocks bytes   E8M0 scales, one per block
 *   0..7 bytes     zeros, up to a multiple of 8
 *   count bytes    codes
 *
 * Both formats share everything but the kernel: the functions of this file
 * take the number of the format first, and each codec binds it.
 */

#include "codecs/block.h"

static double bits(const lcomm_format *format) {
  return 8.0 + 8.0 / format->block;
}

static size_t size_of(const lcomm_format *format, uint64_t count) {
  return lcomm_block_codes(count, format->block, 1) + (size_t)count;
}

static void encode(lcomm_fp8 number, const lcomm_format *format, const lcomm_kernels *kernels,
                   const float *source, lcomm_range range, uint64_t seed, uint8_t *payload) {
  uint8_t *code = payload + lcomm_block_codes(range.count, format->block, 1) + range.first;
  uint8_t *scale = payload + range.first / format->block;
  if (format->stochastic) {
    kernels->f32_to_fp8_stochastic[number](source, format->block, seed, range.first, code, scale,
                                           (size_t)range.n);
  } else {
    kernels->f32_to_fp8[number](source, format->block, code, scale, (size_t)range.n);
  }
  lcomm_block_pad(range, format->block, 1, payload);
}

static void decode(lcomm_fp8 number, const lcomm_format *format, const lcomm_kernels *kernels,
                   const uint8_t *payload, lcomm_range range, float factor, float *destination) {
  const uint8_t *code = payload + lcomm_block_codes(range.count, format->block, 1) + range.first;
  kernels->fp8_to_f32[number](code, payload + range.first / format->block, format->block, factor,
                              destination, (size_t)range.n);
}

static void accumulate(lcomm_fp8 number, const lcomm_format *format, const lcomm_kernels *kernels,
                       const uint8_t *payload, lcomm_range range, float factor,
                       float *destination) {
  const uint8_t *code = payload + lcomm_block_codes(range.count, format->block, 1) + range.first;
  kernels->fp8_add[number](code, payload + range.first / format->block, format->block, factor,
                           destination, (size_t)range.n);
}

static void encode_e4m3(const lcomm_format *format, const lcomm_kernels *kernels,
                        const float *source, lcomm_range range, uint64_t seed, uint8_t *payload) {
  encode(LCOMM_E4M3, format, kernels, source, range, seed, payload);
}

static void decode_e4m3(const lcomm_format *format, const lcomm_kernels *kernels,
                        const uint8_t *payload, lcomm_range range, float factor,
                        float *destination) {
  decode(LCOMM_E4M3, format, kernels, payload, range, factor, destination);
}

static void accumulate_e4m3(const lcomm_format *format, const lcomm_kernels *kernels,
                            const uint8_t *payload, lcomm_range range, float factor,
                            float *destination) {
  accumulate(LCOMM_E4M3, format, kernels, payload, range, factor, destination);
}

const lcomm_codec lcomm_codec_fp8e4m3 = {
    .id = LCOMM_CODEC_FP8E4M3,
    .name = "fp8e4m3",
    .summary = "8-bit float, 4 significant bits, one power-of-two scale per block",
    .blocks = {128, 64, 32},
    .bits = bits,
    .size = size_of,
    .encode = encode_e4m3,
    .decode = decode_e4m3,
    .accumulate = accumulate_e4m3,
};

static void encode_e5m2(const lcomm_format *format, const lcomm_kernels *kernels,
                        const float *source, lcomm_range range, uint64_t seed, uint8_t *payload) {
  encode(LCOMM_E5M2, format, kernels, source, range, seed, payload);
}

static void decode_e5m2(const lcomm_format *format, const lcomm_kernels *kernels,
                        const uint8_t *payload, lcomm_range range, float factor,
                        float *destination) {
  decode(LCOMM_E5M2, format, kernels, payload, range, factor, destination);
}

static void accumulate_e5m2(const lcomm_format *format, const lcomm_kernels *kernels,
                            const uint8_t *payload, lcomm_range range, float factor,
                            float *destination) {
  accumulate(LCOMM_E5M2, format, kernels, payload, range, factor, destination);
}

const lcomm_codec lcomm_codec_fp8e5m2 = {
    .id = LCOMM_CODEC_FP8E5M2,
    .name = "fp8e5m2",
    .summary = "8-bit float, 3 significant bits, one power-of-two scale per block",
    .blocks = {128, 64, 32},
    .bits = bits,
    .size = size_of,
    .encode = encode_e5m2,
    .decode = decode_e5m2,
    .accumulate = accumulate_e5m2,
};
