/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What comes from each peer, header by header and payload by payload, and how it is checked. */

#include <string.h>

#include "libcomm/shards/shards_internal.h"

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

/* The transport may not have said yet that the answer before has left. */
bool lcomm_shard_is_next(const lcomm_shard_contribution *from, const lcomm_quorum_rank *source,
                         uint64_t round) {
  return from->answers ? round == source->answered + 1
                       : round == source->answered && (source->announced || source->waiting == 0);
}

/* --------------------------------------------------------------- receiving */

/* A contribution to the piece that this rank owns, or to one that it collects. */
static lcomm_status accept_contribution(lcomm_shards *shards, int peer, lcomm_shard_vector *vector,
                                        const lcomm_shard_header *header, uint8_t **target) {
  return header->owner == (uint32_t)shards->service->rank
             ? lcomm_shard_owner_accept(vector, peer, header, target)
             : lcomm_shard_collect_accept(vector, peer, header, target);
}

/* A result that this rank waits for. */
static lcomm_status accept_result(lcomm_shards *shards, int peer, lcomm_shard_vector *vector,
                                  const lcomm_shard_header *header, uint8_t **target) {
  lcomm_shard_piece *piece = &vector->pieces[header->owner];
  if (piece->via != peer) {
    return lcomm_shard_collect_accept_result(vector, peer, header, target);
  }
  if (!piece->is_expected || header->round + 1 != vector->round) {
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

static lcomm_shard_vector *find_vector(const lcomm_shards *shards, uint32_t number) {
  return number < shards->count ? shards->vectors[number] : NULL;
}

/* A header without a payload. */
static lcomm_status take_word(lcomm_shard_vector *vector, int from,
                              const lcomm_shard_header *header) {
  return header->kind == LCOMM_SHARD_NOTICE ? lcomm_shard_owner_note(vector, from, header)
                                            : lcomm_shard_collect_ask(vector, from, header);
}

static lcomm_status take_header(lcomm_shards *shards, int from) {
  lcomm_shard_peer *peer = &shards->peers[from];
  lcomm_shard_header *header = &peer->header;
  uint8_t *target = NULL;
  int size = shards->service->size;
  if (!lcomm_shard_header_read(peer->bytes, lcomm_shard_header_size(size), size, header)) {
    return lcomm_shards_refuse(shards, from, "it begins with no header");
  }
  lcomm_shard_vector *vector = find_vector(shards, header->vector);
  if (!vector) {
    return lcomm_shards_refuse(shards, from, "it is of a vector that is not there");
  }
  if (header->size == 0) {
    return take_word(vector, from, header);
  }
  LCOMM_TRY(header->kind == LCOMM_SHARD_RESULT
                ? accept_result(shards, from, vector, header, &target)
                : accept_contribution(shards, from, vector, header, &target));
  peer->vector = vector;
  return lcomm_shard_begin_message(shards, false, from, target, (size_t)header->size,
                                   &peer->message);
}

static lcomm_status take_result(lcomm_shards *shards, int from, lcomm_shard_vector *vector) {
  lcomm_shard_peer *peer = &shards->peers[from];
  int owner = (int)peer->header.owner;
  lcomm_shard_piece *piece = &vector->pieces[owner];
  if (piece->via != from) {
    return lcomm_shard_collect_take_result(vector, owner);
  }
  if (!lcomm_shard_is_payload(&piece->result_format, piece->coding.count, piece->result,
                              piece->result_size)) {
    return lcomm_shards_refuse(shards, from, "a result cannot be decoded");
  }
  piece->is_expected = false;
  *(owner == from ? &peer->own : &peer->passed_on) -= 1;
  vector->left--;
  if (vector->left == 0) {
    atomic_store(&vector->here, true);
    lcomm_shards_tell(shards);
  }
  return LCOMM_OK;
}

/* What comes next from a peer is of the round after its answer, which the transport may not have
 * said yet has left. A failure is the service's. */
static bool is_answered(lcomm_shards *shards, int from, lcomm_shard_vector *vector,
                        const lcomm_shard_header *header) {
  bool over = true;
  lcomm_shard_owned *owned = &vector->owned;
  if (header->kind == LCOMM_SHARD_RESULT) {
    return true;
  }
  if (header->owner == (uint32_t)shards->service->rank) {
    if (owned->ranks) {
      (void)lcomm_shard_answer_ends(shards, &owned->ranks[from], &owned->quorum, from, &over);
    }
    return over;
  }
  return header->kind == LCOMM_SHARD_NOTICE ||
         lcomm_shard_collect_is_answered(vector, from, (int)header->owner);
}

/* May a payload be taken, or a header that has none? */
static bool may_take(lcomm_shards *shards, int from) {
  const lcomm_shard_peer *peer = &shards->peers[from];
  lcomm_shard_header header;
  int size = shards->service->size;
  if (peer->vector) {
    return is_answered(shards, from, peer->vector, &peer->header);
  }
  if (!lcomm_shard_header_read(peer->bytes, lcomm_shard_header_size(size), size, &header)) {
    return true;
  }
  lcomm_shard_vector *vector = find_vector(shards, header.vector);
  return !vector || header.kind != LCOMM_SHARD_NOTICE || is_answered(shards, from, vector, &header);
}

static lcomm_status take_contribution(lcomm_shards *shards, int from, lcomm_shard_vector *vector) {
  const lcomm_shard_header *header = &shards->peers[from].header;
  return header->owner == (uint32_t)shards->service->rank
             ? lcomm_shard_owner_take(vector, from, header)
             : lcomm_shard_collect_take(vector, from, header);
}

static lcomm_status take_payload(lcomm_shards *shards, int from) {
  lcomm_shard_peer *peer = &shards->peers[from];
  lcomm_shard_vector *vector = peer->vector;
  peer->vector = NULL;
  return peer->header.kind == LCOMM_SHARD_RESULT ? take_result(shards, from, vector)
                                                 : take_contribution(shards, from, vector);
}

/* A header is always expected, so a peer is served whenever it comes. */
lcomm_status lcomm_shard_receive(lcomm_shards *shards, int from) {
  lcomm_shard_peer *peer = &shards->peers[from];
  for (;;) {
    if (!peer->message) {
      LCOMM_TRY(lcomm_shard_begin_message(shards, false, from, peer->bytes,
                                          lcomm_shard_header_size(shards->service->size),
                                          &peer->message));
    }
    if (!*lcomm_pair_over(peer->message) || !may_take(shards, from)) {
      return LCOMM_OK;
    }
    lcomm_status status = lcomm_pair_collect(shards->service, peer->message);
    peer->message = NULL;
    LCOMM_TRY(status);
    LCOMM_TRY(peer->vector ? take_payload(shards, from) : take_header(shards, from));
  }
}
