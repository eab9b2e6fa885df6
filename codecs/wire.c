/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/wire.h"

#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#include "codecs/codec.h"

static const uint8_t magic[4] = {'L', 'C', 'M', 'W'};

/* Byte by byte, so that the format does not depend on the machine. */
static void put(uint8_t *bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++)
    bytes[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; i++)
    value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

static bool is_dtype(uint8_t number) {
  switch ((lcomm_dtype)number) {
  case LCOMM_FLOAT32:
  case LCOMM_FLOAT16:
  case LCOMM_BFLOAT16:
    return true;
  }
  return false;
}

void lcomm_wire_pack(const lcomm_wire_header *header, uint8_t *bytes) {
  memcpy(bytes, magic, sizeof magic);
  bytes[4] = header->version;
  bytes[5] = header->codec;
  bytes[6] = header->dtype;
  bytes[7] = header->flags;
  put(bytes + 8, header->parameters, 4);
  put(bytes + 12, header->sequence, 4);
  put(bytes + 16, header->count, 8);
  put(bytes + 24, header->payload_size, 8);
  put(bytes + 32, header->checksum, 8);
}

/* NULL when the bytes are a header. */
static const char *refusal(const uint8_t *bytes, size_t size) {
  if (size < LCOMM_WIRE_HEADER_SIZE)
    return "fewer bytes than a header";
  if (memcmp(bytes, magic, sizeof magic) != 0)
    return "wrong magic";
  if (bytes[4] != LCOMM_WIRE_VERSION)
    return "unknown wire version";
  if (lcomm_codec_by_id(bytes[5]) == NULL)
    return "unknown codec";
  if (!is_dtype(bytes[6]))
    return "unknown dtype";
  if ((bytes[7] & ~LCOMM_WIRE_CHECKSUM) != 0)
    return "unknown flag";
  if ((bytes[7] & LCOMM_WIRE_CHECKSUM) == 0 && get(bytes + 32, 8) != 0)
    return "a checksum without its flag";
  return NULL;
}

lcomm_status lcomm_wire_unpack(const uint8_t *bytes, size_t size, lcomm_wire_header *header,
                               const char **why) {
  const char *reason = refusal(bytes, size);
  if (reason != NULL) {
    if (why != NULL)
      *why = reason;
    return LCOMM_ERR_WIRE;
  }
  *header = (lcomm_wire_header){
      .version = bytes[4],
      .codec = bytes[5],
      .dtype = bytes[6],
      .flags = bytes[7],
      .parameters = (uint32_t)get(bytes + 8, 4),
      .sequence = (uint32_t)get(bytes + 12, 4),
      .count = get(bytes + 16, 8),
      .payload_size = get(bytes + 24, 8),
      .checksum = get(bytes + 32, 8),
  };
  return LCOMM_OK;
}

uint64_t lcomm_wire_checksum(const void *payload, size_t size) {
  return XXH3_64bits(payload, size);
}
