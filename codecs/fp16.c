/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* float16, in three variants.
 *
 *   plain   count codes of 2 bytes. Half of all gradient values are below the
 *           smallest normal float16; a scale moves them up.
 *   fixed   values times 2^exponent, as with a static loss scale. Payload: the
 *           float32 2^-exponent that a decoder multiplies with, 4 zero bytes,
 *           count codes. What overflows becomes Inf and is counted as such.
 *   block   each LCOMM_BLOCK values share a power of two that brings the
 *           largest of them close to the top of the range, so that nothing
 *           finite overflows. Payload: an E8M0 byte per block, zeros up to a
 *           multiple of 8, count codes. A block with NaN or Inf decodes to NaN.
 */

#include <string.h>

#include "codecs/block.h"
#include "kernels/element.h"

enum { FIXED_HEAD = 8 };

/* 2^exponent */
static float power_of_two(int exponent) {
  return lcomm_f32_from_bits((uint32_t)(127 + exponent) << 23);
}

static size_t head_size(const lcomm_format *format, uint64_t count) {
  if (format->variant == LCOMM_FP16_FIXED) {
    return count > 0 ? FIXED_HEAD : 0;
  }
  return format->variant == LCOMM_FP16_BLOCK ? lcomm_block_codes(count, LCOMM_BLOCK, 1) : 0;
}

static size_t code_offset(const lcomm_format *format, lcomm_range range) {
  return head_size(format, range.count) + (size_t)range.first * sizeof(uint16_t);
}

static float read_factor(const lcomm_format *format, uint64_t count, const uint8_t *payload) {
  float factor = 1.0f;
  if (format->variant == LCOMM_FP16_FIXED && count > 0) {
    memcpy(&factor, payload, sizeof factor);
  }
  return factor;
}

static void write_fixed_head(const lcomm_format *format, uint8_t *payload) {
  float factor = power_of_two(-format->exponent);
  memset(payload, 0, FIXED_HEAD);
  memcpy(payload, &factor, sizeof factor);
}

static double bits(const lcomm_format *format) {
  return format->variant == LCOMM_FP16_BLOCK ? 16.0 + 8.0 / LCOMM_BLOCK : 16.0;
}

static size_t size_of(const lcomm_format *format, uint64_t count) {
  return head_size(format, count) + (size_t)count * sizeof(uint16_t);
}

static void encode(const lcomm_format *format, const lcomm_kernels *kernels, const float *source,
                   lcomm_range range, uint64_t seed, uint8_t *payload) {
  (void)seed;
  uint16_t *code = (uint16_t *)(void *)(payload + code_offset(format, range));
  if (format->variant == LCOMM_FP16_BLOCK) {
    kernels->f16_block.f32_to_f16_block(source, code, payload + range.first / LCOMM_BLOCK,
                                        (size_t)range.n);
    lcomm_block_pad(range, LCOMM_BLOCK, 1, payload);
    return;
  }
  bool fixed = format->variant == LCOMM_FP16_FIXED;
  if (fixed && range.n > 0) { /* with every range, so that each can be decoded by itself */
    write_fixed_head(format, payload);
  }
  kernels->half.f32_to_f16(source, fixed ? power_of_two(format->exponent) : 1.0f, code,
                           (size_t)range.n);
}

static void decode(const lcomm_format *format, const lcomm_kernels *kernels, const uint8_t *payload,
                   lcomm_range range, float factor, float *destination) {
  const uint16_t *code = (const uint16_t *)(const void *)(payload + code_offset(format, range));
  if (format->variant == LCOMM_FP16_BLOCK) {
    kernels->f16_block.f16_block_to_f32(code, payload + range.first / LCOMM_BLOCK, factor,
                                        destination, (size_t)range.n);
  } else {
    kernels->half.f16_to_f32(code, factor * read_factor(format, range.count, payload), destination,
                             (size_t)range.n);
  }
}

static void accumulate(const lcomm_format *format, const lcomm_kernels *kernels,
                       const uint8_t *payload, lcomm_range range, float factor,
                       float *destination) {
  const uint16_t *code = (const uint16_t *)(const void *)(payload + code_offset(format, range));
  if (format->variant == LCOMM_FP16_BLOCK) {
    kernels->f16_block.f16_block_add(code, payload + range.first / LCOMM_BLOCK, factor, destination,
                                     (size_t)range.n);
  } else {
    kernels->half.f16_add(code, factor * read_factor(format, range.count, payload), destination,
                          (size_t)range.n);
  }
}

const lcomm_codec lcomm_codec_fp16 = {
    .id = LCOMM_CODEC_FP16,
    .name = "fp16",
    .summary = "16-bit float; gradients want scale=block or scale=2^N",
    LCOMM_DENSE_FUNCTIONS,
};
