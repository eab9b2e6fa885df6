/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* bfloat16: the upper half of a float32, rounded to nearest even.
 *
 * Payload: count codes of 2 bytes.
 */

#include "codecs/codec.h"

static double bits(const lcomm_format *format) {
  (void)format;
  return 16.0;
}

static size_t size_of(const lcomm_format *format, uint64_t count) {
  (void)format;
  return (size_t)count * sizeof(uint16_t);
}

static void encode(const lcomm_format *format, const lcomm_kernels *kernels, const float *source,
                   lcomm_range range, uint64_t seed, uint8_t *payload) {
  (void)format, (void)seed;
  kernels->half.f32_to_bf16(source, (uint16_t *)payload + range.first, (size_t)range.n);
}

static void decode(const lcomm_format *format, const lcomm_kernels *kernels, const uint8_t *payload,
                   lcomm_range range, float factor, float *destination) {
  (void)format;
  kernels->half.bf16_to_f32((const uint16_t *)payload + range.first, factor, destination,
                            (size_t)range.n);
}

static void accumulate(const lcomm_format *format, const lcomm_kernels *kernels,
                       const uint8_t *payload, lcomm_range range, float factor,
                       float *destination) {
  (void)format;
  kernels->half.bf16_add((const uint16_t *)payload + range.first, factor, destination,
                         (size_t)range.n);
}

static void sum(const lcomm_format *format, const lcomm_kernels *kernels, lcomm_source *sources,
                size_t count, lcomm_range range, float factor, float *destination) {
  (void)format;
  kernels->bf16_sum(sources, count, (size_t)range.first, factor, destination, (size_t)range.n);
}

const lcomm_codec lcomm_codec_bf16 = {
    .id = LCOMM_CODEC_BF16,
    .name = "bf16",
    .summary = "16-bit float with the range of float32",
    LCOMM_DENSE_FUNCTIONS,
    .sum = sum,
};
