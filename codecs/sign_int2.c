/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One bit per value (sign) and two (int2), with one power-of-two scale per block.
 *
 * Payload, with blocks = ceil(count / block):
 *   blocks bytes                      scales, one per block: 2^(byte-127), 0 for 0, NaN for 255
 *   0..7 bytes                        zeros, up to a multiple of 8
 *   ceil(count / 8), ceil(count / 4)  codes, the first element of a byte in its lowest bits
 *
 * sign sends scale or -scale, where the scale is next to the root mean square of the block; int2
 * sends scale, 4 * scale or their negatives, where 4 * scale is half to all of the largest
 * magnitude. A block of zeros, or whose largest magnitude is below 2^-119, is sent as zeros; a
 * block with a NaN or an Inf decodes to NaN. Much of a value is error, so a policy gives both error
 * feedback unless told otherwise. Both codecs share all functions: the format says which of them
 * it is.
 */

#include "codecs/block.h"

static lcomm_lowbit number_of(const lcomm_format *format) {
  return format->codec->id == LCOMM_CODEC_SIGN ? LCOMM_SIGN : LCOMM_INT2;
}

/* Bits of a code. */
static unsigned width_of(const lcomm_format *format) {
  return number_of(format) == LCOMM_SIGN ? 1 : 2;
}

static double bits(const lcomm_format *format) {
  return width_of(format) + 8.0 / format->block;
}

static size_t code_offset(const lcomm_format *format, lcomm_range range) {
  return lcomm_block_codes(range.count, format->block, 1) +
         lcomm_lowbit_codes_size(width_of(format), range.first);
}

static size_t size_of(const lcomm_format *format, uint64_t count) {
  return lcomm_block_codes(count, format->block, 1) +
         lcomm_lowbit_codes_size(width_of(format), count);
}

static void encode(const lcomm_format *format, const lcomm_kernels *kernels, const float *source,
                   lcomm_range range, uint64_t seed, uint8_t *payload) {
  (void)seed;
  kernels->f32_to_lowbit[number_of(format)](source, format->block,
                                            payload + code_offset(format, range),
                                            payload + range.first / format->block, (size_t)range.n);
  lcomm_block_pad(range, format->block, 1, payload);
}

static void decode(const lcomm_format *format, const lcomm_kernels *kernels, const uint8_t *payload,
                   lcomm_range range, float factor, float *destination) {
  kernels->lowbit_to_f32[number_of(format)](payload + code_offset(format, range),
                                            payload + range.first / format->block, format->block,
                                            factor, destination, (size_t)range.n);
}

static void accumulate(const lcomm_format *format, const lcomm_kernels *kernels,
                       const uint8_t *payload, lcomm_range range, float factor,
                       float *destination) {
  kernels->lowbit_add[number_of(format)](payload + code_offset(format, range),
                                         payload + range.first / format->block, format->block,
                                         factor, destination, (size_t)range.n);
}

const lcomm_codec lcomm_codec_sign = {
    .id = LCOMM_CODEC_SIGN,
    .name = "sign",
    .summary = "1-bit signs, one power-of-two scale per block",
    .blocks = {128, 64, 32},
    .feeds_back = true,
    LCOMM_DENSE_FUNCTIONS,
};

const lcomm_codec lcomm_codec_int2 = {
    .id = LCOMM_CODEC_INT2,
    .name = "int2",
    .summary = "2-bit numbers of four levels, one power-of-two scale per block",
    .blocks = {128, 64, 32},
    .feeds_back = true,
    LCOMM_DENSE_FUNCTIONS,
};
