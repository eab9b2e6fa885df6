/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* All-reduce of a span over a member of each node, by racks.
 *
 * The span has a piece for each node of the smallest rack. Piece p belongs to the member on node p
 * of every rack. Inside each rack contributions go to the owners of the pieces, which sum them.
 * Between racks the owners of one piece exchange it. Then each tells its rack. So a rack sends and
 * receives what a node does where racks do not count, whatever the number of its nodes. Further
 * nodes of larger racks own nothing.
 *
 * Of a piece that it owns a member sends the sum of its rack, of the others its own contribution:
 * error feedback works on each element once.
 */

#include <stdlib.h>

#include "libcomm/sched/exchange.h"

typedef struct rack_way {
  lcomm_schedule *schedule;
  const lcomm_exchange *whole;
  const lcomm_racks *racks;
  int pieces;
  int rack, place, size; /* a member's rack, its number there, and members of the rack */
  int *peers;            /* scratch: a rank for each rack */
} rack_way;

/* The way of number `member` of the group. */
static bool begin(rack_way *w, lcomm_schedule *schedule, const lcomm_exchange *whole, int member) {
  const lcomm_racks *racks = whole->racks;
  int rack = racks->of[member];
  *w = (rack_way){.schedule = schedule,
                  .whole = whole,
                  .racks = racks,
                  .pieces = (int)lcomm_racks_pieces(racks),
                  .rack = rack,
                  .place = racks->place[member],
                  .size = lcomm_rack_size(racks, rack),
                  .peers = malloc((size_t)racks->count * sizeof *w->peers)};
  if (!w->peers) {
    schedule->status = LCOMM_ERR_MEMORY;
  }
  return w->peers;
}

static int rank_at(const rack_way *w, int rack, int place) {
  return w->whole->group.ranks[w->racks->members[w->racks->first[rack] + place]];
}

static lcomm_span piece_of(const rack_way *w, int piece) {
  return lcomm_span_piece(w->whole->span, (uint32_t)w->pieces, (uint32_t)piece);
}

/* Between racks: the owners of a piece. `me`: the rack of the one that builds or forwards. */
static lcomm_exchange across(const rack_way *w, int piece, int me) {
  for (int rack = 0; rack < w->racks->count; rack++) {
    w->peers[rack] = rank_at(w, rack, piece);
  }
  return (lcomm_exchange){.kind = w->whole->kind,
                          .group = {w->peers, w->racks->count, me},
                          .span = piece_of(w, piece),
                          .stage = w->whole->stage};
}

/* Pieces in rotated order, as peers are visited: turn 0 is the member's own. */
static int piece_sent(const rack_way *w, int turn) {
  lcomm_exchange inside = {.group = {.size = w->pieces}, .block = w->whole->block};
  return lcomm_exchange_sent_to(&inside, w->place % w->pieces, turn);
}

static int piece_received(const rack_way *w, int turn) {
  lcomm_exchange inside = {.group = {.size = w->pieces}, .block = w->whole->block};
  return lcomm_exchange_received_from(&inside, w->place % w->pieces, turn);
}

/* ----------------------------------------------------------- contributions */

/* A member that owns nothing has a contribution to its first piece, too. */
static void contribute(const rack_way *w) {
  for (int turn = 1; turn <= w->pieces; turn++) {
    int piece = piece_sent(w, turn % w->pieces);
    lcomm_span span = piece_of(w, piece);
    if (piece == w->place || span.count == 0) {
      continue;
    }
    uint32_t slot = lcomm_schedule_slot(w->schedule, LCOMM_STAGE_RACK, span.count);
    lcomm_schedule_encode(w->schedule, span, slot, 1, LCOMM_FEEDBACK_SEND);
    lcomm_schedule_send(w->schedule, slot, rank_at(w, w->rack, piece));
  }
}

