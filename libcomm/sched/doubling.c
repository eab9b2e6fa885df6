/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Recursive doubling, and recursive halving and doubling (Thakur, Rabenseifner and Gropp 2005):
 * log2(size) partners instead of size - 1.
 *
 * Doubling: in round r a member exchanges its whole partial sum with the member whose index differs
 * in bit r. Halving: the highest bit first, each pair halves what it has in common, each sums one
 * half; then the same way back with the sums. Exact stages only: a lossy one would quantise in
 * every round.
 *
 * A group that is no power of two is folded first: of each of its first pairs the odd member gives
 * everything to the even one, and receives the sum at the end. Members that are left have places 0,
 * 1, ... in the order of the group, and in every sum the lower place comes first, so all members
 * have the same bits.
 */

#include "libcomm/sched/exchange.h"

typedef struct fold {
  int places; /* the largest power of two that fits the group */
  int pairs;  /* members that are folded away, one of each of the first pairs */
} fold;

static fold fold_of(int size) {
  fold f = {.places = 1};
  while (f.places * 2 <= size) {
    f.places *= 2;
  }
  f.pairs = size - f.places;
  return f;
}

static int member_at(const fold *f, int place) {
  return place < f->pairs ? 2 * place : place + f->pairs;
}

/* The place of member `index`, -1 for one that is folded away. */
static int place_of(const fold *f, int index) {
  if (index >= 2 * f->pairs) {
    return index - f->pairs;
  }
  return index % 2 == 0 ? index / 2 : -1;
}

typedef struct rounds {
  lcomm_schedule *schedule;
  const lcomm_exchange *exchange;
  fold fold;
  int place;
} rounds;

static int rank_at(const rounds *r, int place) {
  return r->exchange->group.ranks[member_at(&r->fold, place)];
}

static void give(const rounds *r, lcomm_span span, lcomm_stage stage, int rank) {
  if (span.count > 0) {
    uint32_t slot = lcomm_schedule_slot(r->schedule, stage, span.count);
    lcomm_schedule_encode(r->schedule, span, slot, 1, LCOMM_FEEDBACK_NONE);
    lcomm_schedule_send(r->schedule, slot, rank);
  }
}

/* What `rank` has of `span` joins my part of the sum. */
static void add(const rounds *r, lcomm_span span, int rank, bool mine_first, bool last) {
  if (span.count == 0) {
    return;
  }
  uint32_t slot = lcomm_schedule_slot(r->schedule, r->exchange->stage, span.count);
  uint32_t sources[2] = {mine_first ? LCOMM_SOURCE_SELF : slot,
                         mine_first ? slot : LCOMM_SOURCE_SELF};
  lcomm_schedule_receive(r->schedule, slot, rank);
  if (last) {
    lcomm_schedule_sum(r->schedule, span, sources, 2, LCOMM_FEEDBACK_NONE);
  } else {
    lcomm_schedule_partial(r->schedule, span, sources, 2);
  }
}

static void learn(const rounds *r, lcomm_span span, int rank) {
  if (span.count > 0) {
    uint32_t slot = lcomm_schedule_slot(r->schedule, LCOMM_STAGE_RESULT, span.count);
    lcomm_schedule_receive(r->schedule, slot, rank);
    lcomm_schedule_decode(r->schedule, slot, span, LCOMM_NO_SLOT);
  }
}

/* Pieces first .. first + count - 1 of as many as there are places. */
static lcomm_span pieces(const rounds *r, int first, int count) {
  uint32_t all = (uint32_t)r->fold.places;
  lcomm_span low = lcomm_span_piece(r->exchange->span, all, (uint32_t)first);
  lcomm_span high = lcomm_span_piece(r->exchange->span, all, (uint32_t)(first + count - 1));
  return lcomm_span_whole(low.first, high.first + high.count - low.first);
}

static void double_up(const rounds *r) {
  for (int bit = 1; bit < r->fold.places; bit *= 2) {
    int peer = rank_at(r, r->place ^ bit);
    give(r, r->exchange->span, r->exchange->stage, peer);
    add(r, r->exchange->span, peer, !(r->place & bit), bit * 2 == r->fold.places);
  }
}

static void halve_and_double(const rounds *r) {
  for (int bit = r->fold.places / 2; bit > 0; bit /= 2) { /* `bit` pieces are kept */
    int peer = rank_at(r, r->place ^ bit);
    give(r, pieces(r, (r->place ^ bit) & -bit, bit), r->exchange->stage, peer);
    add(r, pieces(r, r->place & -bit, bit), peer, !(r->place & bit), bit == 1);
  }
  for (int bit = 1; bit < r->fold.places; bit *= 2) {
    int peer = rank_at(r, r->place ^ bit);
    give(r, pieces(r, r->place & -bit, bit), LCOMM_STAGE_RESULT, peer);
    learn(r, pieces(r, (r->place ^ bit) & -bit, bit), peer);
  }
}

static void build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                  void (*exchange_places)(const rounds *)) {
  const lcomm_group *group = &exchange->group;
  rounds r = {schedule, exchange, fold_of(group->size), -1};
  r.place = place_of(&r.fold, group->me);
  if (r.place < 0) {
    give(&r, exchange->span, exchange->stage, group->ranks[group->me - 1]);
    learn(&r, exchange->span, group->ranks[group->me - 1]);
    return;
  }
  if (r.place < r.fold.pairs) {
    add(&r, exchange->span, group->ranks[group->me + 1], true, r.fold.places == 1);
  }
  exchange_places(&r);
  if (r.place < r.fold.pairs) {
    give(&r, exchange->span, LCOMM_STAGE_RESULT, group->ranks[group->me + 1]);
  }
}

void lcomm_doubling_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                          uint32_t *results) {
  (void)results; /* the sum is in the span alone */
  build(schedule, exchange, double_up);
}

void lcomm_halving_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                         uint32_t *results) {
  (void)results;
  build(schedule, exchange, halve_and_double);
}
