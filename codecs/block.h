/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_BLOCK_H
#define LCOMM_CODECS_BLOCK_H

/* Payloads of block formats: scales, zeros up to a multiple of 8, codes. */

#include <string.h>

#include "codecs/codec.h"

static inline size_t lcomm_block_count(uint64_t count, size_t block) {
  return (size_t)(count / block + (count % block != 0));
}

/* Where the codes begin. */
static inline size_t lcomm_block_codes(uint64_t count, size_t block, size_t scale_size) {
  return (lcomm_block_count(count, block) * scale_size + 7) / 8 * 8;
}

/* Bytes of `count` codes of 1 or 2 bits. */
static inline size_t lcomm_lowbit_codes_size(unsigned width, uint64_t count) {
  unsigned in_byte = 8 / width;
  return (size_t)(count / in_byte + (count % in_byte != 0));
}

/* Zeros between scales and codes, written with the last range. */
static inline void lcomm_block_pad(lcomm_range range, size_t block, size_t scale_size,
                                   uint8_t *payload) {
  size_t scales = lcomm_block_count(range.count, block) * scale_size;
  if (range.first + range.n == range.count) {
    memset(payload + scales, 0, lcomm_block_codes(range.count, block, scale_size) - scales);
  }
}

#endif
