/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The messages of the service: what comes from each peer, header by header and payload by payload,
 * and what is sent. */

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/shards/shards_internal.h"

/* ------------------------------------------------------------------ sending */

static lcomm_status begin_message(lcomm_shards *shards, bool is_send, int peer, uint8_t *bytes,
                                  size_t size, lcomm_pair_message **message) {
  lcomm_pair_call call = {.is_send = is_send,
                          .is_kept = true,
                          .data = {.data = bytes, .count = size, .dtype = LCOMM_UINT8},
                          .peer = peer};
  return lcomm_pair_begin(shards->service, &call, message);
}

/* What a rank sends to itself travels nowhere. */
static void count_saved(lcomm_shards *shards, int peer, size_t size, uint64_t count) {
  const lcomm_comm *service = shards->service;
  if (peer != service->rank) {
    lcomm_link link = lcomm_topo_link(&service->topo, service->rank, peer);
    shards->saved_bytes[link] += count * sizeof(float) - size;
  }
}

lcomm_status lcomm_shard_send(lcomm_shards *shards, int peer, lcomm_shard_sending *sending,
                              uint8_t *payload, size_t size, uint64_t count) {
  LCOMM_TRY(begin_message(shards, true, peer, sending->header,
                          lcomm_shard_header_size(shards->service->size), &sending->messages[0]));
  count_saved(shards, peer, size, count);
  return begin_message(shards, true, peer, payload, size, &sending->messages[1]);
}

lcomm_status lcomm_shard_send_ends(lcomm_shards *shards, lcomm_shard_sending *sending, bool *over) {
  lcomm_status status = LCOMM_OK;
  *over = true;
  for (int i = 0; i < 2; i++) {
    if (sending->messages[i] && *lcomm_pair_over(sending->messages[i])) {
      status =
          lcomm_first_failure(status, lcomm_pair_collect(shards->service, sending->messages[i]));
      sending->messages[i] = NULL;
    }
    *over &= !sending->messages[i];
  }
  return status;
}

void lcomm_shard_queue_add(lcomm_shard_queue *queue, lcomm_shard_vector *vector,
                           lcomm_shard_vector **next_of_last) {
  if (queue->last) {
    *next_of_last = vector;
  } else {
    queue->first = vector;
  }
  queue->last = vector;
}

/* ---------------------------------------------------------- bytes of a peer */

lcomm_status lcomm_shards_refuse(lcomm_shards *shards, int peer, const char *what) {
  char who[96];
  lcomm_comm *service = shards->service;
  return lcomm_fail(service, LCOMM_ERR_WIRE,
                    "a message of a sum with %s from %s is malformed: %s. Check that all ranks "
                    "run the same libcomm, and the network.",
                    shards->word, lcomm_comm_who(service, peer, who, sizeof(who)), what);
}

bool lcomm_shard_is_size(const lcomm_format *format, uint64_t count, size_t room, uint64_t size) {
  return lcomm_format_is_sparse(format) ? size <= room : size == lcomm_payload_size(format, count);
}

bool lcomm_shard_is_payload(const lcomm_format *format, uint64_t count, const uint8_t *payload,
                            size_t size) {
  return !lcomm_format_is_sparse(format) ||
         lcomm_topk_check(format, payload, size, count, NULL) == LCOMM_OK;
}

/* --------------------------------------------------------------- receiving */

/* A contribution that is the next one of its rank. */
static lcomm_status accept_contribution(lcomm_shards *shards, int peer, lcomm_shard_vector *vector,
                                        const lcomm_shard_header *header, uint8_t **target) {
  lcomm_shard_owned *owned = &vector->owned;
  if (owned->coding.count == 0 || lcomm_shard_roles_serves(&shards->roles, peer)) {
    return lcomm_shards_refuse(shards, peer, "it contributes to a piece that is not there");
  }
  const lcomm_quorum_rank *it = &owned->quorum.ranks[peer];
  lcomm_shard_contribution *from = &owned->ranks[peer];
  if (header->round != it->came || (it->came != it->answered && !from->answers)) {
    return lcomm_shards_refuse(shards, peer, "it contributes to another round than the next one");
  }
  if (!lcomm_shard_is_size(&from->format, owned->coding.count, from->room, header->size)) {
    return lcomm_shards_refuse(shards, peer, "a contribution has another length than its piece");
  }
  from->size = (size_t)header->size;
  *target = from->payload;
  return LCOMM_OK;
}

/* The result that is expected next from the peer. */
static lcomm_status accept_result(lcomm_shards *shards, int peer, lcomm_shard_vector *vector,
                                  const lcomm_shard_header *header, uint8_t **target) {
  lcomm_shard_piece *piece = &vector->pieces[peer];
  if (shards->peers[peer].results.first != vector || header->round + 1 != vector->round) {
    return lcomm_shards_refuse(shards, peer, "it brings a result that nobody waits for");
  }
  if (!lcomm_shard_is_size(&piece->result_format, piece->coding.count, piece->result_room,
                           header->size)) {
    return lcomm_shards_refuse(shards, peer, "a result has another length than its piece");
  }
  piece->result_size = (size_t)header->size;
  piece->closed = header->closed;
  memcpy(piece->used, header->mask, lcomm_shards_mask(shards));
  *target = piece->result;
  return LCOMM_OK;
}

