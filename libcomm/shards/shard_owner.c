/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A sum as the owner of a piece does it: contributions are waited for, ranks are answered. */

#include "libcomm/base/clock.h"
#include "libcomm/shards/shards_internal.h"

/* ------------------------------------------------------------ contributions */

lcomm_status lcomm_shard_owner_accept(lcomm_shard_vector *vector, int peer,
                                      const lcomm_shard_header *header, uint8_t **target) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_owned *owned = &vector->owned;
  lcomm_shard_contribution *from = owned->ranks ? &owned->ranks[peer] : NULL;
  if (!from || !from->payload) {
    return lcomm_shards_refuse(shards, peer, "it contributes to a piece that is not there");
  }
  if (!lcomm_shard_is_next(from, &owned->quorum.ranks[peer], header->round)) {
    return lcomm_shards_refuse(shards, peer, "it contributes to another round than the next one");
  }
  if (!lcomm_shard_is_size(&from->format, owned->coding.count, from->room, header->size)) {
    return lcomm_shards_refuse(shards, peer, "a contribution has another length than its piece");
  }
  from->size = (size_t)header->size;
  *target = from->payload;
  return LCOMM_OK;
}

lcomm_status lcomm_shard_owner_take(lcomm_shard_vector *vector, int peer,
                                    const lcomm_shard_header *header) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_owned *owned = &vector->owned;
  lcomm_shard_contribution *it = &owned->ranks[peer];
  if (!lcomm_shard_is_payload(&it->format, owned->coding.count, it->payload, it->size)) {
    return lcomm_shards_refuse(shards, peer, "a contribution cannot be decoded");
  }
  it->asked_s = 0;
  if (lcomm_quorum_contribute_for(&owned->quorum, peer, header->round, header->mask,
                                  lcomm_clock_s()) == LCOMM_QUORUM_REFUSED) {
    return lcomm_shards_refuse(shards, peer, "it contributes for others, or without a result");
  }
  return LCOMM_OK;
}

lcomm_status lcomm_shard_owner_note(lcomm_shard_vector *vector, int peer,
                                    const lcomm_shard_header *header) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_owned *owned = &vector->owned;
  bool collects = shards->collects && owned->ranks && owned->ranks[peer].payload &&
                  header->owner == (uint32_t)vector->comm->rank &&
                  lcomm_shard_collector(&vector->comm->topo, peer, vector->comm->rank) == peer;
  if (!collects || lcomm_quorum_notice(&owned->quorum, peer, header->round, header->mask,
                                       lcomm_clock_s()) == LCOMM_QUORUM_REFUSED) {
    return lcomm_shards_refuse(shards, peer, "it gives notice of ranks that cannot be there");
  }
  return LCOMM_OK;
}

/* Collectors whose ranks count, and that have not contributed for them, once in each round. */
static lcomm_status ask(lcomm_shard_vector *vector, int source, double now_s) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_contribution *it = &vector->owned.ranks[source];
  bool over = false;
  LCOMM_TRY(lcomm_shard_send_ends(shards, &it->request, &over));
  if (!over || it->asked_s > 0 || !lcomm_quorum_must_ask(&vector->owned.quorum, source, now_s)) {
    return LCOMM_OK;
  }
  lcomm_shard_header header = {.kind = LCOMM_SHARD_REQUEST,
                               .vector = vector->number,
                               .owner = (uint32_t)vector->comm->rank,
                               .round = vector->owned.quorum.ranks[source].answered};
  lcomm_shard_header_write(&header, shards->service->size, it->request.header);
  it->asked_s = now_s;
  return lcomm_shard_send(shards, source, &it->request, NULL, 0, 0);
}

/* ------------------------------------------------------------------ patience */

/* Nobody is waited for where a collector was asked and has not contributed, but it. */
static lcomm_status check_asked(lcomm_shard_vector *vector, double now_s) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  char who[96];
  for (int source = 0; shards->collects && source < vector->comm->size; source++) {
    double asked_s = vector->owned.ranks[source].asked_s;
    if (asked_s > 0 && now_s - asked_s >= lcomm_shards_patience_s(shards, LCOMM_SHARD_FOR_RANKS)) {
      return lcomm_fail_peer(shards->service, LCOMM_ERR_TIMEOUT, source,
                             "a sum of %llu elements with %s waits for %s, which adds up for its "
                             "node and has not sent that for %g s. LCOMM_TIMEOUT_S sets the "
                             "time-out.",
                             (unsigned long long)vector->count, shards->word,
                             lcomm_comm_who(shards->service, source, who, sizeof(who)),
                             now_s - asked_s);
    }
  }
  return LCOMM_OK;
}

