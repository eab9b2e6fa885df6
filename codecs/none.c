/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* No compression: the payload is the float32 values themselves. */

#include <string.h>

#include "codecs/codec.h"

static double bits(const lcomm_format *format) {
  (void)format;
  return 32.0;
}

static size_t size_of(const lcomm_format *format, uint64_t count) {
  (void)format;
  return (size_t)count * sizeof(float);
}

static void encode(const lcomm_format *format, const lcomm_kernels *kernels, const float *source,
                   lcomm_range range, uint64_t seed, uint8_t *payload) {
  (void)format, (void)kernels, (void)seed;
  memcpy(payload + range.first * sizeof *source, source, (size_t)range.n * sizeof *source);
}

static void decode(const lcomm_format *format, const lcomm_kernels *kernels, const uint8_t *payload,
                   lcomm_range range, float factor, float *destination) {
  (void)format;
  const float *value = (const float *)(const void *)payload + range.first;
  if (factor == 1.0f) {
    memcpy(destination, value, (size_t)range.n * sizeof *value);
  } else {
    kernels->f32_scale(value, factor, destination, (size_t)range.n);
  }
}

static void accumulate(const lcomm_format *format, const lcomm_kernels *kernels,
                       const uint8_t *payload, lcomm_range range, float factor,
                       float *destination) {
  (void)format;
  kernels->f32_add((const float *)(const void *)payload + range.first, factor, destination,
                   (size_t)range.n);
}

const lcomm_codec lcomm_codec_none = {
    .id = LCOMM_CODEC_NONE,
    .name = "none",
    .summary = "float32 as it is",
    LCOMM_DENSE_FUNCTIONS,
};
