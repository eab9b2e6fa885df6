/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_ENTROPY_H
#define LCOMM_TOOLS_CODEC_CODEC_ENTROPY_H

/* How short a payload could be made by a coder that codes its symbols one by
 * one and knows how often each occurs in that payload (order-0 entropy). Coders
 * that adapt, or see repetitions, may do better.
 *
 * The symbols are those of the lossless stage: codes of 2 and 4 bytes as planes
 * of bytes, rotated by one bit (kernels.h, split2); 8-bit codes and int4
 * nibbles; scales as bytes, float32 scales as planes. Of the sparse codec, k
 * positions among n take n*H(k/n) bits, H the binary entropy, as many as
 * positions without any order need; its values count as above. */

#include "codecs/codec.h"

/* Bits of all symbols of a histogram of 256. */
double lcomm_entropy_bits(const uint64_t histogram[256]);

/* Bits of `kept` positions among `count`. */
double lcomm_entropy_positions(uint64_t kept, uint64_t count);

/* Bits of a payload of `size` bytes for `count` values. */
double lcomm_entropy_payload(const lcomm_format *format, const uint8_t *payload, size_t size,
                             uint64_t count);

#endif
