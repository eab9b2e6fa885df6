/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks on their way: header, request for long data, pieces. */

#include <string.h>

#include "libcomm/engine/pair_internal.h"
#include "libcomm/engine/pair_move.h"

/* Those of a queue follow each other with equal tags. */
enum {
  HEADER_TAG = LCOMM_TAG_CONTROL | 32,
  REQUEST_TAG = LCOMM_TAG_CONTROL | 33,
  PIECE_TAG = LCOMM_TAG_CONTROL | 34
};

static lcomm_status link_failed(lcomm_comm *comm, int peer) {
  char who[96];
  const lcomm_transport *link = lcomm_comm_link(comm, peer);
  return lcomm_fail_peer(comm, LCOMM_ERR_TRANSPORT, peer,
                         "a message between this rank and %s failed: %s. Look at the network and "
                         "at the peer's log.",
                         lcomm_comm_who(comm, peer, who, sizeof(who)), link->why);
}

static lcomm_status malformed(lcomm_comm *comm, int peer) {
  char who[96];
  return lcomm_fail(comm, LCOMM_ERR_WIRE,
                    "a message from %s is malformed. Check that all ranks run the same libcomm, "
                    "and the network.",
                    lcomm_comm_who(comm, peer, who, sizeof(who)));
}

/* The sentence is the same whichever rank finds it. */
static lcomm_status other_message(lcomm_comm *comm, int sender, int receiver,
                                  const lcomm_pair_header *sent,
                                  const lcomm_pair_header *received) {
  char from[96], to[96];
  return lcomm_fail_for(comm, LCOMM_ERR_MISMATCH, receiver,
                        "message #%u: %s sends %llu %s, and %s receives %llu %s. The n-th send to "
                        "a rank and its n-th "
                        "receive must have the same count and type.",
                        sent->number, lcomm_comm_who(comm, sender, from, sizeof(from)),
                        (unsigned long long)sent->count, lcomm_dtype_name(sent->dtype),
                        lcomm_comm_who(comm, receiver, to, sizeof(to)),
                        (unsigned long long)received->count, lcomm_dtype_name(received->dtype));
}

static bool are_equal(const lcomm_pair_header *a, const lcomm_pair_header *b) {
  return a->count == b->count && a->dtype == b->dtype && a->number == b->number;
}

/* --------------------------------------------------------------- transfers */

static lcomm_status post(lcomm_comm *comm, const lcomm_pair_message *it, bool sends, uint32_t tag,
                         void *bytes, size_t size, lcomm_transfer *transfer, bool *posted) {
  lcomm_transport *link = lcomm_comm_link(comm, it->peer);
  lcomm_status status = sends ? link->table->send(link, it->peer, tag, bytes, size, transfer)
                              : link->table->receive(link, it->peer, tag, bytes, size, transfer);
  *posted = status == LCOMM_OK;
  return status == LCOMM_OK ? LCOMM_OK : link_failed(comm, it->peer);
}

/* Clears *posted when the transfer is over. */
static lcomm_status test(lcomm_comm *comm, const lcomm_pair_message *it, lcomm_transfer *transfer,
                         bool *posted, size_t *size, bool *moved) {
  bool over = false;
  if (!*posted) {
    return LCOMM_OK;
  }
  lcomm_transport *link = lcomm_comm_link(comm, it->peer);
  if (link->table->test(link, transfer, &over, size) != LCOMM_OK) {
    *posted = false;
    return link_failed(comm, it->peer);
  }
  *posted = !over;
  *moved |= over;
  return LCOMM_OK;
}

static lcomm_status post_piece(lcomm_comm *comm, lcomm_pair_message *it) {
  uint8_t *at;
  size_t size = lcomm_pair_piece(it, it->piece, &at);
  return post(comm, it, it->is_send, PIECE_TAG, at, size, &it->piece_transfer, &it->piece_posted);
}

static void forget(lcomm_comm *comm, int peer, lcomm_transfer *transfer, bool *posted) {
  if (*posted) {
    lcomm_transport *link = lcomm_comm_link(comm, peer);
    link->table->cancel(link, transfer);
    *posted = false;
  }
}

void lcomm_pair_forget(lcomm_comm *comm, lcomm_pair_message *it) {
  forget(comm, it->peer, &it->header_transfer, &it->header_posted);
  forget(comm, it->peer, &it->request_transfer, &it->request_posted);
  forget(comm, it->peer, &it->piece_transfer, &it->piece_posted);
}

/* ------------------------------------------------------------------ sending */

static lcomm_status begin_send(lcomm_comm *comm, lcomm_pair_message *it, bool *moved) {
  bool is_short = lcomm_pair_is_short(it->size);
  size_t size = LCOMM_PAIR_HEADER_SIZE;
  if (is_short && !lcomm_pair_has(it, it->pieces)) {
    return LCOMM_OK;
  }
  lcomm_pair_header_write(&it->what, it->bytes);
  if (is_short && it->size > 0) {
    memcpy(it->bytes + size, it->block->bytes, it->size);
    size += it->size;
  }
  it->phase = LCOMM_PAIR_HEADER;
  *moved = true;
  LCOMM_TRY(
      post(comm, it, true, HEADER_TAG, it->bytes, size, &it->header_transfer, &it->header_posted));
  return is_short ? LCOMM_OK
                  : post(comm, it, false, REQUEST_TAG, &it->request, sizeof(it->request),
                         &it->request_transfer, &it->request_posted);
}

