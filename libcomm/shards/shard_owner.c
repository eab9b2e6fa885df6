/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A sum as the owner of a piece does it: contributions come, a round closes, ranks are answered. */

#include <stdio.h>
#include <string.h>

#include "codecs/codec_residual.h"
#include "libcomm/base/clock.h"
#include "libcomm/shards/shards_internal.h"

/* ------------------------------------------------------------ contributions */

lcomm_status lcomm_shard_owner_take(lcomm_shard_vector *vector, int peer) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_shard_owned *owned = &vector->owned;
  lcomm_shard_contribution *it = &owned->ranks[peer];
  lcomm_shard_queue *waiting = &shards->peers[peer].waiting;
  if (!lcomm_shard_is_payload(&it->format, owned->coding.count, it->payload, it->size)) {
    return lcomm_shards_refuse(shards, peer, "a contribution cannot be decoded");
  }
  if (lcomm_quorum_contribute(&owned->quorum, peer, lcomm_clock_s()) == LCOMM_QUORUM_REFUSED) {
    return lcomm_shards_refuse(shards, peer, "it contributes before it has a result");
  }
  it->next = NULL;
  lcomm_shard_queue_add(waiting, vector,
                        waiting->last ? &waiting->last->owned.ranks[peer].next : NULL);
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ closing */

static void add(const lcomm_comm *comm, const lcomm_shard_contribution *it, uint64_t count,
                float *sum) {
  if (lcomm_format_is_sparse(&it->format)) {
    lcomm_topk_add(&it->format, it->payload, 1, 0, 1.0f, sum);
  } else {
    lcomm_accumulate(&it->format, comm->kernels, it->payload, lcomm_range_whole(count), 1.0f, sum);
  }
}

/* A server brings nothing but what it has left out so far. */
static void begin_sum(lcomm_shard_vector *vector) {
  lcomm_shard_owned *owned = &vector->owned;
  size_t size = owned->coding.count * sizeof(float);
  memset(owned->sum, 0, size);
  if (lcomm_shards_is_server(vector->comm->deferred.shards)) {
    memcpy(owned->sum, owned->error, size);
    memset(owned->error, 0, size);
  }
}

/* In rank order, so that where nobody is late the bits do not depend on who comes first. */
static uint32_t sum_up(lcomm_shard_vector *vector, uint64_t round) {
  lcomm_shard_owned *owned = &vector->owned;
  const uint8_t *in = lcomm_quorum_used(&owned->quorum, round);
  uint64_t count = owned->coding.count;
  uint32_t used = 0;
  begin_sum(vector);
  for (int rank = 0; rank < vector->comm->size; rank++) {
    if (lcomm_quorum_mask_has(in, rank)) {
      add(vector->comm, &owned->ranks[rank], count, owned->sum);
      used++;
    }
  }
  return used;
}

static uint64_t seed_of(const lcomm_shard_vector *vector, uint64_t round) {
  return (uint64_t)vector->number << 48 ^ round << 16 ^ (uint64_t)vector->comm->rank << 1 ^ 1;
}

/* What the codec leaves out waits here in units of a sum, until this rank ends a sum itself, or as
 * a server begins one. */
static void encode(lcomm_shard_vector *vector, uint64_t round, float units,
                   lcomm_shard_result *result) {
  const lcomm_kernels *kernels = vector->comm->kernels;
  lcomm_shard_owned *owned = &vector->owned;
  uint64_t count = owned->coding.count;
  if (!owned->coding.topk) {
    lcomm_residual_encode_owner(&owned->coding.format, kernels, owned->sum, owned->error, units,
                                lcomm_range_whole(count), seed_of(vector, round), result->payload);
    result->size = owned->coding.room;
    return;
  }
  memset(owned->left, 0, count * sizeof(float));
  lcomm_topk_encode(owned->coding.topk, kernels, owned->sum, owned->left, owned->left,
                    LCOMM_TOPK_RELEASE, &result->payload, &result->size);
  kernels->f32_add(owned->left, units, owned->error, count);
}

bool lcomm_shard_owner_may_close(const lcomm_shard_vector *vector, double now_s) {
  const lcomm_shards *shards = vector->comm->deferred.shards;
  return vector->lanes && vector->owned.coding.count > 0 &&
         lcomm_stale_may_close(&shards->stale.rule, vector->lanes, vector->lane, now_s);
}

uint64_t lcomm_shard_owner_close(lcomm_shard_vector *vector) {
  lcomm_shard_owned *owned = &vector->owned;
  uint64_t round = owned->quorum.open;
  owned->results[round % owned->quorum.rule.kept].is_ready = false;
  lcomm_quorum_close(&owned->quorum);
  return round;
}