static lcomm_status take_header(lcomm_shards *shards, int from) {
  lcomm_shard_peer *peer = &shards->peers[from];
  lcomm_shard_header header;
  uint8_t *target = NULL;
  int size = shards->service->size;
  if (!lcomm_shard_header_read(peer->bytes, lcomm_shard_header_size(size), size, &header)) {
    return lcomm_shards_refuse(shards, from, "it begins with no header");
  }
  lcomm_shard_vector *vector =
      header.vector < shards->count ? shards->vectors[header.vector] : NULL;
  if (!vector) {
    return lcomm_shards_refuse(shards, from, "it is of a vector that is not there");
  }
  LCOMM_TRY(header.kind == LCOMM_SHARD_RESULT
                ? accept_result(shards, from, vector, &header, &target)
                : accept_contribution(shards, from, vector, &header, &target));
  peer->kind = header.kind;
  peer->vector = vector;
  return begin_message(shards, false, from, target, (size_t)header.size, &peer->message);
}

static lcomm_status take_result(lcomm_shards *shards, int from, lcomm_shard_vector *vector) {
  lcomm_shard_piece *piece = &vector->pieces[from];
  lcomm_shard_queue *expected = &shards->peers[from].results;
  if (!lcomm_shard_is_payload(&piece->result_format, piece->coding.count, piece->result,
                              piece->result_size)) {
    return lcomm_shards_refuse(shards, from, "a result cannot be decoded");
  }
  expected->first = piece->next;
  expected->last = expected->first ? expected->last : NULL;
  piece->next = NULL;
  vector->left--;
  if (vector->left == 0) {
    atomic_store(&vector->here, true);
    lcomm_shards_tell(shards);
  }
  return LCOMM_OK;
}

/* The transport may say later that the answer before has left than its receiver goes on. */
static bool is_answered(lcomm_shards *shards, int from, const lcomm_shard_peer *peer) {
  bool over = true;
  if (peer->vector && peer->kind == LCOMM_SHARD_CONTRIBUTION) {
    lcomm_shard_contribution *it = &peer->vector->owned.ranks[from];
    (void)lcomm_shard_send_ends(shards, &it->answer, &over); /* a failure is the service's */
    if (it->answers && over) {
      it->answers = false;
      lcomm_quorum_answered(&peer->vector->owned.quorum, from);
    }
  }
  return over;
}

static lcomm_status take_payload(lcomm_shards *shards, int from) {
  lcomm_shard_peer *peer = &shards->peers[from];
  lcomm_shard_vector *vector = peer->vector;
  peer->vector = NULL;
  return peer->kind == LCOMM_SHARD_RESULT ? take_result(shards, from, vector)
                                          : lcomm_shard_owner_take(vector, from);
}

/* A header is always expected, so a peer is served whenever it comes. */
static lcomm_status serve_peer(lcomm_shards *shards, int from) {
  lcomm_shard_peer *peer = &shards->peers[from];
  for (;;) {
    if (!peer->message) {
      LCOMM_TRY(begin_message(shards, false, from, peer->bytes,
                              lcomm_shard_header_size(shards->service->size), &peer->message));
    }
    if (!*lcomm_pair_over(peer->message) || !is_answered(shards, from, peer)) {
      return LCOMM_OK;
    }
    lcomm_status status = lcomm_pair_collect(shards->service, peer->message);
    peer->message = NULL;
    LCOMM_TRY(status);
    LCOMM_TRY(peer->vector ? take_payload(shards, from) : take_header(shards, from));
  }
}

/* ------------------------------------------------------------------- the hook */

/* A server's rounds are closed by the thread that serves. */
static lcomm_status look_after(lcomm_shards *shards, lcomm_shard_vector *vector, double now_s,
                               double *due_s, bool *asks) {
  LCOMM_TRY(lcomm_shard_owner_look(vector, now_s, due_s));
  if (!lcomm_shard_owner_may_close(vector, now_s)) {
    return LCOMM_OK;
  }
  if (lcomm_shards_is_server(shards)) {
    *asks = true;
    return LCOMM_OK;
  }
  uint64_t round = lcomm_shard_owner_close(vector);
  (void)lcomm_shard_owner_compute(vector, round, NULL, NULL);
  vector->owned.results[round % shards->rule.kept].is_ready = true;
  return lcomm_shard_owner_look(vector, now_s, due_s);
}

static lcomm_status serve(lcomm_shards *shards) {
  double due_s = 0, now_s;
  bool asks = false;
  int size = shards->service->size;
  for (int peer = 0; peer < size; peer++) {
    LCOMM_TRY(serve_peer(shards, peer));
  }
  now_s = lcomm_clock_s();
  for (uint32_t i = 0; i < shards->count; i++) {
    bool owns = shards->vectors[i] && shards->vectors[i]->lanes &&
                shards->vectors[i]->owned.coding.count > 0;
    LCOMM_TRY(owns ? look_after(shards, shards->vectors[i], now_s, &due_s, &asks) : LCOMM_OK);
  }
  if (asks) {
    lcomm_shards_ask_server(shards);
  }
  for (int peer = 0; peer < size; peer++) {
    LCOMM_TRY(lcomm_shard_owner_answer(shards, peer));
  }
  shards->service->deferred.due_s = due_s;
  return LCOMM_OK;
}

lcomm_status lcomm_shards_serve(lcomm_comm *service) {
  lcomm_shards *shards = service->deferred.shards;
  lcomm_status status = serve(shards);
  if (status != LCOMM_OK) {
    lcomm_shards_tell(shards);
  }
  return status;
}
