/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* IEEE 754 binary16. Has no scale: values above 65519 become infinite, values
 * below 2^-25 become 0.
 * Payload: count little-endian 16-bit codes. */

#include "codecs/codec.h"

static size_t size_of(uint64_t count) {
  return (size_t)count * sizeof(uint16_t);
}

static void encode(const lcomm_kernels *kernels, const float *source, uint64_t count,
                   uint64_t first, uint64_t n, uint8_t *payload) {
  (void)count;
  kernels->f32_to_f16(source, (uint16_t *)payload + first, (size_t)n);
}

static void decode(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                   uint64_t first, uint64_t n, float factor, float *destination) {
  (void)count;
  kernels->f16_to_f32((const uint16_t *)payload + first, factor, destination, (size_t)n);
}

static void accumulate(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                       uint64_t first, uint64_t n, float factor, float *destination) {
  (void)count;
  kernels->f16_add((const uint16_t *)payload + first, factor, destination, (size_t)n);
}

const lcomm_codec lcomm_codec_fp16 = {
    .id = LCOMM_CODEC_FP16,
    .name = "fp16",
    .summary = "IEEE half precision, 11 significant bits, finite up to 65504",
    .bits = 16.0,
    .size = size_of,
    .encode = encode,
    .decode = decode,
    .accumulate = accumulate,
};
