/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/shards/shard_roles.h"

#include <stdlib.h>

#include "kernels/stripe.h"
#include "libcomm/shards/quorum.h"

/* -------------------------------------------------------------------- roles */

static void add_server(lcomm_shard_roles *roles, int rank, uint32_t share) {
  roles->apart[rank / 8] |= (uint8_t)(1 << rank % 8);
  roles->shares[rank] = share;
  roles->whole += share;
  roles->servers++;
  roles->workers--;
}

static lcomm_status add_servers(const lcomm_servers_policy *policy, const lcomm_topo *topo,
                                lcomm_shard_roles *roles, lcomm_why *why) {
  int most = policy->are_nodes ? topo->nodes : topo->size;
  for (unsigned i = 0; i < policy->count; i++) {
    uint32_t number = policy->number[i];
    if (number >= (uint32_t)most) {
      return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                           "servers=%s%u names a %s that is not there: there are %d, numbered from "
                           "0; name another one",
                           policy->are_nodes ? "nodes:" : "", number,
                           policy->are_nodes ? "node" : "rank", most);
    }
    for (int rank = 0; rank < topo->size; rank++) {
      int its = policy->are_nodes ? topo->node[rank] : rank;
      if ((uint32_t)its == number) {
        add_server(roles, rank, policy->share[i]);
      }
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_shard_roles_make(const lcomm_servers_policy *policy, const lcomm_topo *topo,
                                    lcomm_shard_roles *roles, lcomm_why *why) {
  size_t ranks = (size_t)topo->size;
  *roles = (lcomm_shard_roles){.ranks = topo->size,
                               .workers = topo->size,
                               .apart = calloc(1, lcomm_quorum_mask_size(topo->size)),
                               .shares = calloc(ranks, sizeof *roles->shares),
                               .held = calloc(ranks, sizeof *roles->held)};
  if (!roles->apart || !roles->shares || !roles->held) {
    return LCOMM_ERR_MEMORY;
  }
  LCOMM_TRY(add_servers(policy, topo, roles, why));
  if (roles->workers == 0) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                         "servers= names all %d ranks of the communicator, so nobody is left to "
                         "bring gradients; name fewer",
                         topo->size);
  }
  return LCOMM_OK;
}

void lcomm_shard_roles_free(lcomm_shard_roles *roles) {
  free(roles->apart);
  free(roles->shares);
  free(roles->held);
  *roles = (lcomm_shard_roles){0};
}

bool lcomm_shard_roles_serves(const lcomm_shard_roles *roles, int rank) {
  return lcomm_quorum_mask_has(roles->apart, rank);
}

/* Owners of one node have different collectors, as far as there are ranks. */
int lcomm_shard_collector(const lcomm_topo *topo, int rank, int owner) {
  int node = topo->node[rank], ranks = topo->node_size[node];
  bool is_direct = node == topo->node[owner] || ranks == 1;
  return is_direct ? -1 : lcomm_topo_rank(topo, node, topo->local[owner] % ranks);
}

/* ------------------------------------------------------------------- cutting */

static uint64_t blocks_of(uint64_t count) {
  return (count + LCOMM_BLOCK - 1) / LCOMM_BLOCK;
}

/* The last ones may be empty. */
static void cut_evenly(int ranks, uint64_t count, lcomm_shard_cut_piece *pieces) {
  uint64_t share = (count + (uint64_t)ranks - 1) / (uint64_t)ranks;
  uint64_t piece = blocks_of(share) * LCOMM_BLOCK;
  for (int owner = 0; owner < ranks; owner++) {
    uint64_t first = piece * (uint64_t)owner < count ? piece * (uint64_t)owner : count;
    pieces[owner] = (lcomm_shard_cut_piece){.first = first,
                                            .count = count - first < piece ? count - first : piece};
  }
}

/* Bytes that a server lacks of its share, when `more` have come to all; below 0: it has more. */
static int64_t lacks(const lcomm_shard_roles *roles, int owner, uint64_t more) {
  uint64_t all = more, share = roles->shares[owner];
  for (int rank = 0; rank < roles->ranks; rank++) {
    all += roles->held[rank];
  }
  uint64_t wanted = all / roles->whole * share + all % roles->whole * share / roles->whole;
  return (int64_t)wanted - (int64_t)roles->held[owner];
}

static int find_neediest(const lcomm_shard_roles *roles, uint64_t more) {
  int neediest = -1;
  int64_t most = INT64_MIN;
  for (int rank = 0; rank < roles->ranks; rank++) {
    bool needs_more = roles->shares[rank] > 0 && lacks(roles, rank, more) > most;
    neediest = needs_more ? rank : neediest;
    most = needs_more ? lacks(roles, rank, more) : most;
  }
  return neediest;
}

static int find_last(const lcomm_shard_roles *roles) {
  int last = roles->ranks - 1;
  while (roles->shares[last] == 0) {
    last--;
  }
  return last;
}

/* Blocks that an owner gets, of which each is `per` bytes; `left` are not given away yet. */
static uint64_t blocks_for(int64_t lack, uint64_t per, uint64_t left) {
  uint64_t blocks = lack > 0 ? ((uint64_t)lack + per / 2) / per : 0;
  return blocks < left ? blocks : left;
}

void lcomm_shard_cut(lcomm_shard_roles *roles, uint64_t count, uint64_t bytes,
                     lcomm_shard_cut_piece *pieces) {
  if (roles->servers == 0) {
    cut_evenly(roles->ranks, count, pieces);
    return;
  }
  uint64_t left = blocks_of(count), at = 0;
  uint64_t per = left > 0 && bytes > left ? bytes / left : 1;
  uint64_t more = left * per;
  int rest = count <= LCOMM_TILE ? find_neediest(roles, more) : find_last(roles);
  for (int rank = 0; rank < roles->ranks; rank++) {
    bool splits = roles->shares[rank] > 0 && count > LCOMM_TILE;
    uint64_t blocks = splits ? blocks_for(lacks(roles, rank, more), per, left) : 0;
    blocks = rank == rest ? left : blocks;
    uint64_t size = blocks * LCOMM_BLOCK < count - at ? blocks * LCOMM_BLOCK : count - at;
    pieces[rank] = (lcomm_shard_cut_piece){.first = at, .count = size, .bytes = blocks * per};
    at += size;
    left -= blocks;
    more -= blocks * per;
    roles->held[rank] += blocks * per;
  }
}

void lcomm_shard_uncut(lcomm_shard_roles *roles, int owner, uint64_t bytes) {
  roles->held[owner] -= bytes;
}
