/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SHARDS_SHARD_HEADER_H
#define LCOMM_SHARDS_SHARD_HEADER_H

/* What a message about a piece begins with. The payload of a contribution and of a result is the
 * next message of the queue; a notice of a collector, and what an owner asks it for
 * (node_quorum.h), have none. Little-endian:
 *
 *   0  u32  "lcsh"
 *   4  u8   version, 2
 *   5  u8   kind: 1 contribution, 2 result, 3 notice, 4 request
 *   6  u16  zero
 *   8  u32  number of the vector
 *  12  u32  how many ranks are in the set
 *  16  u64  round
 *  24  u64  of a result: rounds that the owner had closed, of which this is one of the last
 *           LCOMM_SHARD_KEPT; else 0
 *  32  u64  bytes of the payload, at least 1; 0 where there is none
 *  40  u32  owner of the piece
 *  44  u32  zero
 *  48       set of ranks, a bit for each, rank 0 lowest: whose sum a contribution is, who was used
 *           in a result, who is there by a notice; empty in a request */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum lcomm_shard_kind {
  LCOMM_SHARD_CONTRIBUTION = 1,
  LCOMM_SHARD_RESULT = 2,
  LCOMM_SHARD_NOTICE = 3,
  LCOMM_SHARD_REQUEST = 4
} lcomm_shard_kind;

enum {
  LCOMM_SHARD_HEADER_FIXED = 48,
  LCOMM_SHARD_KEPT = 16 /* results that an owner keeps for ranks that are late */
};

typedef struct lcomm_shard_header {
  lcomm_shard_kind kind;
  uint32_t vector, owner;
  uint32_t used; /* ranks in the set */
  uint64_t round, closed;
  uint64_t size;
  const uint8_t *mask; /* the set, of lcomm_quorum_mask_size(ranks) bytes; NULL: empty */
} lcomm_shard_header;

/* Bytes of a header among so many ranks. */
size_t lcomm_shard_header_size(int ranks);

void lcomm_shard_header_write(const lcomm_shard_header *header, int ranks, uint8_t *bytes);

/* All of `size` bytes, which may be any. False for bytes that no rank writes. The mask lies in
 * `bytes`. */
bool lcomm_shard_header_read(const uint8_t *bytes, size_t size, int ranks,
                             lcomm_shard_header *header);

#endif
