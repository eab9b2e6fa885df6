/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_WIRE_H
#define LCOMM_CODECS_WIRE_H

/* The header in front of every payload, 40 bytes, little-endian:
 *
 *   offset size field
 *        0    4 magic, the bytes 'L' 'C' 'M' 'W'
 *        4    1 version, 1
 *        5    1 codec, lcomm_codec_id
 *        6    1 dtype of the operation, lcomm_dtype
 *        7    1 flags
 *                 bit 0     the checksum is set
 *                 bit 1     the payload went through the lossless stage
 *                 bits 2-3  which of the codec's block sizes, 0 the standard
 *                 bits 4-5  variant of the codec's payload
 *                 bit 6     a memory handle follows in place of the payload,
 *                           see below; only between processes of one host
 *                 bit 7     0
 *        8    4 parameters hash: plan and codec parameters of the sender
 *       12    4 operation sequence number
 *       16    8 count, elements the payload stands for
 *       24    8 payload size in bytes
 *       32    8 checksum, XXH3-64 of the payload, 0 when bit 0 is not set
 */

#include "codecs/codec.h"

enum {
  LCOMM_WIRE_HEADER_SIZE = 40,
  LCOMM_WIRE_VERSION = 1,
  LCOMM_WIRE_CHECKSUM = 1, /* flags */
  LCOMM_WIRE_ZSTD = 2
};

typedef struct lcomm_wire_header {
  uint8_t version, codec, dtype, flags;
  uint32_t parameters;
  uint32_t sequence;
  uint64_t count;
  uint64_t payload_size;
  uint64_t checksum;
} lcomm_wire_header;

/* The codec and flags of a header for payloads of `format`. */
void lcomm_wire_set_format(lcomm_wire_header *header, const lcomm_format *format);

/* The format of the payload behind a header that was unpacked: all that is
 * needed to read it. What only an encoder knows is at its standard. */
lcomm_format lcomm_wire_get_format(const lcomm_wire_header *header);

/* Write LCOMM_WIRE_HEADER_SIZE bytes. */
void lcomm_wire_pack(const lcomm_wire_header *header, uint8_t *bytes);

/* Read a header from untrusted bytes: size, magic, version, known codec and
 * dtype, no unknown flag, a block and a variant that the codec has. LCOMM_ERR_WIRE otherwise, and
 * *why (may be NULL) then points at a static phrase for people, e.g. "wrong magic". */
lcomm_status lcomm_wire_unpack(const uint8_t *bytes, size_t size, lcomm_wire_header *header,
                               const char **why);

/* A receiver that can read the sender's device gets no payload, but a handle of the
 * memory that holds it. Bit 6 of the flags, in the bytes of a packed header, says so;
 * every other field describes the payload as if it had been sent. lcomm_wire_unpack
 * refuses the bit: who accepts handles asks for it and clears it before. */
void lcomm_wire_set_handle(uint8_t *bytes);
bool lcomm_wire_has_handle(const uint8_t *bytes);
void lcomm_wire_clear_handle(uint8_t *bytes);

/* XXH3-64 of a payload. */
uint64_t lcomm_wire_checksum(const void *payload, size_t size);

#endif