static lcomm_status move_pieces_out(lcomm_comm *comm, lcomm_pair_message *it, bool *moved,
                                    bool *over) {
  bool was_posted = it->piece_posted;
  LCOMM_TRY(test(comm, it, &it->piece_transfer, &it->piece_posted, NULL, moved));
  it->piece += was_posted && !it->piece_posted;
  *over = it->piece == it->pieces && !it->header_posted;
  if (!it->piece_posted && it->piece < it->pieces && lcomm_pair_has(it, it->piece + 1)) {
    *moved = true;
    return post_piece(comm, it);
  }
  return LCOMM_OK;
}

static lcomm_status move_send(lcomm_comm *comm, lcomm_pair_message *it, bool *moved, bool *over) {
  if (it->phase == LCOMM_PAIR_WAITS) {
    return begin_send(comm, it, moved);
  }
  LCOMM_TRY(test(comm, it, &it->header_transfer, &it->header_posted, NULL, moved));
  if (lcomm_pair_is_short(it->size)) {
    *over = !it->header_posted;
    return LCOMM_OK;
  }
  size_t size = sizeof(it->request);
  LCOMM_TRY(test(comm, it, &it->request_transfer, &it->request_posted, &size, moved));
  if (size != sizeof(it->request) || (!it->request_posted && it->request != it->what.number)) {
    return malformed(comm, it->peer);
  }
  it->phase = it->request_posted ? LCOMM_PAIR_HEADER : LCOMM_PAIR_PIECES;
  return it->request_posted ? LCOMM_OK : move_pieces_out(comm, it, moved, over);
}

/* ---------------------------------------------------------------- receiving */

static lcomm_status accept_header(lcomm_comm *comm, lcomm_pair_message *it, size_t size,
                                  bool *over) {
  lcomm_pair_header header;
  if (!lcomm_pair_header_read(it->bytes, size, &header)) {
    return malformed(comm, it->peer);
  }
  if (!are_equal(&header, &it->what)) {
    return other_message(comm, it->peer, comm->rank, &header, &it->what);
  }
  *over = lcomm_pair_is_short(it->size);
  if (size != LCOMM_PAIR_HEADER_SIZE + (*over ? it->size : 0)) {
    return malformed(comm, it->peer);
  }
  if (*over) {
    if (it->size > 0) {
      memcpy(it->block->bytes, it->bytes + LCOMM_PAIR_HEADER_SIZE, it->size);
    }
    lcomm_pair_gives(it, it->pieces);
    return LCOMM_OK;
  }
  it->phase = LCOMM_PAIR_PIECES;
  it->request = header.number;
  LCOMM_TRY(post_piece(comm, it));
  return post(comm, it, true, REQUEST_TAG, &it->request, sizeof(it->request), &it->request_transfer,
              &it->request_posted);
}

static lcomm_status move_header_in(lcomm_comm *comm, lcomm_pair_message *it, bool *moved,
                                   bool *over) {
  size_t size = 0;
  if (it->phase == LCOMM_PAIR_WAITS) {
    it->phase = LCOMM_PAIR_HEADER;
    LCOMM_TRY(post(comm, it, false, HEADER_TAG, it->bytes, sizeof(it->bytes), &it->header_transfer,
                   &it->header_posted));
  }
  LCOMM_TRY(test(comm, it, &it->header_transfer, &it->header_posted, &size, moved));
  return it->header_posted ? LCOMM_OK : accept_header(comm, it, size, over);
}

static lcomm_status move_pieces_in(lcomm_comm *comm, lcomm_pair_message *it, bool *moved,
                                   bool *over) {
  uint8_t *at;
  size_t size = 0;
  bool was_posted = it->piece_posted;
  LCOMM_TRY(test(comm, it, &it->request_transfer, &it->request_posted, NULL, moved));
  LCOMM_TRY(test(comm, it, &it->piece_transfer, &it->piece_posted, &size, moved));
  if (was_posted && !it->piece_posted) {
    if (size != lcomm_pair_piece(it, it->piece, &at)) {
      return malformed(comm, it->peer);
    }
    it->piece++;
    lcomm_pair_gives(it, it->piece);
    LCOMM_TRY(it->piece < it->pieces ? post_piece(comm, it) : LCOMM_OK);
  }
  *over = it->piece == it->pieces && !it->request_posted;
  return LCOMM_OK;
}

lcomm_status lcomm_pair_move(lcomm_comm *comm, lcomm_pair_message *it, bool *moved, bool *over) {
  if (it->is_send) {
    return move_send(comm, it, moved, over);
  }
  return it->phase == LCOMM_PAIR_PIECES ? move_pieces_in(comm, it, moved, over)
                                        : move_header_in(comm, it, moved, over);
}

/* ------------------------------------------------------------------- to itself */

lcomm_status lcomm_pair_move_own(lcomm_comm *comm, const lcomm_pair_message *out,
                                 lcomm_pair_message *in, bool *moved, bool *over) {
  if (!are_equal(&out->what, &in->what)) {
    return other_message(comm, comm->rank, comm->rank, &out->what, &in->what);
  }
  while (in->piece < in->pieces && lcomm_pair_has(out, in->piece + 1)) {
    uint8_t *from, *to;
    size_t size = lcomm_pair_piece(out, in->piece, &from);
    (void)lcomm_pair_piece(in, in->piece, &to);
    memcpy(to, from, size);
    lcomm_pair_gives(in, ++in->piece);
    *moved = true;
  }
  *over = in->piece == in->pieces;
  return LCOMM_OK;
}
