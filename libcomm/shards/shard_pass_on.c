/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the collector of a node does with results of an owner: kept, and passed on to the ranks of
 * its node, to each when it has contributed. */

#include <string.h>

#include "libcomm/shards/shards_internal.h"

static bool is_needed(const lcomm_shard_collected *it, const lcomm_shard_kept *result) {
  for (int local = 0; result->is_set && local < lcomm_shard_node_ranks(it); local++) {
    if (it->quorum.ranks.ranks[local].answered <= result->round) {
      return true;
    }
  }
  return false;
}

/* There is one: the node contributes to no round without a place for its result. */
static lcomm_shard_kept *find_place(lcomm_shard_collected *it) {
  lcomm_shard_kept *place = it->results;
  while (is_needed(it, place)) {
    place++;
  }
  return place;
}

static lcomm_shard_kept *find_result(lcomm_shard_collected *it, uint64_t round) {
  lcomm_shard_kept *result = it->results;
  while (!result->is_set || result->round != round) {
    result++;
  }
  return result;
}

/* Of the ranks of this node either all were used for which it contributed, or none. */
static bool is_used(const lcomm_shard_vector *vector, const lcomm_shard_collected *it,
                    const uint8_t *used, bool *is_none) {
  bool is_all = true;
  *is_none = true;
  for (int local = 0; local < lcomm_shard_node_ranks(it); local++) {
    bool has = lcomm_quorum_mask_has(used, lcomm_shard_node_rank(vector, local));
    is_all &= has == lcomm_quorum_mask_has(it->quorum.sent, local);
    *is_none &= !has;
  }
  return is_all;
}

lcomm_status lcomm_shard_collect_accept_result(lcomm_shard_vector *vector, int owner,
                                               const lcomm_shard_header *header, uint8_t **target) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_collected *it = vector->collected ? vector->collected[owner] : NULL;
  const lcomm_shard_piece *piece = &vector->pieces[owner];
  bool is_none;
  if (!it || header->owner != (uint32_t)owner || !it->quorum.is_sent ||
      header->round != it->quorum.ranks.open) {
    return lcomm_shards_refuse(shards, owner, "it brings a result that nobody waits for");
  }
  if (!lcomm_shard_is_size(&piece->result_format, piece->coding.count, piece->result_room,
                           header->size)) {
    return lcomm_shards_refuse(shards, owner, "a result has another length than its piece");
  }
  if (!is_used(vector, it, header->mask, &is_none) && !is_none) {
    return lcomm_shards_refuse(shards, owner, "a result is of ranks that did not contribute");
  }
  it->coming = find_place(it);
  it->coming->is_set = false;
  it->coming->size = (size_t)header->size;
  it->coming->round = header->round;
  it->coming->used = header->used;
  memcpy(it->coming->set, header->mask, lcomm_shards_mask(shards));
  it->closed = header->closed;
  *target = it->coming->payload;
  return LCOMM_OK;
}

lcomm_status lcomm_shard_collect_take_result(lcomm_shard_vector *vector, int owner) {
  lcomm_shard_collected *it = vector->collected[owner];
  const lcomm_shard_piece *piece = &vector->pieces[owner];
  bool is_none;
  if (!lcomm_shard_is_payload(&piece->result_format, piece->coding.count, it->coming->payload,
                              it->coming->size)) {
    return lcomm_shards_refuse(vector->comm->deferred.shards, owner, "a result cannot be decoded");
  }
  if (is_used(vector, it, it->coming->set, &is_none)) {
    uint32_t environment = lcomm_fp_enter();
    vector->comm->kernels->f32_add(it->left, 1.0f, it->error, it->coding.count);
    lcomm_fp_leave(environment);
  }
  it->coming->is_set = true;
  lcomm_node_quorum_close(&it->quorum);
  return LCOMM_OK;
}

static lcomm_status pass_on(lcomm_shard_vector *vector, lcomm_shard_collected *it, int local) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_contribution *to = &it->ranks[local];
  const lcomm_shard_kept *result = find_result(it, it->quorum.ranks.ranks[local].answered);
  uint64_t most = result->round + LCOMM_SHARD_KEPT;
  lcomm_shard_header header = {.kind = LCOMM_SHARD_RESULT,
                               .vector = vector->number,
                               .owner = (uint32_t)it->owner,
                               .used = result->used,
                               .round = result->round,
                               .closed = it->closed < most ? it->closed : most,
                               .size = result->size,
                               .mask = result->set};
  lcomm_shard_header_write(&header, shards->service->size, to->answer.header);
  to->answers = true;
  return lcomm_shard_send(shards, lcomm_shard_node_rank(vector, local), &to->answer,
                          result->payload, result->size, it->coding.count);
}

lcomm_status lcomm_shard_collect_pass_on(lcomm_shard_vector *vector, lcomm_shard_collected *it) {
  for (int local = 0; local < lcomm_shard_node_ranks(it); local++) {
    lcomm_shard_contribution *to = &it->ranks[local];
    bool over = false;
    LCOMM_TRY(lcomm_shard_answer_ends(vector->comm->deferred.shards, to, &it->quorum.ranks, local,
                                      &over));
    if (over && lcomm_quorum_may_answer(&it->quorum.ranks, local)) {
      LCOMM_TRY(pass_on(vector, it, local));
    }
  }
  return LCOMM_OK;
}
