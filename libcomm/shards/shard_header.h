/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SHARDS_SHARD_HEADER_H
#define LCOMM_SHARDS_SHARD_HEADER_H

/* What a contribution to a piece, and its result, begin with. The payload is the next message of
 * the queue. Little-endian:
 *
 *   0  u32  "lcsh"
 *   4  u8   version, 1
 *   5  u8   kind: 1 contribution, 2 result
 *   6  u16  zero
 *   8  u32  number of the vector
 *  12  u32  how many ranks the result is of; 0 in a contribution
 *  16  u64  round
 *  24  u64  rounds that the owner had closed, of which this is one of the last LCOMM_SHARD_KEPT; 0
 *           in a contribution
 *  32  u64  bytes of the payload, at least 1
 *  40       who was used, a bit for each rank, rank 0 lowest; zeros in a contribution */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum lcomm_shard_kind {
  LCOMM_SHARD_CONTRIBUTION = 1,
  LCOMM_SHARD_RESULT = 2
} lcomm_shard_kind;

enum {
  LCOMM_SHARD_HEADER_FIXED = 40,
  LCOMM_SHARD_KEPT = 16 /* results that an owner keeps for ranks that are late */
};

typedef struct lcomm_shard_header {
  lcomm_shard_kind kind;
  uint32_t vector;
  uint32_t used;
  uint64_t round, closed;
  uint64_t size;
  const uint8_t *mask; /* lcomm_quorum_mask_size(ranks) bytes; NULL in a contribution */
} lcomm_shard_header;

/* Bytes of a header among so many ranks. */
size_t lcomm_shard_header_size(int ranks);

void lcomm_shard_header_write(const lcomm_shard_header *header, int ranks, uint8_t *bytes);

/* All of `size` bytes, which may be any. False for bytes that no rank writes. The mask lies in
 * `bytes`. */
bool lcomm_shard_header_read(const uint8_t *bytes, size_t size, int ranks,
                             lcomm_shard_header *header);

#endif
