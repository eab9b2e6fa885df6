/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The memory of what a rank collects. Results are kept in the first place that is free, so of the
 * places for ranks that are late no page is touched where nobody is. */

#include <stdlib.h>

#include "libcomm/shards/shards_internal.h"

static void *zeros(size_t size, bool *whole) {
  void *memory = calloc(1, size > 0 ? size : 1);
  *whole &= memory != NULL;
  return memory;
}

/* Without more ranks of a node no round can close: so many others may be missing everywhere. */
static int needed_of_node(const lcomm_shards *shards, int ranks) {
  int spare = shards->rule.ranks - shards->rule.needed;
  return ranks > spare ? ranks - spare : 1;
}

static bool make_ranks(const lcomm_comm *comm, lcomm_shard_collected *made, int ranks,
                       uint64_t count) {
  bool whole = true;
  made->ranks = zeros((size_t)ranks * sizeof *made->ranks, &whole);
  for (int local = 0; whole && local < ranks; local++) {
    lcomm_shard_contribution *it = &made->ranks[local];
    it->format = lcomm_format_exact(LCOMM_FLOAT32);
    it->room = lcomm_payload_size(&it->format, count);
    it->payload = zeros(it->room, &whole);
    it->answer.header = zeros(lcomm_shard_header_size(comm->size), &whole);
  }
  return whole;
}

static bool make_results(const lcomm_comm *comm, lcomm_shard_collected *made, size_t room) {
  bool whole = true;
  for (unsigned i = 0; i < comm->deferred.shards->rule.kept; i++) {
    made->results[i].payload = zeros(room, &whole);
    made->results[i].set = zeros(lcomm_quorum_mask_size(comm->size), &whole);
  }
  return whole;
}

/* `place`: of the piece, where what is made can be freed. */
static lcomm_status make(lcomm_shard_vector *vector, const lcomm_shard_request *request, int owner,
                         lcomm_shard_collected **place) {
  const lcomm_comm *comm = vector->comm;
  const lcomm_shard_piece *piece = &vector->pieces[owner];
  lcomm_shards *shards = comm->deferred.shards;
  int ranks = comm->topo.node_size[comm->topo.node[comm->rank]];
  uint64_t count = piece->coding.count;
  bool whole = true;
  lcomm_shard_collected *made = *place = zeros(sizeof *made, &whole);
  if (!whole) {
    return LCOMM_ERR_MEMORY;
  }
  made->owner = owner;
  LCOMM_TRY(lcomm_shard_coding_make(request, &request->format, piece->first, count, &made->coding));
  whole &= lcomm_node_quorum_make(&made->quorum, ranks, needed_of_node(shards, ranks),
                                  shards->rule.kept, shards->comm->settings.timeout_s / 4);
  whole &= make_ranks(comm, made, ranks, count) && make_results(comm, made, piece->result_room);
  made->payload = zeros(made->coding.room, &whole);
  made->set = zeros(lcomm_quorum_mask_size(comm->size), &whole);
  made->sending.header = zeros(lcomm_shard_header_size(comm->size), &whole);
  made->notice.header = zeros(lcomm_shard_header_size(comm->size), &whole);
  made->left = zeros(count * sizeof(float), &whole);
  made->error = zeros(count * sizeof(float), &whole);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

lcomm_status lcomm_shard_collected_make(lcomm_shard_vector *vector,
                                        const lcomm_shard_request *request) {
  const lcomm_comm *comm = vector->comm;
  bool whole = true;
  uint64_t longest = 0;
  vector->collected = zeros((size_t)comm->size * sizeof(lcomm_shard_collected *), &whole);
  for (int owner = 0; whole && owner < comm->size; owner++) {
    uint64_t count = vector->pieces[owner].coding.count;
    if (count > 0 && lcomm_shard_collector(&comm->topo, comm->rank, owner) == comm->rank) {
      LCOMM_TRY(make(vector, request, owner, &vector->collected[owner]));
      longest = count > longest ? count : longest;
    }
  }
  vector->node_sum = zeros(longest * sizeof(float), &whole);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* ------------------------------------------------------------------ freeing */

static void free_collected(lcomm_shard_collected *it, int ranks) {
  for (int local = 0; it->ranks && local < ranks; local++) {
    free(it->ranks[local].payload);
    free(it->ranks[local].answer.header);
  }
  for (int i = 0; i < LCOMM_SHARD_KEPT; i++) {
    free(it->results[i].payload);
    free(it->results[i].set);
  }
  free(it->ranks);
  lcomm_node_quorum_free(&it->quorum);
  lcomm_topk_destroy(it->coding.topk);
  free(it->payload);
  free(it->set);
  free(it->sending.header);
  free(it->notice.header);
  free(it->left);
  free(it->error);
  free(it);
}

void lcomm_shard_collected_free(lcomm_shard_vector *vector) {
  const lcomm_topo *topo = &vector->comm->topo;
  for (int owner = 0; vector->collected && owner < vector->comm->size; owner++) {
    if (vector->collected[owner]) {
      free_collected(vector->collected[owner], topo->node_size[topo->node[vector->comm->rank]]);
    }
  }
  free(vector->collected);
  free(vector->node_sum);
}

static bool sends(lcomm_shards *shards, lcomm_shard_collected *it, int ranks) {
  bool over, all_over = true;
  (void)lcomm_shard_send_ends(shards, &it->sending, &over);
  all_over &= over;
  (void)lcomm_shard_send_ends(shards, &it->notice, &over);
  all_over &= over;
  for (int local = 0; local < ranks; local++) {
    (void)lcomm_shard_send_ends(shards, &it->ranks[local].answer, &over);
    all_over &= over;
  }
  return !all_over;
}

bool lcomm_shard_collected_sends(lcomm_shard_vector *vector) {
  const lcomm_topo *topo = &vector->comm->topo;
  bool sends_any = false;
  for (int owner = 0; vector->collected && owner < vector->comm->size; owner++) {
    lcomm_shard_collected *it = vector->collected[owner];
    sends_any |= it && sends(vector->comm->deferred.shards, it,
                             topo->node_size[topo->node[vector->comm->rank]]);
  }
  return sends_any;
}