/* The program's function has the program's rules of rounding. */
static int amend(lcomm_shard_vector *vector, uint64_t round, uint32_t used,
                 lcomm_shard_update update, void *context) {
  lcomm_shard_round it = {.vector = vector->head,
                          .first = vector->first + vector->pieces[vector->comm->rank].first,
                          .count = vector->owned.coding.count,
                          .values = vector->owned.sum,
                          .number = round,
                          .used = used};
  return update ? update(context, &it) : 0;
}

int lcomm_shard_owner_compute(lcomm_shard_vector *vector, uint64_t round, lcomm_shard_update update,
                              void *context) {
  lcomm_shard_owned *owned = &vector->owned;
  lcomm_shard_result *result = &owned->results[round % owned->quorum.rule.kept];
  uint32_t environment = lcomm_fp_enter();
  result->used = sum_up(vector, round);
  float units = vector->op == LCOMM_AVG ? (float)result->used : 1.0f;
  if (vector->op == LCOMM_AVG) {
    vector->comm->kernels->f32_scale(owned->sum, 1.0f / units, owned->sum, owned->coding.count);
  }
  lcomm_fp_leave(environment);
  int failed = amend(vector, round, result->used, update, context);
  environment = lcomm_fp_enter();
  encode(vector, round, units, result);
  lcomm_fp_leave(environment);
  return failed;
}

/* Whom a round needs, for sentences. */
static const char *say_needed(const lcomm_shards *shards, char *text, size_t size) {
  if (lcomm_shards_have_servers(shards)) {
    snprintf(text, size, "of %d workers", shards->rule.needed);
  } else {
    snprintf(text, size, "with %s", shards->word);
  }
  return text;
}

static lcomm_status check_patience(lcomm_shard_vector *vector, double now_s) {
  const lcomm_quorum *quorum = &vector->owned.quorum;
  lcomm_shards *shards = vector->comm->deferred.shards;
  char who[96], needed[48];
  double since_s = now_s;
  int rank = lcomm_quorum_awaits(quorum, &since_s);
  if (rank < 0 || now_s - since_s < shards->comm->settings.timeout_s) {
    return LCOMM_OK;
  }
  return lcomm_fail_peer(shards->service, LCOMM_ERR_TIMEOUT, rank,
                         "%d of %d ranks wait for %s, without which no sum %s can go "
                         "on: it has not contributed for %g s. LCOMM_TIMEOUT_S sets the time-out.",
                         quorum->there, quorum->contributors,
                         lcomm_comm_who(shards->service, rank, who, sizeof(who)),
                         say_needed(shards, needed, sizeof(needed)), now_s - since_s);
}

/* Answers that have left need no result any more. */
static lcomm_status end_answers(lcomm_shards *shards, lcomm_shard_vector *vector) {
  for (int rank = 0; rank < shards->service->size; rank++) {
    lcomm_shard_contribution *it = &vector->owned.ranks[rank];
    bool over = false;
    if (it->answers) {
      LCOMM_TRY(lcomm_shard_send_ends(shards, &it->answer, &over));
    }
    if (over) {
      it->answers = false;
      lcomm_quorum_answered(&vector->owned.quorum, rank);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_shard_owner_look(lcomm_shard_vector *vector, double now_s, double *due_s) {
  LCOMM_TRY(end_answers(vector->comm->deferred.shards, vector));
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
  return lcomm_quorum_may_answer(&vector->owned.quorum, peer) && result_of(vector, peer)->is_ready;
}

static lcomm_status answer(lcomm_shards *shards, int peer, lcomm_shard_vector *vector) {
  lcomm_quorum *quorum = &vector->owned.quorum;
  lcomm_shard_contribution *it = &vector->owned.ranks[peer];
  uint64_t round = quorum->ranks[peer].answered;
  lcomm_shard_result *result = result_of(vector, peer);
  lcomm_shard_header header = {.kind = LCOMM_SHARD_RESULT,
                               .vector = vector->number,
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

/* In the order in which the peer has contributed. */
lcomm_status lcomm_shard_owner_answer(lcomm_shards *shards, int peer) {
  lcomm_shard_queue *waiting = &shards->peers[peer].waiting;
  while (waiting->first && may_answer(waiting->first, peer)) {
    lcomm_shard_vector *vector = waiting->first;
    waiting->first = vector->owned.ranks[peer].next;
    waiting->last = waiting->first ? waiting->last : NULL;
    vector->owned.ranks[peer].next = NULL;
    LCOMM_TRY(answer(shards, peer, vector));
  }
  return LCOMM_OK;
}
