/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* float32 as it is. Payload: count little-endian float32. */

#include <string.h>

#include "codecs/codec.h"

static size_t size_of(uint64_t count) {
  return (size_t)count * sizeof(float);
}

static void encode(const lcomm_kernels *kernels, const float *source, uint64_t count,
                   uint64_t first, uint64_t n, uint8_t *payload) {
  (void)kernels;
  (void)count;
  if (n > 0)
    memcpy((float *)payload + first, source, (size_t)n * sizeof *source);
}

/* With a factor of 1 every bit arrives, those of NaN included. */
static void decode(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                   uint64_t first, uint64_t n, float factor, float *destination) {
  (void)count;
  const float *value = (const float *)payload + first;
  if (n == 0)
    return;
  if (factor == 1.0f)
    memcpy(destination, value, (size_t)n * sizeof *value);
  else
    kernels->f32_scale(value, factor, destination, (size_t)n);
}

static void accumulate(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                       uint64_t first, uint64_t n, float factor, float *destination) {
  (void)count;
  kernels->f32_add((const float *)payload + first, factor, destination, (size_t)n);
}

const lcomm_codec lcomm_codec_none = {
    .id = LCOMM_CODEC_NONE,
    .name = "none",
    .summary = "float32, exact",
    .bits = 32.0,
    .size = size_of,
    .encode = encode,
    .decode = decode,
    .accumulate = accumulate,
};
