/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks on their way: header, short data, request for long data. */

#include "libcomm/engine/pair_move.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/plan/policy.h"

/* ------------------------------------------------------------------ headers */

enum { CODEC_TEXT_MAX = 80 };

/* " encoded as int8", or "". */
static const char *encoding(const lcomm_pair_header *header, char text[CODEC_TEXT_MAX]) {
  char name[CODEC_TEXT_MAX - 16];
  lcomm_codec_spec spec = {.format = lcomm_pair_header_get_format(header)};
  bool is_exact = header->codec == LCOMM_CODEC_NONE && !spec.format.zstd;
  text[0] = '\0';
  if (!is_exact) {
    snprintf(text, CODEC_TEXT_MAX, " encoded as %s",
             lcomm_codec_spec_format(&spec, name, sizeof name));
  }
  return text;
}

/* The sentence is the same whichever rank finds it. */
static lcomm_status other_message(lcomm_comm *comm, int sender, const lcomm_pair_header *sent,
                                  const lcomm_pair_message *receive) {
  int receiver = comm->rank;
  const lcomm_pair_header *received = &receive->what;
  char from[96], to[96], by[CODEC_TEXT_MAX], instead[CODEC_TEXT_MAX];
  return lcomm_fail_for(comm, LCOMM_ERR_MISMATCH, receiver,
                        "%s #%u: %s sends %llu %s%s, and %s receives %llu %s%s. The n-th %s "
                        "to a rank and its n-th receive must have the same count, type and codec.",
                        receive->graph_channel > 0 ? "a captured message, replay" : "message",
                        sent->number, lcomm_comm_who(comm, sender, from, sizeof(from)),
                        (unsigned long long)sent->count, lcomm_dtype_name(sent->dtype),
                        encoding(sent, by), lcomm_comm_who(comm, receiver, to, sizeof(to)),
                        (unsigned long long)received->count, lcomm_dtype_name(received->dtype),
                        encoding(received, instead),
                        receive->graph_channel > 0 ? "captured send" : "send");
}

static bool are_equal(const lcomm_pair_header *a, const lcomm_pair_header *b) {
  return a->count == b->count && a->dtype == b->dtype && a->number == b->number &&
         a->codec == b->codec && a->flags == b->flags;
}

/* ------------------------------------------------------------------ sending */

static lcomm_status begin_send(lcomm_comm *comm, lcomm_pair_message *it, bool *moved) {
  bool is_short = lcomm_pair_is_short(&it->what);
  size_t size = LCOMM_PAIR_HEADER_SIZE;
  lcomm_pair_transfers *all = &it->in_flight;
  if (is_short && !lcomm_pair_has(it, it->pieces)) {
    return LCOMM_OK;
  }
  lcomm_pair_header_write(&it->what, it->bytes);
  if (is_short && it->size > 0) {
    memcpy(it->bytes + size, it->data, it->size);
    size += it->size;
    it->end.wire_bytes = it->size;
  }
  it->phase = LCOMM_PAIR_HEADER;
  *moved = true;
  LCOMM_TRY(lcomm_pair_send(comm, it, LCOMM_PAIR_HEADER_TAG, it->bytes, size, &all->header,
                            &all->header_posted));
  return is_short ? LCOMM_OK
                  : lcomm_pair_receive(comm, it, LCOMM_PAIR_REQUEST_TAG, &it->request,
                                       sizeof(it->request), &all->request, &all->request_posted);
}

