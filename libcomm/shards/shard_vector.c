/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The memory of a chunk of a vector: its pieces, contributions and results. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/entry.h"
#include "libcomm/shards/shards_internal.h"

/* ------------------------------------------------------------------- making */

static void *zeros(size_t size, bool *whole) {
  void *memory = calloc(1, size > 0 ? size : 1);
  *whole &= memory != NULL;
  return memory;
}

static lcomm_status make_piece(lcomm_shard_vector *vector, const lcomm_shard_request *request,
                               int owner) {
  const lcomm_comm *comm = vector->comm;
  lcomm_shard_piece *piece = &vector->pieces[owner];
  int collector =
      comm->deferred.shards->collects ? lcomm_shard_collector(&comm->topo, comm->rank, owner) : -1;
  piece->via = collector >= 0 ? collector : owner;
  lcomm_format format = lcomm_shard_format_between(comm, request, comm->rank, piece->via);
  lcomm_shard_coding results = {0};
  uint64_t count = piece->coding.count;
  bool whole = true;
  piece->result_format = lcomm_shard_format_of_results(comm, request);
  if (count == 0 || lcomm_shards_is_server(comm->deferred.shards)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_shard_coding_make(request, &format, piece->first, count, &piece->coding));
  LCOMM_TRY(lcomm_shard_coding_make(request, &piece->result_format, piece->first, count, &results));
  lcomm_topk_destroy(results.topk);
  piece->result_room = results.room;
  piece->payload = zeros(piece->coding.room, &whole);
  piece->result = zeros(results.room, &whole);
  piece->used = zeros(lcomm_quorum_mask_size(comm->size), &whole);
  piece->sending.header = zeros(lcomm_shard_header_size(comm->size), &whole);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static lcomm_status make_contribution(lcomm_shard_vector *vector,
                                      const lcomm_shard_request *request, int rank) {
  const lcomm_comm *comm = vector->comm;
  lcomm_shard_owned *owned = &vector->owned;
  lcomm_shard_contribution *it = &owned->ranks[rank];
  lcomm_shard_coding coding;
  bool whole = true;
  it->format = lcomm_shard_format_between(comm, request, rank, comm->rank);
  LCOMM_TRY(lcomm_shard_coding_make(request, &it->format, vector->pieces[comm->rank].first,
                                    owned->coding.count, &coding));
  lcomm_topk_destroy(coding.topk);
  it->room = coding.room;
  it->payload = zeros(it->room, &whole);
  it->answer.header = zeros(lcomm_shard_header_size(comm->size), &whole);
  it->request.header = zeros(lcomm_shard_header_size(comm->size), &whole);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* By whom the contributions of each rank come. */
static bool set_sources(lcomm_shard_vector *vector, lcomm_quorum_rule *rule) {
  const lcomm_comm *comm = vector->comm;
  lcomm_shard_owned *owned = &vector->owned;
  if (!comm->deferred.shards->collects) {
    return true;
  }
  owned->source = calloc((size_t)comm->size, sizeof *owned->source);
  for (int rank = 0; owned->source && rank < comm->size; rank++) {
    int collector = lcomm_shard_collector(&comm->topo, rank, comm->rank);
    owned->source[rank] = collector >= 0 ? collector : rank;
  }
  rule->source = owned->source;
  return owned->source != NULL;
}

static bool contributes(const lcomm_shard_vector *vector, int rank) {
  const lcomm_shards *shards = vector->comm->deferred.shards;
  return !lcomm_shard_roles_serves(&shards->roles, rank) &&
         lcomm_quorum_is_of(&vector->owned.quorum, rank, rank);
}

static lcomm_status make_owned(lcomm_shard_vector *vector, const lcomm_shard_request *request,
                               const lcomm_quorum_rule *of_all) {
  const lcomm_comm *comm = vector->comm;
  const lcomm_shard_piece *own = &vector->pieces[comm->rank];
  lcomm_shard_owned *owned = &vector->owned;
  lcomm_quorum_rule rule = *of_all;
  bool whole = set_sources(vector, &rule) && lcomm_quorum_make(&owned->quorum, &rule);
  if (own->coding.count == 0) {
    return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
  }
  LCOMM_TRY(lcomm_shard_coding_make(request, &own->result_format, own->first, own->coding.count,
                                    &owned->coding));
  owned->ranks = zeros((size_t)comm->size * sizeof *owned->ranks, &whole);
  owned->sum = zeros(owned->coding.count * sizeof(float), &whole);
  owned->error = zeros(owned->coding.count * sizeof(float), &whole);
  owned->left = zeros(owned->coding.topk ? owned->coding.count * sizeof(float) : 0, &whole);
  for (unsigned i = 0; i < rule.kept; i++) {
    owned->results[i].payload = zeros(owned->coding.room, &whole);
  }
  for (int rank = 0; whole && rank < comm->size; rank++) {
    LCOMM_TRY(contributes(vector, rank) ? make_contribution(vector, request, rank) : LCOMM_OK);
  }
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* The bytes count in the one that was cut. */
static void cut_like(lcomm_shard_vector *vector, const lcomm_shard_vector *like) {
  for (int owner = 0; owner < vector->comm->size; owner++) {
    vector->pieces[owner].first = like->pieces[owner].first;
    vector->pieces[owner].coding.count = like->pieces[owner].coding.count;
  }
}

static lcomm_status cut(lcomm_shard_vector *vector, const lcomm_shard_request *request) {
  const lcomm_comm *comm = vector->comm;
  if (request->like) {
    cut_like(vector, request->like);
    return LCOMM_OK;
  }
  lcomm_shard_cut_piece *pieces = calloc((size_t)comm->size, sizeof *pieces);
  if (!pieces) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_shard_cut(&comm->deferred.shards->roles, vector->count, lcomm_shard_bytes(comm, request),
                  pieces);
  for (int owner = 0; owner < comm->size; owner++) {
    vector->pieces[owner].first = pieces[owner].first;
    vector->pieces[owner].bytes = pieces[owner].bytes;
    vector->pieces[owner].coding.count = pieces[owner].count;
  }
  free(pieces);
  return LCOMM_OK;
}

static uint64_t longest_piece(const lcomm_shard_vector *vector) {
  uint64_t longest = 0;
  for (int owner = 0; owner < vector->comm->size; owner++) {
    uint64_t count = vector->pieces[owner].coding.count;
    longest = count > longest ? count : longest;
  }
  return longest;
}

static lcomm_status fill(lcomm_shard_vector *vector, const lcomm_shard_request *request,
                         const lcomm_quorum_rule *rule) {
  const lcomm_comm *comm = vector->comm;
  bool whole = true;
  vector->pieces = zeros((size_t)comm->size * sizeof *vector->pieces, &whole);
  LCOMM_TRY(whole ? cut(vector, request) : LCOMM_ERR_MEMORY);
  for (int owner = 0; whole && owner < comm->size; owner++) {
    LCOMM_TRY(make_piece(vector, request, owner));
  }
  LCOMM_TRY(whole ? make_owned(vector, request, rule) : LCOMM_ERR_MEMORY);
  LCOMM_TRY(comm->deferred.shards->collects ? lcomm_shard_collected_make(vector, request)
                                            : LCOMM_OK);
  vector->scratch = zeros(longest_piece(vector) * sizeof(float), &whole);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* ------------------------------------------------------------------ freeing */

static void free_piece(lcomm_shard_piece *piece) {
  lcomm_topk_destroy(piece->coding.topk);
  free(piece->payload);
  free(piece->result);
  free(piece->used);
  free(piece->sending.header);
}

static void free_owned(const lcomm_comm *comm, lcomm_shard_owned *owned) {
  for (int rank = 0; owned->ranks && rank < comm->size; rank++) {
    free(owned->ranks[rank].payload);
    free(owned->ranks[rank].answer.header);
    free(owned->ranks[rank].request.header);
  }
  for (int i = 0; i < LCOMM_SHARD_KEPT; i++) {
    free(owned->results[i].payload);
  }
  free(owned->ranks);
  free(owned->sum);
  free(owned->error);
  free(owned->left);
  lcomm_topk_destroy(owned->coding.topk);
  lcomm_quorum_free(&owned->quorum);
  free(owned->source);
}

static void free_memory(lcomm_shard_vector *vector) {
  for (int owner = 0; vector->pieces && owner < vector->comm->size; owner++) {
    lcomm_shard_uncut(&vector->comm->deferred.shards->roles, owner, vector->pieces[owner].bytes);
    free_piece(&vector->pieces[owner]);
  }
  free_owned(vector->comm, &vector->owned);
  lcomm_shard_collected_free(vector);
  free(vector->pieces);
  free(vector->scratch);
  free(vector);
}

/* Does a message of the vector still read or write its memory? */
static bool is_sending(lcomm_shards *shards, lcomm_shard_vector *vector) {
  bool over, all_over = true;
  for (int i = 0; i < shards->service->size; i++) {
    (void)lcomm_shard_send_ends(shards, &vector->pieces[i].sending, &over);
    all_over &= over;
    if (vector->owned.ranks) {
      (void)lcomm_shard_send_ends(shards, &vector->owned.ranks[i].answer, &over);
      all_over &= over;
      (void)lcomm_shard_send_ends(shards, &vector->owned.ranks[i].request, &over);
      all_over &= over;
    }
  }
  return !all_over || lcomm_shard_collected_sends(vector);
}

/* What was sent has arrived, as its receivers have gone on; the transport has not said so yet. */
static void finish_messages(lcomm_shards *shards, lcomm_shard_vector *vector) {
  lcomm_comm *service = shards->service;
  if (lcomm_enter(service) != LCOMM_OK) {
    return;
  }
  while (is_sending(shards, vector)) {
    (void)lcomm_engine_progress(service);
    if (atomic_load(&service->errors.status) != LCOMM_OK) {
      lcomm_pairs_cancel(service);
    }
  }
  shards->vectors[vector->number] = NULL;
  lcomm_exit(service);
}

void lcomm_shard_chunk_free(lcomm_shard_vector *vector) {
  finish_messages(vector->comm->deferred.shards, vector);
  free_memory(vector);
}

/* ------------------------------------------------------------------ listing */

static bool make_room(lcomm_shards *shards, uint32_t number) {
  if (number < shards->room) {
    return true;
  }
  uint32_t room = 2 * number + 8;
  lcomm_shard_vector **grown = realloc(shards->vectors, room * sizeof(lcomm_shard_vector *));
  if (!grown) {
    return false;
  }
  memset(grown + shards->room, 0, (room - shards->room) * sizeof(lcomm_shard_vector *));
  shards->vectors = grown;
  shards->room = room;
  return true;
}

/* Ranks make those of one space in the same order, so its number is the same on all. */
static bool list(lcomm_shards *shards, lcomm_shard_vector *vector, lcomm_sequence_space space) {
  uint32_t number = shards->made[space] * LCOMM_SEQUENCE_SPACE_COUNT + space;
  if (!make_room(shards, number)) {
    return false;
  }
  vector->number = number;
  shards->vectors[number] = vector;
  shards->count = number < shards->count ? shards->count : number + 1;
  shards->made[space]++;
  return true;
}

lcomm_status lcomm_shard_chunk_make(lcomm_comm *comm, const lcomm_shard_request *request,
                                    lcomm_shard_vector **vector) {
  lcomm_shards *shards = comm->deferred.shards;
  lcomm_shard_vector *made = calloc(1, sizeof *made);
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->comm = comm;
  made->first = request->first;
  made->count = request->count;
  made->op = request->op;
  lcomm_status status = fill(made, request, &shards->rule);
  LCOMM_TRY(lcomm_enter(shards->service));
  if (status == LCOMM_OK && !list(shards, made, request->space)) {
    status = LCOMM_ERR_MEMORY;
  }
  lcomm_exit(shards->service);
  if (status != LCOMM_OK) {
    free_memory(made);
    return status;
  }
  *vector = made;
  return LCOMM_OK;
}
