/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* 8-bit floating point with one power-of-two scale per block.
 *
 * Payload, with blocks = ceil(count / LCOMM_BLOCK):
 *   blocks bytes   E8M0 scales, one per block
 *   0..7 bytes     zeros, up to a multiple of 8
 *   count bytes    codes
 *
 * Both formats share everything but the kernel: the functions of this file
 * take the format first, and each codec binds it.
 */

#include <string.h>

#include "codecs/codec.h"

static size_t block_count(uint64_t count) {
  return (size_t)(count / LCOMM_BLOCK + (count % LCOMM_BLOCK != 0));
}

static size_t code_offset(uint64_t count) {
  return (block_count(count) + 7) / 8 * 8;
}

static size_t size_of(uint64_t count) {
  return code_offset(count) + (size_t)count;
}

static void encode(lcomm_fp8 format, const lcomm_kernels *kernels, const float *source,
                   uint64_t count, uint64_t first, uint64_t n, uint8_t *payload) {
  size_t codes = code_offset(count), blocks = block_count(count);
  kernels->f32_to_fp8[format](source, payload + codes + first, payload + first / LCOMM_BLOCK,
                              (size_t)n);
  if (first + n == count)
    memset(payload + blocks, 0, codes - blocks);
}

static void decode(lcomm_fp8 format, const lcomm_kernels *kernels, const uint8_t *payload,
                   uint64_t count, uint64_t first, uint64_t n, float factor, float *destination) {
  kernels->fp8_to_f32[format](payload + code_offset(count) + first, payload + first / LCOMM_BLOCK,
                              factor, destination, (size_t)n);
}

static void accumulate(lcomm_fp8 format, const lcomm_kernels *kernels, const uint8_t *payload,
                       uint64_t count, uint64_t first, uint64_t n, float factor,
                       float *destination) {
  kernels->fp8_add[format](payload + code_offset(count) + first, payload + first / LCOMM_BLOCK,
                           factor, destination, (size_t)n);
}

static void encode_e4m3(const lcomm_kernels *kernels, const float *source, uint64_t count,
                        uint64_t first, uint64_t n, uint8_t *payload) {
  encode(LCOMM_E4M3, kernels, source, count, first, n, payload);
}

static void decode_e4m3(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                        uint64_t first, uint64_t n, float factor, float *destination) {
  decode(LCOMM_E4M3, kernels, payload, count, first, n, factor, destination);
}

static void accumulate_e4m3(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                            uint64_t first, uint64_t n, float factor, float *destination) {
  accumulate(LCOMM_E4M3, kernels, payload, count, first, n, factor, destination);
}

const lcomm_codec lcomm_codec_fp8e4m3 = {
    .id = LCOMM_CODEC_FP8E4M3,
    .name = "fp8e4m3",
    .summary = "8-bit float, 4 significant bits, one power-of-two scale per 128 values",
    .bits = 8.0 + 8.0 / LCOMM_BLOCK,
    .size = size_of,
    .encode = encode_e4m3,
    .decode = decode_e4m3,
    .accumulate = accumulate_e4m3,
};

static void encode_e5m2(const lcomm_kernels *kernels, const float *source, uint64_t count,
                        uint64_t first, uint64_t n, uint8_t *payload) {
  encode(LCOMM_E5M2, kernels, source, count, first, n, payload);
}

static void decode_e5m2(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                        uint64_t first, uint64_t n, float factor, float *destination) {
  decode(LCOMM_E5M2, kernels, payload, count, first, n, factor, destination);
}

static void accumulate_e5m2(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                            uint64_t first, uint64_t n, float factor, float *destination) {
  accumulate(LCOMM_E5M2, kernels, payload, count, first, n, factor, destination);
}

const lcomm_codec lcomm_codec_fp8e5m2 = {
    .id = LCOMM_CODEC_FP8E5M2,
    .name = "fp8e5m2",
    .summary = "8-bit float, 3 significant bits, one power-of-two scale per 128 values",
    .bits = 8.0 + 8.0 / LCOMM_BLOCK,
    .size = size_of,
    .encode = encode_e5m2,
    .decode = decode_e5m2,
    .accumulate = accumulate_e5m2,
};
