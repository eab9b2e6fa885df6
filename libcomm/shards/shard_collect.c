/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A sum as the collector of a node does it for an owner on another one: contributions of the ranks
 * of its node come, it adds them up and sends the owner one contribution. shard_pass_on.c has the
 * results. */

#include <string.h>

#include "codecs/codec_residual.h"
#include "libcomm/base/clock.h"
#include "libcomm/shards/shards_internal.h"

/* ------------------------------------------------------------ contributions */

/* What is collected of an owner's piece, if a rank of this node may contribute to it. */
static lcomm_shard_collected *find(const lcomm_shard_vector *vector, int owner, int rank) {
  const int *node = vector->comm->topo.node;
  bool is_here = vector->collected && node[rank] == node[vector->comm->rank];
  return is_here ? vector->collected[owner] : NULL;
}

lcomm_status lcomm_shard_collect_accept(lcomm_shard_vector *vector, int peer,
                                        const lcomm_shard_header *header, uint8_t **target) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_collected *it = find(vector, (int)header->owner, peer);
  int local = vector->comm->topo.local[peer];
  if (!it) {
    return lcomm_shards_refuse(shards, peer, "it contributes to a piece that is not there");
  }
  lcomm_shard_contribution *from = &it->ranks[local];
  if (!lcomm_shard_is_next(from, &it->quorum.ranks.ranks[local], header->round)) {
    return lcomm_shards_refuse(shards, peer, "it contributes to another round than the next one");
  }
  if (header->size != from->room) {
    return lcomm_shards_refuse(shards, peer, "a contribution has another length than its piece");
  }
  if (header->used != 1 || !lcomm_quorum_mask_has(header->mask, peer)) {
    return lcomm_shards_refuse(shards, peer, "it contributes for others");
  }
  *target = from->payload;
  return LCOMM_OK;
}

lcomm_status lcomm_shard_collect_take(lcomm_shard_vector *vector, int peer,
                                      const lcomm_shard_header *header) {
  lcomm_shard_collected *it = vector->collected[header->owner];
  int local = vector->comm->topo.local[peer];
  if (lcomm_node_quorum_contribute(&it->quorum, local, lcomm_clock_s()) == LCOMM_QUORUM_REFUSED) {
    return lcomm_shards_refuse(vector->comm->deferred.shards, peer,
                               "it contributes before it has a result");
  }
  return LCOMM_OK;
}

/* Of a contribution that was accepted. */
bool lcomm_shard_collect_is_answered(lcomm_shard_vector *vector, int peer, int owner) {
  lcomm_shard_collected *it = vector->collected[owner];
  int local = vector->comm->topo.local[peer];
  bool over = false;
  (void)lcomm_shard_answer_ends(vector->comm->deferred.shards, &it->ranks[local], &it->quorum.ranks,
                                local, &over);
  return over;
}

