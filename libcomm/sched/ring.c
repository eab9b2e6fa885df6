/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Ring all-reduce (Patarasuk and Yuan 2009): size-1 hops in which a partial
 * sum of each piece travels around and collects every rank, then size-1 hops
 * in which the finished pieces travel on.
 */

#include "libcomm/sched/exchange.h"

typedef struct ring {
  lcomm_schedule *schedule;
  const lcomm_exchange *exchange;
  int size, me, left, right; /* left and right are ranks */
} ring;

static lcomm_span piece_of(const ring *r, int index) {
  uint32_t piece = (uint32_t)(((index % r->size) + r->size) % r->size);
  return lcomm_span_piece(r->exchange->span, (uint32_t)r->size, piece);
}

static void reduce_hop(const ring *r, int hop) {
  lcomm_span out = piece_of(r, r->me - hop), in = piece_of(r, r->me - hop - 1);
  if (out.count > 0) {
    uint32_t slot = lcomm_schedule_slot(r->schedule, r->exchange->stage, out.count);
    lcomm_schedule_encode(r->schedule, out, slot, 1, LCOMM_FEEDBACK_NONE);
    lcomm_schedule_send(r->schedule, slot, r->right);
  }
  if (in.count == 0) {
    return;
  }
  uint32_t slot = lcomm_schedule_slot(r->schedule, r->exchange->stage, in.count);
  uint32_t sources[2] = {slot, LCOMM_SOURCE_SELF};
  lcomm_schedule_receive(r->schedule, slot, r->left);
  if (hop == r->size - 2) {
    lcomm_schedule_sum(r->schedule, in, sources, 2, LCOMM_FEEDBACK_NONE);
  } else {
    lcomm_schedule_partial(r->schedule, in, sources, 2);
  }
}

static void gather_hop(const ring *r, int hop, uint32_t *results) {
  int out = ((r->me + 1 - hop) % r->size + r->size) % r->size;
  int in = ((r->me - hop) % r->size + r->size) % r->size;
  if (results[out] != LCOMM_NO_SLOT) {
    lcomm_schedule_send(r->schedule, results[out], r->right);
  }
  lcomm_span span = piece_of(r, in);
  if (span.count == 0) {
    return;
  }
  results[in] = lcomm_schedule_slot(r->schedule, LCOMM_STAGE_RESULT, span.count);
  lcomm_schedule_receive(r->schedule, results[in], r->left);
  lcomm_schedule_decode(r->schedule, results[in], span, LCOMM_NO_SLOT);
}

void lcomm_ring_build(lcomm_schedule *schedule, const lcomm_exchange *exchange, uint32_t *results) {
  int size = exchange->group.size, me = exchange->group.me;
  const int *ranks = exchange->group.ranks;
  ring r = {schedule, exchange, size, me, ranks[(me + size - 1) % size], ranks[(me + 1) % size]};
  for (int hop = 0; hop + 1 < size; hop++) {
    reduce_hop(&r, hop);
  }
  lcomm_span mine = piece_of(&r, me + 1);
  if (mine.count > 0) {
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, mine.count);
    lcomm_schedule_encode(schedule, mine, slot, 1, LCOMM_FEEDBACK_NONE);
    lcomm_schedule_decode(schedule, slot, mine, LCOMM_NO_SLOT);
    results[(me + 1) % size] = slot;
  }
  for (int hop = 0; hop + 1 < size; hop++) {
    gather_hop(&r, hop, results);
  }
}