static lcomm_status move_send(lcomm_comm *comm, lcomm_pair_message *it, bool *moved, bool *over) {
  lcomm_pair_transfers *all = &it->in_flight;
  size_t size = sizeof(it->request);
  if (it->phase == LCOMM_PAIR_WAITS) {
    return begin_send(comm, it, moved);
  }
  LCOMM_TRY(lcomm_pair_test(comm, it, &all->header, &all->header_posted, NULL, moved));
  if (lcomm_pair_is_short(&it->what)) {
    *over = !all->header_posted;
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_pair_test(comm, it, &all->request, &all->request_posted, &size, moved));
  if (size != sizeof(it->request) || (!all->request_posted && it->request != it->what.number)) {
    return lcomm_pair_malformed(comm, it->peer, "it asks for another one than was sent");
  }
  it->phase = all->request_posted ? LCOMM_PAIR_HEADER : LCOMM_PAIR_PIECES;
  LCOMM_TRY(all->request_posted ? LCOMM_OK : lcomm_pair_move_out(comm, it, moved, over));
  *over &= !all->header_posted;
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- receiving */

static lcomm_status ask_for_pieces(lcomm_comm *comm, lcomm_pair_message *it) {
  it->phase = LCOMM_PAIR_PIECES;
  it->request = it->what.number;
  LCOMM_TRY(lcomm_pair_post_pieces(comm, it));
  return lcomm_pair_send(comm, it, LCOMM_PAIR_REQUEST_TAG, &it->request, sizeof(it->request),
                         &it->in_flight.request, &it->in_flight.request_posted);
}

static lcomm_status accept_header(lcomm_comm *comm, lcomm_pair_message *it, size_t size,
                                  bool *over) {
  lcomm_pair_header header;
  if (!lcomm_pair_header_read(it->bytes, size, &header)) {
    return lcomm_pair_malformed(comm, it->peer, "it begins with no header");
  }
  if (!are_equal(&header, &it->what)) {
    return other_message(comm, it->peer, &header, it);
  }
  bool is_short = lcomm_pair_is_short(&it->what);
  if (size != LCOMM_PAIR_HEADER_SIZE + (is_short ? it->size : 0)) {
    return lcomm_pair_malformed(comm, it->peer, "it has another length than its header says");
  }
  if (!is_short) {
    return ask_for_pieces(comm, it);
  }
  if (it->size > 0) {
    memcpy(it->data, it->bytes + LCOMM_PAIR_HEADER_SIZE, it->size);
    it->end.wire_bytes = it->size;
  }
  lcomm_pair_gives(it, it->pieces);
  *over = true;
  return LCOMM_OK;
}

static lcomm_status move_header_in(lcomm_comm *comm, lcomm_pair_message *it, bool *moved,
                                   bool *over) {
  size_t size = 0;
  lcomm_pair_transfers *all = &it->in_flight;
  if (it->phase == LCOMM_PAIR_WAITS) {
    it->phase = LCOMM_PAIR_HEADER;
    LCOMM_TRY(lcomm_pair_receive(comm, it, LCOMM_PAIR_HEADER_TAG, it->bytes, sizeof(it->bytes),
                                 &all->header, &all->header_posted));
  }
  LCOMM_TRY(lcomm_pair_test(comm, it, &all->header, &all->header_posted, &size, moved));
  return all->header_posted ? LCOMM_OK : accept_header(comm, it, size, over);
}

static lcomm_status move_receive(lcomm_comm *comm, lcomm_pair_message *it, bool *moved,
                                 bool *over) {
  lcomm_pair_transfers *all = &it->in_flight;
  if (it->phase != LCOMM_PAIR_PIECES) {
    return move_header_in(comm, it, moved, over);
  }
  LCOMM_TRY(lcomm_pair_test(comm, it, &all->request, &all->request_posted, NULL, moved));
  LCOMM_TRY(lcomm_pair_move_in(comm, it, moved, over));
  *over &= !all->request_posted;
  return LCOMM_OK;
}

lcomm_status lcomm_pair_move(lcomm_comm *comm, lcomm_pair_message *it, bool *moved, bool *over) {
  return it->is_send ? move_send(comm, it, moved, over) : move_receive(comm, it, moved, over);
}

/* ------------------------------------------------------------------- to itself */

lcomm_status lcomm_pair_move_own(lcomm_comm *comm, const lcomm_pair_message *out,
                                 lcomm_pair_message *in, bool *moved, bool *over) {
  if (!are_equal(&out->what, &in->what)) {
    return other_message(comm, comm->rank, &out->what, in);
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
