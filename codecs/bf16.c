/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The upper half of float32, rounded to nearest even.
 * Payload: count little-endian 16-bit codes. */

#include "codecs/codec.h"

static size_t size_of(uint64_t count) {
  return (size_t)count * sizeof(uint16_t);
}

static void encode(const lcomm_kernels *kernels, const float *source, uint64_t count,
                   uint64_t first, uint64_t n, uint8_t *payload) {
  (void)count;
  kernels->f32_to_bf16(source, (uint16_t *)payload + first, (size_t)n);
}

static void decode(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                   uint64_t first, uint64_t n, float factor, float *destination) {
  (void)count;
  kernels->bf16_to_f32((const uint16_t *)payload + first, factor, destination, (size_t)n);
}

static void accumulate(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                       uint64_t first, uint64_t n, float factor, float *destination) {
  (void)count;
  kernels->bf16_add((const uint16_t *)payload + first, factor, destination, (size_t)n);
}

const lcomm_codec lcomm_codec_bf16 = {
    .id = LCOMM_CODEC_BF16,
    .name = "bf16",
    .summary = "bfloat16, 8 significant bits, the range of float32",
    .bits = 16.0,
    .size = size_of,
    .encode = encode,
    .decode = decode,
    .accumulate = accumulate,
};
