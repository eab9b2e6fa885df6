/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who is late: counted from results, which say who was used, on every rank alike. */

#include <stdio.h>

#include "libcomm/base/log.h"
#include "libcomm/shards/shards_internal.h"

/* One rank does for all: the first that contributes. */
static bool speaks(const lcomm_shards *shards) {
  int first = 0;
  while (lcomm_shard_roles_serves(&shards->roles, first)) {
    first++;
  }
  return shards->comm->rank == first;
}

/* One rank says once of another that all wait for it in vain. */
static void name_streak(lcomm_shards *shards, int rank) {
  lcomm_shard_peer *peer = &shards->peers[rank];
  char who[96], sentence[LCOMM_ERROR_MAX];
  if (peer->named || peer->streak < LCOMM_SHARD_STREAK_NAMED || !speaks(shards)) {
    return;
  }
  peer->named = true;
  snprintf(sentence, sizeof(sentence),
           "%s was late in the last %d sums: %s goes on without it, and what it computes "
           "comes with later sums. Is its host slower than the others, or busy?",
           lcomm_comm_who(shards->comm, rank, who, sizeof(who)), LCOMM_SHARD_STREAK_NAMED,
           shards->word);
  lcomm_log(LCOMM_LOG_WARN, sentence);
}

static uint64_t pieces_without(const lcomm_shard_vector *vector, int rank) {
  uint64_t pieces = 0;
  if (lcomm_shard_roles_serves(&vector->comm->deferred.shards->roles, rank)) {
    return 0;
  }
  for (int owner = 0; owner < vector->comm->size; owner++) {
    const lcomm_shard_piece *piece = &vector->pieces[owner];
    pieces += piece->coding.count > 0 && !lcomm_quorum_mask_has(piece->used, rank);
  }
  return pieces;
}

static uint64_t pieces_of(const lcomm_shard_vector *vector) {
  uint64_t pieces = 0;
  for (int owner = 0; owner < vector->comm->size; owner++) {
    pieces += vector->pieces[owner].coding.count > 0;
  }
  return pieces;
}

uint64_t lcomm_shard_closed_beyond(const lcomm_shard_vector *vector) {
  uint64_t least = UINT64_MAX;
  for (int owner = 0; owner < vector->comm->size; owner++) {
    const lcomm_shard_piece *piece = &vector->pieces[owner];
    bool is_less = piece->coding.count > 0 && piece->closed < least;
    least = is_less ? piece->closed : least;
  }
  return least == UINT64_MAX ? 0 : least - vector->round;
}

/* The rounds that are closed, and the one that is open then: a rank that brought a gradient to that
 * one would be late again. It brings what it keeps. */
static void advise(lcomm_shard_vector *vector) {
  uint64_t behind = lcomm_shard_closed_beyond(vector);
  if (behind > 0) {
    vector->skips_until = vector->round + behind + 1;
  }
}

static uint64_t steps_to_skip(const lcomm_shard_vector *vector) {
  return vector->skips_until > vector->round ? vector->skips_until - vector->round : 0;
}

void lcomm_shards_count_late(lcomm_shards *shards, lcomm_shard_vector *vector) {
  shards->sums++;
  shards->pieces += pieces_of(vector);
  advise(vector);
  for (int rank = 0; rank < vector->comm->size; rank++) {
    lcomm_shard_peer *peer = &shards->peers[rank];
    uint64_t late = pieces_without(vector, rank);
    peer->late_pieces += late;
    peer->late_sums += late > 0;
    peer->streak = late > 0 ? peer->streak + 1 : 0;
    name_streak(shards, rank);
  }
}

uint64_t lcomm_shards_behind(const lcomm_shards *shards) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < shards->count; i++) {
    const lcomm_shard_vector *it = shards->vectors[i];
    bool is_summed = it && it->count > 0 && it->round > 0 && !it->retired;
    bool is_less = is_summed && steps_to_skip(it) < least;
    least = is_less ? steps_to_skip(it) : least;
  }
  return least == UINT64_MAX ? 0 : least;
}

void lcomm_shards_lateness(const lcomm_shards *shards, int rank, lcomm_lateness *lateness) {
  const lcomm_shard_peer *peer = &shards->peers[rank];
  *lateness = (lcomm_lateness){.sums = shards->sums,
                               .late_sums = peer->late_sums,
                               .pieces = shards->pieces,
                               .late_pieces = peer->late_pieces};
}
