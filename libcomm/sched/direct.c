/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Two-phase all-reduce: pieces to their owners, sums to everyone.
 *
 * Peers are visited in rotated order: to me + 1, me + 2, ..., and from me - 1,
 * me - 2, ... So the i-th sends of all members are a permutation: nobody is
 * sent to by two at once, and the i-th receive is the partner's i-th send.
 * Exchanging in pairs (me XOR i) would do the same, but only for powers of two.
 *
 * The owner decodes its own encoded result: without that it would hold the
 * unquantised sum and the replicas would drift apart.
 */

#include <stdlib.h>

#include "libcomm/sched/exchange.h"

static void send_contributions(lcomm_schedule *schedule, const lcomm_exchange *exchange) {
  int size = exchange->group.size, me = exchange->group.me;
  for (int i = 1; i < size; i++) {
    int peer = (me + i) % size;
    lcomm_span piece = lcomm_span_piece(exchange->span, (uint32_t)size, (uint32_t)peer);
    if (piece.count == 0) {
      continue;
    }
    uint32_t slot = lcomm_schedule_slot(schedule, exchange->stage, piece.count);
    lcomm_schedule_encode(schedule, piece, slot, 1, LCOMM_FEEDBACK_SEND);
    lcomm_schedule_send(schedule, slot, exchange->group.ranks[peer]);
  }
}

static void sum_my_piece(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                         lcomm_span mine) {
  int size = exchange->group.size, me = exchange->group.me;
  uint32_t *sources = malloc((size_t)size * sizeof *sources);
  if (!sources) {
    schedule->status = LCOMM_ERR_MEMORY;
    return;
  }
  sources[me] = LCOMM_SOURCE_SELF;
  for (int i = 1; i < size; i++) {
    int peer = (me + size - i) % size;
    sources[peer] = lcomm_schedule_slot(schedule, exchange->stage, mine.count);
    lcomm_schedule_receive(schedule, sources[peer], exchange->group.ranks[peer]);
  }
  lcomm_schedule_sum(schedule, mine, sources, (uint32_t)size, LCOMM_FEEDBACK_KEEP);
  free(sources);
}

static void publish(lcomm_schedule *schedule, const lcomm_exchange *exchange, lcomm_span mine,
                    uint32_t *result) {
  int size = exchange->group.size, me = exchange->group.me;
  *result = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, mine.count);
  lcomm_schedule_encode(schedule, mine, *result, 1, LCOMM_FEEDBACK_OWNER);
  lcomm_schedule_decode(schedule, *result, mine, LCOMM_NO_SLOT);
  for (int i = 1; i < size; i++) {
    lcomm_schedule_send(schedule, *result, exchange->group.ranks[(me + i) % size]);
  }
}

void lcomm_direct_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        uint32_t *results) {
  int size = exchange->group.size, me = exchange->group.me;
  lcomm_span mine = lcomm_span_piece(exchange->span, (uint32_t)size, (uint32_t)me);
  send_contributions(schedule, exchange);
  if (mine.count > 0) {
    sum_my_piece(schedule, exchange, mine);
    publish(schedule, exchange, mine, &results[me]);
  }
  for (int i = 1; i < size; i++) {
    int peer = (me + size - i) % size;
    lcomm_span piece = lcomm_span_piece(exchange->span, (uint32_t)size, (uint32_t)peer);
    if (piece.count == 0) {
      continue;
    }
    results[peer] = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, piece.count);
    lcomm_schedule_receive(schedule, results[peer], exchange->group.ranks[peer]);
    lcomm_schedule_decode(schedule, results[peer], piece, LCOMM_NO_SLOT);
  }
}
