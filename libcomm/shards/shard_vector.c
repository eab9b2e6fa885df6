/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The memory of a vector: pieces and their codings, contributions and results. */

#include <stdlib.h>

#include "libcomm/engine/entry.h"
#include "libcomm/shards/shards_internal.h"

/* ------------------------------------------------------------------ codings */

/* Where segments end inside a piece, and which share of each is kept. */
typedef struct segments {
  uint64_t *ends;
  double *densities;
  size_t count;
} segments;

static double density_of(const lcomm_format *format, uint64_t count) {
  double density = format->density > 0 ? format->density : (double)format->kept / (double)count;
  return density < 1 ? density : 1;
}

static void cut_segments(const lcomm_shard_request *request, uint64_t first, uint64_t count,
                         segments *cut) {
  uint64_t begin = 0;
  for (size_t i = 0; i < request->segments; i++) {
    uint64_t end = request->segment_ends[i];
    uint64_t last = end < first + count ? end : first + count;
    bool inside = last > first && begin < first + count && last > begin;
    if (inside) {
      cut->ends[cut->count] = last - first;
      cut->densities[cut->count++] = density_of(&request->format, end - begin);
    }
    begin = end;
  }
}

static lcomm_status make_topk(const lcomm_shard_request *request, uint64_t first,
                              lcomm_shard_coding *coding) {
  segments cut = {.ends = calloc(request->segments, sizeof *cut.ends),
                  .densities = calloc(request->segments, sizeof *cut.densities)};
  lcomm_status status = cut.ends && cut.densities ? LCOMM_OK : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    cut_segments(request, first, coding->count, &cut);
    lcomm_topk_shape shape = {.base_count = coding->count,
                              .parts = 1,
                              .outputs = 1,
                              .format = &coding->format,
                              .segment_ends = cut.ends,
                              .segment_densities = cut.densities,
                              .segments = cut.count};
    status = lcomm_topk_create(&shape, &coding->topk);
  }
  free(cut.ends);
  free(cut.densities);
  coding->room = status == LCOMM_OK ? lcomm_topk_output_bound(coding->topk, 0) : 0;
  return status;
}

static lcomm_status make_coding(const lcomm_shard_request *request, const lcomm_format *format,
                                uint64_t first, uint64_t count, lcomm_shard_coding *coding) {
  *coding = (lcomm_shard_coding){.format = *format, .count = count};
  if (lcomm_format_is_sparse(format)) {
    return make_topk(request, first, coding);
  }
  coding->room = lcomm_payload_size(format, count);
  return LCOMM_OK;
}

/* What is exact inside a node: all where there is one node. */
static lcomm_format format_between(const lcomm_comm *comm, const lcomm_shard_request *request,
                                   int rank, int owner) {
  const int *node = comm->topo.node;
  return node[rank] == node[owner] ? lcomm_format_exact(LCOMM_FLOAT32) : request->format;
}

static lcomm_format format_of_results(const lcomm_comm *comm, const lcomm_shard_request *request) {
  return comm->topo.nodes > 1 ? request->format : lcomm_format_exact(LCOMM_FLOAT32);
}

void lcomm_shard_decode(const lcomm_comm *comm, const lcomm_format *format, uint64_t count,
                        const uint8_t *payload, float *values) {
  if (lcomm_format_is_sparse(format)) {
    lcomm_topk_decode(format, payload, count, 1, 0, 1.0f, values);
  } else {
    lcomm_decode(format, comm->kernels, payload, lcomm_range_whole(count), 1.0f, values);
  }
}

/* ------------------------------------------------------------------- making */

static void *zeros(size_t size, bool *whole) {
  void *memory = calloc(1, size > 0 ? size : 1);
  *whole &= memory != NULL;
  return memory;
}

/* Pieces are whole blocks; the last ones may be empty. */
static uint64_t piece_of(uint64_t count, int size, int owner, uint64_t *first) {
  uint64_t share = (count + (uint64_t)size - 1) / (uint64_t)size;
  uint64_t piece = (share + LCOMM_BLOCK - 1) / LCOMM_BLOCK * LCOMM_BLOCK;
  *first = piece * (uint64_t)owner < count ? piece * (uint64_t)owner : count;
  return count - *first < piece ? count - *first : piece;
}

