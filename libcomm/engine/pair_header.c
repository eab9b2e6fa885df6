/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/pair_header.h"

#include <string.h>

#include "codecs/wire.h"

enum { NUMBER_AT = 4, COUNT_AT = 8, DTYPE_AT = 16, CODEC_AT = 17, FLAGS_AT = 18, ZEROS_AT = 19 };
static const uint8_t magic[4] = {'l', 'c', 'p', 'r'};

static void put(uint8_t *bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++) {
    bytes[i] = (uint8_t)(value >> 8 * i);
  }
}

static uint64_t get(const uint8_t *bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; i++) {
    value |= (uint64_t)bytes[i] << 8 * i;
  }
  return value;
}

void lcomm_pair_header_write(const lcomm_pair_header *header, uint8_t *bytes) {
  memset(bytes, 0, LCOMM_PAIR_HEADER_SIZE);
  memcpy(bytes, magic, sizeof(magic));
  put(bytes + NUMBER_AT, header->number, 4);
  put(bytes + COUNT_AT, header->count, 8);
  bytes[DTYPE_AT] = (uint8_t)header->dtype;
  bytes[CODEC_AT] = header->codec;
  bytes[FLAGS_AT] = header->flags;
}

/* The header of a piece. */
static lcomm_wire_header wire_of(const lcomm_pair_header *header) {
  return (lcomm_wire_header){.version = LCOMM_WIRE_VERSION,
                             .codec = header->codec,
                             .dtype = (uint8_t)header->dtype,
                             .flags = header->flags};
}

/* Has the codec such blocks and such a variant? A sparse payload is none of a piece. */
static bool is_format(const lcomm_pair_header *header) {
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_header wire = wire_of(header), read;
  lcomm_wire_pack(&wire, bytes);
  return header->codec != LCOMM_CODEC_TOPK &&
         lcomm_wire_unpack(bytes, sizeof(bytes), &read, NULL) == LCOMM_OK;
}

bool lcomm_pair_header_read(const uint8_t *bytes, size_t size, lcomm_pair_header *header) {
  if (size < LCOMM_PAIR_HEADER_SIZE || memcmp(bytes, magic, sizeof(magic)) != 0 ||
      get(bytes + ZEROS_AT, LCOMM_PAIR_HEADER_SIZE - ZEROS_AT) != 0) {
    return false;
  }
  header->number = (uint32_t)get(bytes + NUMBER_AT, 4);
  header->count = get(bytes + COUNT_AT, 8);
  header->dtype = (lcomm_dtype)bytes[DTYPE_AT];
  header->codec = bytes[CODEC_AT];
  header->flags = bytes[FLAGS_AT];
  return lcomm_dtype_size(header->dtype) > 0 && is_format(header);
}

void lcomm_pair_header_set_format(lcomm_pair_header *header, const lcomm_format *format,
                                  bool checksum) {
  lcomm_wire_header wire = wire_of(header);
  wire.flags = checksum ? LCOMM_WIRE_CHECKSUM : 0;
  lcomm_wire_set_format(&wire, format);
  header->codec = wire.codec;
  header->flags = wire.flags;
}

lcomm_format lcomm_pair_header_get_format(const lcomm_pair_header *header) {
  lcomm_wire_header wire = wire_of(header);
  return lcomm_wire_get_format(&wire);
}
