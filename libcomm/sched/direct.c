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

#include "libcomm/sched/exchange.h"

static void send_contributions(lcomm_schedule *schedule, const lcomm_exchange *exchange) {
  int size = exchange->group.size, me = exchange->group.me;
  for (int i = 1; i < size; i++) {
    int peer = lcomm_exchange_sent_to(exchange, me, i);
    lcomm_span piece = lcomm_span_piece(exchange->span, (uint32_t)size, (uint32_t)peer);
    if (piece.count == 0) {
      continue;
    }
    uint32_t slot = lcomm_schedule_slot(schedule, exchange->stage, piece.count);
    lcomm_schedule_encode(schedule, piece, slot, 1, LCOMM_FEEDBACK_SEND);
    lcomm_schedule_send(schedule, slot, exchange->group.ranks[peer]);
  }
}

void lcomm_direct_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        uint32_t *results) {
  int size = exchange->group.size, me = exchange->group.me;
  lcomm_span mine = lcomm_span_piece(exchange->span, (uint32_t)size, (uint32_t)me);
  send_contributions(schedule, exchange);
  if (mine.count > 0) {
    lcomm_ownership owned = {mine, LCOMM_SOURCE_SELF, LCOMM_NO_SLOT, LCOMM_FEEDBACK_KEEP};
    lcomm_exchange_own(schedule, exchange, &owned, &results[me]);
  }
  for (int i = 1; i < size; i++) {
    int peer = lcomm_exchange_received_from(exchange, me, i);
    lcomm_span piece = lcomm_span_piece(exchange->span, (uint32_t)size, (uint32_t)peer);
    if (piece.count == 0) {
      continue;
    }
    results[peer] = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, piece.count);
    lcomm_schedule_receive(schedule, results[peer], exchange->group.ranks[peer]);
    lcomm_schedule_decode(schedule, results[peer], piece, LCOMM_NO_SLOT);
  }
}