/* The own piece, in the order of the rack's nodes. */
static void sum_own(const rack_way *w) {
  lcomm_span span = piece_of(w, w->place);
  if (w->size == 1 || span.count == 0) {
    return;
  }
  uint32_t *sources = malloc((size_t)w->size * sizeof *sources);
  if (!sources) {
    w->schedule->status = LCOMM_ERR_MEMORY;
    return;
  }
  sources[w->place] = LCOMM_SOURCE_SELF;
  for (int i = 1; i < w->size; i++) {
    int place = (w->place - i + w->size) % w->size;
    sources[place] = lcomm_schedule_slot(w->schedule, LCOMM_STAGE_RACK, span.count);
    lcomm_schedule_receive(w->schedule, sources[place], rank_at(w, w->rack, place));
  }
  lcomm_schedule_partial(w->schedule, span, sources, (uint32_t)w->size);
  free(sources);
}

/* ----------------------------------------------------------------- results */

static void forward_piece(const rack_way *w, int piece, const uint32_t *results, int outside) {
  const uint32_t *slots = results + piece * w->racks->count;
  if (lcomm_exchange_has_results(w->whole->kind)) {
    lcomm_exchange exchange = across(w, piece, w->rack);
    lcomm_exchange_forward(w->schedule, &exchange, slots, outside);
  } else if (slots[0] != LCOMM_NO_SLOT) {
    lcomm_schedule_send(w->schedule, slots[0], outside);
  }
}

static void learn_piece(const rack_way *w, int piece, int peer, uint32_t *results) {
  uint32_t *slots = results + piece * w->racks->count;
  if (lcomm_exchange_has_results(w->whole->kind)) {
    lcomm_exchange exchange = across(w, piece, -1);
    lcomm_exchange_learn_from(w->schedule, &exchange, w->rack, peer, slots);
    return;
  }
  lcomm_span span = piece_of(w, piece);
  if (span.count > 0) {
    slots[0] = lcomm_schedule_slot(w->schedule, LCOMM_STAGE_RESULT, span.count);
    lcomm_schedule_receive(w->schedule, slots[0], peer);
    lcomm_schedule_decode(w->schedule, slots[0], span, LCOMM_NO_SLOT);
  }
}

/* Sums that are in no slot go as they are. */
static void encode_sum(const rack_way *w, uint32_t *slot) {
  lcomm_span span = piece_of(w, w->place);
  if (w->size > 1 && span.count > 0) {
    *slot = lcomm_schedule_slot(w->schedule, LCOMM_STAGE_RESULT, span.count);
    lcomm_schedule_encode(w->schedule, span, *slot, 1, LCOMM_FEEDBACK_NONE);
  }
}

/* Sum the own piece, exchange it between racks, tell the rack. */
static void own(const rack_way *w, uint32_t *results) {
  sum_own(w);
  lcomm_exchange exchange = across(w, w->place, w->rack);
  uint32_t *slots = results + w->place * w->racks->count;
  lcomm_exchange_build(w->schedule, &exchange, slots);
  if (!lcomm_exchange_has_results(exchange.kind)) {
    encode_sum(w, slots);
  }
  for (int i = 1; i < w->size; i++) {
    forward_piece(w, w->place, results, rank_at(w, w->rack, (w->place + i) % w->size));
  }
}

/* ------------------------------------------------------------------ all of it */

void lcomm_rack_exchange_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                               uint32_t *results) {
  rack_way w;
  if (!begin(&w, schedule, exchange, exchange->group.me)) {
    return;
  }
  contribute(&w);
  if (w.place < w.pieces) {
    own(&w, results);
  }
  for (int turn = 0; turn < w.pieces; turn++) {
    int piece = piece_received(&w, turn);
    if (piece != w.place) {
      learn_piece(&w, piece, rank_at(&w, w.rack, piece), results);
    }
  }
  free(w.peers);
}

void lcomm_rack_exchange_forward(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                                 const uint32_t *results, int outside) {
  rack_way w;
  if (!begin(&w, schedule, exchange, exchange->group.me)) {
    return;
  }
  for (int turn = 0; turn < w.pieces; turn++) {
    forward_piece(&w, piece_received(&w, turn), results, outside);
  }
  free(w.peers);
}

void lcomm_rack_exchange_learn(lcomm_schedule *schedule, const lcomm_exchange *exchange, int place,
                               int peer, uint32_t *results) {
  rack_way w;
  if (!begin(&w, schedule, exchange, place)) {
    return;
  }
  for (int turn = 0; turn < w.pieces; turn++) {
    learn_piece(&w, piece_received(&w, turn), peer, results);
  }
  free(w.peers);
}
