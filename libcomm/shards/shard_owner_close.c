/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The end of a round, as the owner of a piece does it: contributions become a result. */

#include <string.h>

#include "codecs/codec_residual.h"
#include "libcomm/shards/shards_internal.h"

/* --------------------------------------------------------------- the result */

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

/* Is a rank of a source used? */
static bool uses(const lcomm_quorum *quorum, const uint8_t *in, int source) {
  bool is_used = lcomm_quorum_mask_has(in, source);
  for (int rank = 0; quorum->rule.source && !is_used && rank < quorum->rule.ranks; rank++) {
    is_used = quorum->rule.source[rank] == source && lcomm_quorum_mask_has(in, rank);
  }
  return is_used;
}

/* In rank order, so that where nobody is late the bits do not depend on who comes first. Of a node
 * that contributes together all ranks are used that are in its contribution, or none. */
static uint32_t sum_up(lcomm_shard_vector *vector, uint64_t round) {
  lcomm_shard_owned *owned = &vector->owned;
  const uint8_t *in = lcomm_quorum_used(&owned->quorum, round);
  uint64_t count = owned->coding.count;
  int size = vector->comm->size;
  begin_sum(vector);
  for (int source = 0; source < size; source++) {
    if (owned->ranks[source].payload && uses(&owned->quorum, in, source)) {
      add(vector->comm, &owned->ranks[source], count, owned->sum);
    }
  }
  return (uint32_t)lcomm_quorum_mask_count(in, size);
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

/* ----------------------------------------------------------------- closing */

bool lcomm_shard_owner_may_close(const lcomm_shard_vector *vector, double now_s) {
  const lcomm_shards *shards = vector->comm->deferred.shards;
  if (!vector->lanes || vector->owned.coding.count == 0) {
    return false;
  }
  const lcomm_stale_rule *rule = &shards->stale.rule;
  if (shards->collects) {
    return lcomm_quorum_is_whole(&vector->owned.quorum, now_s);
  }
  bool waits =
      lcomm_shards_is_server(shards) && !lcomm_stale_is_next(rule, vector->lanes, vector->lane);
  return !waits && lcomm_stale_may_close(rule, vector->lanes, vector->lane, now_s);
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
  const lcomm_stale_rule *rule = &vector->comm->deferred.shards->stale.rule;
  lcomm_shard_round it = {.vector = vector->head,
                          .lane = vector->lane,
                          .first = vector->first + vector->pieces[vector->comm->rank].first,
                          .count = vector->owned.coding.count,
                          .values = vector->owned.sum,
                          .number = lcomm_stale_round(rule, vector->lane, round),
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
