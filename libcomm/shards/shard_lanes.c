/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The vectors of a bucket, which take turns: one for each lane of staleness.h. All have the pieces
 * of the first one, so that an owner sees each of its elements in all rounds. */

#include <stdlib.h>

#include "libcomm/engine/entry.h"
#include "libcomm/shards/shards_internal.h"

static size_t count_chunks(const lcomm_shard_vector *vector) {
  size_t count = 0;
  for (; vector; vector = vector->following) {
    count++;
  }
  return count;
}

/* The service sees vectors from when they are made; it closes rounds of those that have lanes.
 * quorums: [chunks][lanes]. */
static lcomm_status link(lcomm_shards *shards, lcomm_shard_vector **lanes, lcomm_quorum **quorums) {
  unsigned count = lcomm_stale_lanes(&shards->stale.rule);
  LCOMM_TRY(lcomm_enter(shards->service));
  for (unsigned i = 0; i < count; i++) {
    lcomm_quorum **of_chunk = quorums;
    for (lcomm_shard_vector *it = lanes[i]; it; it = it->following) {
      of_chunk[i] = &it->owned.quorum;
      it->lane = i;
      it->lanes = of_chunk;
      of_chunk += count;
    }
  }
  lcomm_exit(shards->service);
  return LCOMM_OK;
}

static lcomm_status link_all(lcomm_shards *shards, lcomm_shard_vector **lanes) {
  size_t count = count_chunks(lanes[0]) * lcomm_stale_lanes(&shards->stale.rule);
  lcomm_quorum **quorums = calloc(count, sizeof *quorums);
  lcomm_status status = quorums ? link(shards, lanes, quorums) : LCOMM_ERR_MEMORY;
  if (status != LCOMM_OK) {
    free(quorums);
  }
  return status;
}

lcomm_status lcomm_shard_lanes_make(lcomm_comm *comm, const lcomm_shard_request *request,
                                    lcomm_shard_vector ***lanes) {
  lcomm_shards *shards = comm->deferred.shards;
  unsigned count = lcomm_stale_lanes(&shards->stale.rule);
  lcomm_shard_vector **made = calloc(count, sizeof *made);
  lcomm_status status = made ? LCOMM_OK : LCOMM_ERR_MEMORY;
  lcomm_shard_request of_lane = *request;
  for (unsigned i = 0; i < count && status == LCOMM_OK; i++) {
    status = lcomm_shard_vector_make(comm, &of_lane, &made[i]);
    of_lane.like = made[0];
  }
  if (status == LCOMM_OK) {
    status = link_all(shards, made);
  }
  if (status == LCOMM_OK) {
    *lanes = made;
    return LCOMM_OK;
  }
  for (unsigned i = 0; made && i < count; i++) {
    lcomm_shard_vector_free(made[i]);
  }
  free(made);
  return status;
}

/* No lane is looked at any more when the first one is gone. */
void lcomm_shard_lanes_free(lcomm_comm *comm, lcomm_shard_vector **lanes) {
  if (!lanes) {
    return;
  }
  lcomm_shards *shards = comm->deferred.shards;
  lcomm_quorum **quorums = lanes[0]->lanes;
  unsigned count = lcomm_stale_lanes(&shards->stale.rule);
  bool entered = lcomm_enter(shards->service) == LCOMM_OK;
  for (unsigned i = 0; i < count; i++) {
    for (lcomm_shard_vector *it = lanes[i]; it; it = it->following) {
      it->lanes = NULL;
    }
  }
  if (entered) {
    lcomm_exit(shards->service);
  }
  for (unsigned i = 0; i < count; i++) {
    lcomm_shard_vector_free(lanes[i]);
  }
  free(quorums);
  free(lanes);
}

void lcomm_shard_lanes_retire(lcomm_shard_vector **lanes) {
  for (lcomm_shard_vector *it = lanes[0]; it; it = it->following) {
    it->retired = true;
  }
}

static bool have_results(const lcomm_quorum *quorum, int source, uint64_t rounds) {
  return quorum->ranks[source].answered >= rounds;
}

/* All ranks make the same sums, so nobody contributes any more. */
static bool is_settled(const lcomm_shard_vector *vector) {
  const lcomm_shard_owned *owned = &vector->owned;
  bool all = true;
  for (int rank = 0; rank < vector->comm->size; rank++) {
    const lcomm_shard_collected *it = vector->collected ? vector->collected[rank] : NULL;
    bool contributes = owned->ranks && owned->ranks[rank].payload;
    all &= !contributes || have_results(&owned->quorum, rank, vector->round);
    for (int local = 0; it && local < lcomm_shard_node_ranks(it); local++) {
      all &= have_results(&it->quorum.ranks, local, vector->round);
    }
  }
  return all;
}

bool lcomm_shard_lanes_are_settled(lcomm_comm *comm, lcomm_shard_vector **lanes) {
  lcomm_comm *service = comm->deferred.shards->service;
  bool are_settled = true;
  if (lcomm_enter(service) != LCOMM_OK) {
    return false;
  }
  for (const lcomm_shard_vector *it = lanes[0]; it; it = it->following) {
    are_settled &= is_settled(it);
  }
  lcomm_exit(service);
  return are_settled;
}
