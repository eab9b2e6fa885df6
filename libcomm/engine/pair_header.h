/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAIR_HEADER_H
#define LCOMM_ENGINE_PAIR_HEADER_H

/* What a message between two ranks begins with, little-endian:
 *
 *   0 "lcpr"   4 number u32   8 count u64   16 data type u8   17 zeros   24 the data, if it is
 * short
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"

/* With the data of a short message. */
enum { LCOMM_PAIR_HEADER_SIZE = 24, LCOMM_PAIR_SHORT_MAX = 4096 };

typedef struct lcomm_pair_header {
  uint64_t count; /* of elements */
  lcomm_dtype dtype;
  uint32_t number; /* of messages in this direction of the pair, this one is that */
} lcomm_pair_header;

void lcomm_pair_header_write(const lcomm_pair_header *header, uint8_t *bytes);

/* `size` bytes of a peer, any bytes. False: they are no such header. */
bool lcomm_pair_header_read(const uint8_t *bytes, size_t size, lcomm_pair_header *header);

/* Is so much data short? */
static inline bool lcomm_pair_is_short(uint64_t size) {
  return size <= LCOMM_PAIR_SHORT_MAX - LCOMM_PAIR_HEADER_SIZE;
}

#endif