static lcomm_status check_patience(lcomm_shard_vector *vector, double now_s) {
  const lcomm_quorum *quorum = &vector->owned.quorum;
  lcomm_shards *shards = vector->comm->deferred.shards;
  double since_s = now_s;
  int rank = lcomm_quorum_awaits(quorum, &since_s);
  double patience_s = lcomm_shards_patience_s(shards, shards->collects ? LCOMM_SHARD_FOR_NODES
                                                                       : LCOMM_SHARD_FOR_RANKS);
  if (rank < 0 || now_s - since_s < patience_s) {
    return check_asked(vector, now_s);
  }
  return lcomm_shards_accuse(shards, rank, quorum->there, quorum->contributors, "",
                             now_s - since_s);
}

/* Answers that have left need no result any more. */
static lcomm_status end_answers(lcomm_shards *shards, lcomm_shard_vector *vector, double now_s) {
  for (int rank = 0; rank < shards->service->size; rank++) {
    lcomm_shard_contribution *it = &vector->owned.ranks[rank];
    bool over = false;
    if (it->answers) {
      LCOMM_TRY(lcomm_shard_answer_ends(shards, it, &vector->owned.quorum, rank, &over));
    }
    LCOMM_TRY(it->payload && shards->collects ? ask(vector, rank, now_s) : LCOMM_OK);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_shard_owner_look(lcomm_shard_vector *vector, double now_s, double *due_s) {
  LCOMM_TRY(end_answers(vector->comm->deferred.shards, vector, now_s));
  double due = lcomm_quorum_due_s(&vector->owned.quorum);
  if (due > now_s && (!(*due_s > 0) || due < *due_s)) {
    *due_s = due;
  }
  return check_patience(vector, now_s);
}

/* ---------------------------------------------------------------- answering */

static lcomm_shard_result *result_of(lcomm_shard_vector *vector, int peer) {
  uint64_t round = vector->owned.quorum.ranks[peer].answered;
  return &vector->owned.results[round % vector->owned.quorum.rule.kept];
}

static bool may_answer(lcomm_shard_vector *vector, int peer) {
  const lcomm_shard_contribution *it = &vector->owned.ranks[peer];
  return it->payload && !it->answers && lcomm_quorum_may_answer(&vector->owned.quorum, peer) &&
         result_of(vector, peer)->is_ready;
}

static lcomm_status answer(lcomm_shards *shards, int peer, lcomm_shard_vector *vector) {
  lcomm_quorum *quorum = &vector->owned.quorum;
  lcomm_shard_contribution *it = &vector->owned.ranks[peer];
  uint64_t round = quorum->ranks[peer].answered;
  lcomm_shard_result *result = result_of(vector, peer);
  lcomm_shard_header header = {.kind = LCOMM_SHARD_RESULT,
                               .vector = vector->number,
                               .owner = (uint32_t)vector->comm->rank,
                               .used = result->used,
                               .round = round,
                               .closed = quorum->open,
                               .size = result->size,
                               .mask = lcomm_quorum_used(quorum, round)};
  lcomm_shard_header_write(&header, shards->service->size, it->answer.header);
  it->answers = true;
  return lcomm_shard_send(shards, peer, &it->answer, result->payload, result->size,
                          vector->owned.coding.count);
}

/* Each owner begins behind itself, or all would send to the first rank at once. */
lcomm_status lcomm_shard_owner_answer(lcomm_shard_vector *vector) {
  int size = vector->comm->size;
  for (int i = 0; i < size; i++) {
    int peer = (vector->comm->rank + i) % size;
    LCOMM_TRY(may_answer(vector, peer) ? answer(vector->comm->deferred.shards, peer, vector)
                                       : LCOMM_OK);
  }
  return LCOMM_OK;
}
