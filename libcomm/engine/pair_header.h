/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAIR_HEADER_H
#define LCOMM_ENGINE_PAIR_HEADER_H

/* What a message between two ranks begins with, little-endian:
 *
 *   0 "lcpr"   4 number u32   8 count u64   16 data type u8   17 codec u8   18 flags u8   19 zeros
 *   24 the data, if it is short
 *
 * Codec and flags are those of the headers of its pieces (codecs/wire.h). Where both are 0 its
 * pieces have no headers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codecs/codec.h"

/* With the data of a short message. */
enum { LCOMM_PAIR_HEADER_SIZE = 24, LCOMM_PAIR_SHORT_MAX = 4096 };

typedef struct lcomm_pair_header {
  uint64_t count; /* of elements */
  lcomm_dtype dtype;
  uint32_t number;      /* of messages in this direction of the pair, this one is that */
  uint8_t codec, flags; /* of its pieces */
} lcomm_pair_header;

void lcomm_pair_header_write(const lcomm_pair_header *header, uint8_t *bytes);

/* `size` bytes of a peer, any bytes. False: they are no such header. */
bool lcomm_pair_header_read(const uint8_t *bytes, size_t size, lcomm_pair_header *header);

/* The codec and flags of pieces in `format`. */
void lcomm_pair_header_set_format(lcomm_pair_header *header, const lcomm_format *format,
                                  bool checksum);

/* The format of one that was read. */
lcomm_format lcomm_pair_header_get_format(const lcomm_pair_header *header);

/* Do its pieces have headers? */
static inline bool lcomm_pair_header_is_framed(const lcomm_pair_header *header) {
  return header->codec != 0 || header->flags != 0;
}

/* Is it one whose data comes with its header? */
static inline bool lcomm_pair_is_short(const lcomm_pair_header *header) {
  uint64_t most = LCOMM_PAIR_SHORT_MAX - LCOMM_PAIR_HEADER_SIZE;
  bool fits = header->count <= most / lcomm_dtype_size(header->dtype);
  return header->count == 0 || (fits && !lcomm_pair_header_is_framed(header));
}

#endif
