/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SHARDS_SHARD_ROLES_H
#define LCOMM_SHARDS_SHARD_ROLES_H

/* Who owns pieces of vectors, and who contributes to them. With quorum= alone all ranks do both.
 * With algo=servers some ranks, the servers, own all pieces and contribute nothing, and all others,
 * the workers, contribute and own none.
 *
 * Pieces of servers are balanced by bytes, over all vectors so far and by the shares of the policy.
 * All ranks cut the same vectors in the same order, so they have the same pieces. */

#include "libcomm/plan/policy.h"
#include "libcomm/topo/topo.h"

/* Elements of a vector that servers sum at once, see shard_chunks.c; whole blocks. */
enum { LCOMM_SHARD_CHUNK = 65536 };

typedef struct lcomm_shard_roles {
  int ranks;
  int servers;      /* 0: all ranks own pieces and contribute */
  int workers;      /* that contribute */
  uint8_t *apart;   /* set of ranks (quorum.h): the servers */
  uint32_t *shares; /* [ranks] of the bytes of all pieces; 0: owns none */
  uint64_t whole;   /* all shares together */
  uint64_t *held;   /* [ranks] bytes of the pieces that a server has now */
} lcomm_shard_roles;

/* A piece, as it is cut. */
typedef struct lcomm_shard_cut_piece {
  uint64_t first, count;
  uint64_t bytes; /* of those that its owner holds */
} lcomm_shard_cut_piece;

/* By the policy and what is where. ARGUMENT, with a sentence: a server that is no rank, or all
 * ranks are servers; MEMORY. Free it in any case. */
lcomm_status lcomm_shard_roles_make(const lcomm_servers_policy *policy, const lcomm_topo *topo,
                                    lcomm_shard_roles *roles, lcomm_why *why);
void lcomm_shard_roles_free(lcomm_shard_roles *roles);

bool lcomm_shard_roles_serves(const lcomm_shard_roles *roles, int rank);

/* Cut a vector of `count` elements, of which a server receives and sends `bytes` per worker, into
 * pieces [ranks] of whole blocks: all elements, each once, in the order of the ranks. A vector of
 * one tile at most goes whole to one server. */
void lcomm_shard_cut(lcomm_shard_roles *roles, uint64_t count, uint64_t bytes,
                     lcomm_shard_cut_piece *pieces);

/* The rank of a node that adds up what its ranks contribute to the piece of an owner on another one
 * (node_quorum.h); -1: `rank` contributes itself, as it is alone on its node, or on the owner's. */
int lcomm_shard_collector(const lcomm_topo *topo, int rank, int owner);

/* A piece is no more. */
void lcomm_shard_uncut(lcomm_shard_roles *roles, int owner, uint64_t bytes);

#endif