static lcomm_status make_piece(lcomm_shard_vector *vector, const lcomm_shard_request *request,
                               int owner) {
  const lcomm_comm *comm = vector->comm;
  lcomm_shard_piece *piece = &vector->pieces[owner];
  lcomm_format format = format_between(comm, request, comm->rank, owner);
  lcomm_shard_coding results = {0};
  uint64_t count = piece_of(vector->count, comm->size, owner, &piece->first);
  bool whole = true;
  if (count == 0) {
    return LCOMM_OK;
  }
  LCOMM_TRY(make_coding(request, &format, piece->first, count, &piece->coding));
  piece->result_format = format_of_results(comm, request);
  LCOMM_TRY(make_coding(request, &piece->result_format, piece->first, count, &results));
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
  it->format = format_between(comm, request, rank, comm->rank);
  LCOMM_TRY(make_coding(request, &it->format, vector->pieces[comm->rank].first, owned->coding.count,
                        &coding));
  lcomm_topk_destroy(coding.topk);
  it->room = coding.room;
  it->payload = zeros(it->room, &whole);
  it->answer.header = zeros(lcomm_shard_header_size(comm->size), &whole);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static lcomm_status make_owned(lcomm_shard_vector *vector, const lcomm_shard_request *request,
                               const lcomm_quorum_rule *rule) {
  const lcomm_comm *comm = vector->comm;
  const lcomm_shard_piece *own = &vector->pieces[comm->rank];
  lcomm_shard_owned *owned = &vector->owned;
  bool whole = lcomm_quorum_make(&owned->quorum, rule);
  if (own->coding.count == 0) {
    return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
  }
  LCOMM_TRY(
      make_coding(request, &own->result_format, own->first, own->coding.count, &owned->coding));
  owned->ranks = zeros((size_t)comm->size * sizeof *owned->ranks, &whole);
  owned->sum = zeros(owned->coding.count * sizeof(float), &whole);
  owned->error = zeros(owned->coding.count * sizeof(float), &whole);
  owned->left = zeros(owned->coding.topk ? owned->coding.count * sizeof(float) : 0, &whole);
  for (int i = 0; i < LCOMM_SHARD_KEPT; i++) {
    owned->results[i].payload = zeros(owned->coding.room, &whole);
  }
  for (int rank = 0; whole && rank < comm->size; rank++) {
    LCOMM_TRY(make_contribution(vector, request, rank));
  }
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static lcomm_status fill(lcomm_shard_vector *vector, const lcomm_shard_request *request,
                         const lcomm_quorum_rule *rule) {
  const lcomm_comm *comm = vector->comm;
  bool whole = true;
  vector->pieces = zeros((size_t)comm->size * sizeof *vector->pieces, &whole);
  for (int owner = 0; whole && owner < comm->size; owner++) {
    LCOMM_TRY(make_piece(vector, request, owner));
  }
  LCOMM_TRY(whole ? make_owned(vector, request, rule) : LCOMM_ERR_MEMORY);
  vector->scratch = zeros(vector->pieces[0].coding.count * sizeof(float), &whole);
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
}

static void free_memory(lcomm_shard_vector *vector) {
  for (int owner = 0; vector->pieces && owner < vector->comm->size; owner++) {
    free_piece(&vector->pieces[owner]);
  }
  free_owned(vector->comm, &vector->owned);
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
    }
  }
  return !all_over;
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

void lcomm_shard_vector_free(lcomm_shard_vector *vector) {
  if (!vector) {
    return;
  }
  finish_messages(vector->comm->deferred.shards, vector);
  free_memory(vector);
}

/* ------------------------------------------------------------------ listing */

static bool list(lcomm_shards *shards, lcomm_shard_vector *vector) {
  if (shards->count == shards->room) {
    uint32_t room = 2 * shards->room + 8;
    lcomm_shard_vector **grown = realloc(shards->vectors, room * sizeof(lcomm_shard_vector *));
    if (!grown) {
      return false;
    }
    shards->vectors = grown;
    shards->room = room;
  }
  vector->number = shards->count;
  shards->vectors[shards->count++] = vector;
  return true;
}

lcomm_status lcomm_shard_vector_make(lcomm_comm *comm, const lcomm_shard_request *request,
                                     lcomm_shard_vector **vector) {
  lcomm_shards *shards = comm->deferred.shards;
  lcomm_shard_vector *made = calloc(1, sizeof *made);
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->comm = comm;
  made->count = request->count;
  made->op = request->op;
  lcomm_status status = fill(made, request, &shards->rule);
  LCOMM_TRY(lcomm_enter(shards->service));
  if (status == LCOMM_OK && !list(shards, made)) {
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