lcomm_status lcomm_shard_collect_ask(lcomm_shard_vector *vector, int owner,
                                     const lcomm_shard_header *header) {
  lcomm_shard_collected *it = vector->collected ? vector->collected[owner] : NULL;
  if (!it || header->owner != (uint32_t)owner ||
      !lcomm_node_quorum_ask(&it->quorum, header->round)) {
    return lcomm_shards_refuse(vector->comm->deferred.shards, owner,
                               "it asks for a contribution that cannot be there");
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ sending */

/* In the order of the ranks. */
static void add_up(lcomm_shard_vector *vector, const lcomm_shard_collected *it) {
  uint64_t count = it->coding.count;
  memset(vector->node_sum, 0, count * sizeof(float));
  for (int local = 0; local < lcomm_shard_node_ranks(it); local++) {
    if (lcomm_quorum_mask_has(it->quorum.sent, local)) {
      lcomm_accumulate(&it->ranks[local].format, vector->comm->kernels, it->ranks[local].payload,
                       lcomm_range_whole(count), 1.0f, vector->node_sum);
    }
  }
}

static uint64_t seed_of(const lcomm_shard_vector *vector, const lcomm_shard_collected *it) {
  return (uint64_t)vector->number << 48 ^ it->quorum.ranks.open << 16 ^
         (uint64_t)vector->comm->rank << 1 ^ (uint64_t)it->owner << 40;
}

/* What the codec leaves out is an error once the contribution is used; else its ranks keep what
 * they brought. */
static void encode(lcomm_shard_vector *vector, lcomm_shard_collected *it) {
  const lcomm_kernels *kernels = vector->comm->kernels;
  memset(it->left, 0, it->coding.count * sizeof(float));
  if (it->coding.topk) {
    lcomm_topk_encode(it->coding.topk, kernels, vector->node_sum, it->left, it->left,
                      LCOMM_TOPK_RELEASE, &it->payload, &it->size);
    return;
  }
  lcomm_residual_encode(&it->coding.format, kernels, vector->node_sum, it->left, it->left,
                        lcomm_range_whole(it->coding.count), seed_of(vector, it), it->payload);
  it->size = it->coding.room;
}

/* The ranks of the node that are in the open round, as ranks of all. */
static uint32_t name_ranks(const lcomm_shard_vector *vector, lcomm_shard_collected *it) {
  memset(it->set, 0, lcomm_quorum_mask_size(vector->comm->size));
  uint32_t count = 0;
  for (int local = 0; local < lcomm_shard_node_ranks(it); local++) {
    int rank = lcomm_shard_node_rank(vector, local);
    bool is_in = lcomm_quorum_is_in(&it->quorum.ranks, local);
    it->set[rank / 8] |= (uint8_t)(is_in << rank % 8);
    count += is_in;
  }
  return count;
}

static lcomm_status say(lcomm_shard_vector *vector, lcomm_shard_collected *it,
                        lcomm_shard_kind kind, lcomm_shard_sending *sending, size_t size) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_header header = {.kind = kind,
                               .vector = vector->number,
                               .owner = (uint32_t)it->owner,
                               .used = name_ranks(vector, it),
                               .round = it->quorum.ranks.open,
                               .size = size,
                               .mask = it->set};
  lcomm_shard_header_write(&header, shards->service->size, sending->header);
  return lcomm_shard_send(shards, it->owner, sending, it->payload, size, it->coding.count);
}

static lcomm_status contribute(lcomm_shard_vector *vector, lcomm_shard_collected *it,
                               double now_s) {
  lcomm_node_quorum_send(&it->quorum, now_s);
  uint32_t environment = lcomm_fp_enter();
  add_up(vector, it);
  encode(vector, it);
  lcomm_fp_leave(environment);
  return say(vector, it, LCOMM_SHARD_CONTRIBUTION, &it->sending, it->size);
}

static lcomm_status tell_owner(lcomm_shard_vector *vector, lcomm_shard_collected *it,
                               double now_s) {
  bool contributes = lcomm_node_quorum_may_send(&it->quorum), over = false;
  lcomm_shard_sending *sending = contributes ? &it->sending : &it->notice;
  LCOMM_TRY(lcomm_shard_send_ends(vector->comm->deferred.shards, sending, &over));
  if (contributes && over) {
    return contribute(vector, it, now_s);
  }
  if (!contributes && over && lcomm_node_quorum_may_tell(&it->quorum, now_s)) {
    lcomm_node_quorum_tell(&it->quorum, now_s);
    return say(vector, it, LCOMM_SHARD_NOTICE, sending, 0);
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- looking after */

static lcomm_status check_owner(lcomm_shard_vector *vector, const lcomm_shard_collected *it,
                                double now_s) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  char who[96];
  double waited_s = lcomm_node_quorum_waits(&it->quorum) ? now_s - it->quorum.since_s : 0;
  if (waited_s < lcomm_shards_patience_s(shards, LCOMM_SHARD_FOR_OWNER)) {
    return LCOMM_OK;
  }
  return lcomm_fail_peer(shards->service, LCOMM_ERR_TIMEOUT, it->owner,
                         "a sum of %llu elements with %s waits for %s, which owns a piece of it "
                         "and has not answered for %g s. LCOMM_TIMEOUT_S sets the time-out.",
                         (unsigned long long)vector->count, shards->word,
                         lcomm_comm_who(shards->service, it->owner, who, sizeof(who)), waited_s);
}

/* Of the ranks of this node; the owner looks after those of others. */
static lcomm_status check_patience(lcomm_shard_vector *vector, lcomm_shard_collected *it,
                                   double now_s) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  const lcomm_quorum *quorum = &it->quorum.ranks;
  double since_s = now_s;
  int local = lcomm_quorum_awaits(quorum, &since_s);
  if (local >= 0 && now_s - since_s >= lcomm_shards_patience_s(shards, LCOMM_SHARD_FOR_RANKS)) {
    return lcomm_shards_accuse(shards, lcomm_shard_node_rank(vector, local), quorum->there,
                               lcomm_shard_node_ranks(it), " of a node", now_s - since_s);
  }
  return check_owner(vector, it, now_s);
}

static lcomm_status look(lcomm_shard_vector *vector, lcomm_shard_collected *it, double now_s,
                         double *due_s) {
  LCOMM_TRY(tell_owner(vector, it, now_s));
  LCOMM_TRY(lcomm_shard_collect_pass_on(vector, it));
  double due = lcomm_node_quorum_due_s(&it->quorum);
  if (due > now_s && (!(*due_s > 0) || due < *due_s)) {
    *due_s = due;
  }
  return check_patience(vector, it, now_s);
}

lcomm_status lcomm_shard_collect_look(lcomm_shard_vector *vector, double now_s, double *due_s) {
  for (int owner = 0; owner < vector->comm->size; owner++) {
    lcomm_shard_collected *it = vector->collected[owner];
    LCOMM_TRY(it ? look(vector, it, now_s, due_s) : LCOMM_OK);
  }
  return LCOMM_OK;
}
