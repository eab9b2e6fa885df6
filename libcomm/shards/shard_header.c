/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/shards/shard_header.h"

#include <string.h>

#include "codecs/little_endian.h"
#include "libcomm/shards/quorum.h"

enum {
  VERSION = 2,
  VERSION_AT = 4,
  KIND_AT = 5,
  ZERO_AT = 6,
  VECTOR_AT = 8,
  USED_AT = 12,
  ROUND_AT = 16,
  CLOSED_AT = 24,
  SIZE_AT = 32,
  OWNER_AT = 40,
  ZEROS_AT = 44
};
static const uint8_t magic[4] = {'l', 'c', 's', 'h'};

size_t lcomm_shard_header_size(int ranks) {
  return LCOMM_SHARD_HEADER_FIXED + lcomm_quorum_mask_size(ranks);
}

void lcomm_shard_header_write(const lcomm_shard_header *header, int ranks, uint8_t *bytes) {
  memset(bytes, 0, lcomm_shard_header_size(ranks));
  memcpy(bytes, magic, sizeof(magic));
  bytes[VERSION_AT] = VERSION;
  bytes[KIND_AT] = (uint8_t)header->kind;
  lcomm_le_put(bytes + VECTOR_AT, header->vector, 4);
  lcomm_le_put(bytes + USED_AT, header->used, 4);
  lcomm_le_put(bytes + ROUND_AT, header->round, 8);
  lcomm_le_put(bytes + CLOSED_AT, header->closed, 8);
  lcomm_le_put(bytes + SIZE_AT, header->size, 8);
  lcomm_le_put(bytes + OWNER_AT, header->owner, 4);
  if (header->mask) {
    memcpy(bytes + LCOMM_SHARD_HEADER_FIXED, header->mask, lcomm_quorum_mask_size(ranks));
  }
}

static bool is_set_of_ranks(const uint8_t *mask, int ranks) {
  int beyond = ranks % 8;
  return beyond == 0 || mask[ranks / 8] >> beyond == 0;
}

static bool is_result(const lcomm_shard_header *it) {
  return it->size > 0 && it->closed > it->round && it->closed - it->round <= LCOMM_SHARD_KEPT;
}

static bool is_of_its_kind(const lcomm_shard_header *it) {
  switch (it->kind) {
  case LCOMM_SHARD_CONTRIBUTION:
    return it->used > 0 && it->size > 0 && it->closed == 0;
  case LCOMM_SHARD_RESULT:
    return it->used > 0 && is_result(it);
  case LCOMM_SHARD_NOTICE:
    return it->used > 0 && it->size == 0 && it->closed == 0;
  case LCOMM_SHARD_REQUEST:
    return it->used == 0 && it->size == 0 && it->closed == 0;
  default:
    return false;
  }
}

bool lcomm_shard_header_read(const uint8_t *bytes, size_t size, int ranks,
                             lcomm_shard_header *header) {
  if (size != lcomm_shard_header_size(ranks) || memcmp(bytes, magic, sizeof(magic)) != 0 ||
      bytes[VERSION_AT] != VERSION || lcomm_le_get(bytes + ZERO_AT, 2) != 0 ||
      lcomm_le_get(bytes + ZEROS_AT, 4) != 0) {
    return false;
  }
  *header = (lcomm_shard_header){.kind = (lcomm_shard_kind)bytes[KIND_AT],
                                 .vector = (uint32_t)lcomm_le_get(bytes + VECTOR_AT, 4),
                                 .owner = (uint32_t)lcomm_le_get(bytes + OWNER_AT, 4),
                                 .used = (uint32_t)lcomm_le_get(bytes + USED_AT, 4),
                                 .round = lcomm_le_get(bytes + ROUND_AT, 8),
                                 .closed = lcomm_le_get(bytes + CLOSED_AT, 8),
                                 .size = lcomm_le_get(bytes + SIZE_AT, 8),
                                 .mask = bytes + LCOMM_SHARD_HEADER_FIXED};
  return header->owner < (uint32_t)ranks && is_set_of_ranks(header->mask, ranks) &&
         header->used == (uint32_t)lcomm_quorum_mask_count(header->mask, ranks) &&
         is_of_its_kind(header);
}
