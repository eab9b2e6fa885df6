/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/wire.h"

#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#include "codecs/little_endian.h"

static const uint8_t magic[4] = {'L', 'C', 'M', 'W'};

static bool is_dtype(uint8_t number) {
  switch ((lcomm_dtype)number) {
  case LCOMM_FLOAT32:
  case LCOMM_FLOAT16:
  case LCOMM_BFLOAT16:
  case LCOMM_FLOAT64:
  case LCOMM_INT32:
  case LCOMM_INT64:
  case LCOMM_INT8:
  case LCOMM_UINT8:
    return true;
  }
  return false;
}

/* Byte 7 of a header, beside LCOMM_WIRE_CHECKSUM and LCOMM_WIRE_ZSTD. */
enum {
  FLAGS_OFFSET = 7,
  BLOCK_SHIFT = 2,
  BLOCK_MASK = 3,
  VARIANT_SHIFT = 4,
  VARIANT_MASK = 3,
  FORMAT_FLAGS = 0x3f,
  HANDLE_FLAG = 0x40
};

static unsigned block_index(unsigned flags) {
  return flags >> BLOCK_SHIFT & BLOCK_MASK;
}

static unsigned variant_of(unsigned flags) {
  return flags >> VARIANT_SHIFT & VARIANT_MASK;
}

static bool has_variant(const lcomm_codec *codec, unsigned variant) {
  if (codec->id == LCOMM_CODEC_FP16) {
    return variant <= LCOMM_FP16_BLOCK;
  }
  return variant <= (codec->id == LCOMM_CODEC_TOPK ? LCOMM_TOPK_INT8 : LCOMM_VARIANT_PLAIN);
}

void lcomm_wire_set_format(lcomm_wire_header *header, const lcomm_format *format) {
  unsigned index = 0, flags = header->flags & LCOMM_WIRE_CHECKSUM;
  while (index < BLOCK_MASK && format->codec->blocks[index] != format->block) {
    index++;
  }
  flags |= format->zstd ? LCOMM_WIRE_ZSTD : 0;
  flags |= index << BLOCK_SHIFT | (unsigned)format->variant << VARIANT_SHIFT;
  header->codec = (uint8_t)format->codec->id;
  header->flags = (uint8_t)flags;
}

lcomm_format lcomm_wire_get_format(const lcomm_wire_header *header) {
  lcomm_format format = lcomm_format_of(lcomm_codec_by_id(header->codec));
  format.block = format.codec->blocks[block_index(header->flags)];
  format.variant = (uint8_t)variant_of(header->flags);
  format.zstd = (header->flags & LCOMM_WIRE_ZSTD) != 0;
  return format;
}

void lcomm_wire_pack(const lcomm_wire_header *header, uint8_t *bytes) {
  memcpy(bytes, magic, sizeof magic);
  bytes[4] = header->version;
  bytes[5] = header->codec;
  bytes[6] = header->dtype;
  bytes[FLAGS_OFFSET] = header->flags;
  lcomm_le_put(bytes + 8, header->parameters, 4);
  lcomm_le_put(bytes + 12, header->sequence, 4);
  lcomm_le_put(bytes + 16, header->count, 8);
  lcomm_le_put(bytes + 24, header->payload_size, 8);
  lcomm_le_put(bytes + 32, header->checksum, 8);
}

/* NULL when the bytes are a header. */
static const char *refusal(const uint8_t *bytes, size_t size) {
  if (size < LCOMM_WIRE_HEADER_SIZE) {
    return "fewer bytes than a header";
  }
  if (memcmp(bytes, magic, sizeof magic) != 0) {
    return "wrong magic";
  }
  if (bytes[4] != LCOMM_WIRE_VERSION) {
    return "unknown wire version";
  }
  if (!lcomm_codec_by_id(bytes[5])) {
    return "unknown codec";
  }
  if (!is_dtype(bytes[6])) {
    return "unknown dtype";
  }
  if ((bytes[FLAGS_OFFSET] & ~FORMAT_FLAGS) != 0) {
    return "unknown flag";
  }
  const lcomm_codec *codec = lcomm_codec_by_id(bytes[5]);
  if (block_index(bytes[FLAGS_OFFSET]) > 0 &&
      codec->blocks[block_index(bytes[FLAGS_OFFSET])] == 0) {
    return "a block size that the codec does not have";
  }
  if (!has_variant(codec, variant_of(bytes[FLAGS_OFFSET]))) {
    return "a variant that the codec does not have";
  }
  if ((bytes[FLAGS_OFFSET] & LCOMM_WIRE_CHECKSUM) == 0 && lcomm_le_get(bytes + 32, 8) != 0) {
    return "a checksum without its flag";
  }
  return NULL;
}

lcomm_status lcomm_wire_unpack(const uint8_t *bytes, size_t size, lcomm_wire_header *header,
                               const char **why) {
  const char *reason = refusal(bytes, size);
  if (reason) {
    if (why) {
      *why = reason;
    }
    return LCOMM_ERR_WIRE;
  }
  *header = (lcomm_wire_header){
      .version = bytes[4],
      .codec = bytes[5],
      .dtype = bytes[6],
      .flags = bytes[FLAGS_OFFSET],
      .parameters = (uint32_t)lcomm_le_get(bytes + 8, 4),
      .sequence = (uint32_t)lcomm_le_get(bytes + 12, 4),
      .count = lcomm_le_get(bytes + 16, 8),
      .payload_size = lcomm_le_get(bytes + 24, 8),
      .checksum = lcomm_le_get(bytes + 32, 8),
  };
  return LCOMM_OK;
}

void lcomm_wire_set_handle(uint8_t *bytes) {
  bytes[FLAGS_OFFSET] |= HANDLE_FLAG;
}

bool lcomm_wire_has_handle(const uint8_t *bytes) {
  return (bytes[FLAGS_OFFSET] & HANDLE_FLAG) != 0;
}

void lcomm_wire_clear_handle(uint8_t *bytes) {
  bytes[FLAGS_OFFSET] &= (uint8_t)~HANDLE_FLAG;
}

uint64_t lcomm_wire_checksum(const void *payload, size_t size) {
  return XXH3_64bits(payload, size);
}
