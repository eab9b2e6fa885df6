/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sparse two-phase all-reduce, after Ok-Topk (Li and Hoefler 2022) and SparDL
 * (Zhao et al. 2023), with block-cyclic ownership and slots of a fixed
 * capacity, so that there is no count exchange:
 *   one ENCODE selects from the whole span and fills a slot for every owner;
 *   the owner sums its stripe in group order, selects again, encodes;
 *   everyone decodes, and an entry leaves the sender's residual only when it
 *   was sent *and* selected again (COMMIT).
 */

#include "libcomm/sched/exchange.h"

static lcomm_span stripe_of(const lcomm_exchange *exchange, int part) {
  return (lcomm_span){exchange->span.first, exchange->span.count, (uint32_t)exchange->group.size,
                      (uint32_t)part};
}

void lcomm_sparse_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        uint32_t *results) {
  int size = exchange->group.size, me = exchange->group.me;
  uint32_t first = 0;
  if (exchange->span.count == 0) {
    return;
  }
  for (int i = 0; i < size; i++) {
    uint32_t slot =
        lcomm_schedule_slot(schedule, exchange->stage, lcomm_span_count(stripe_of(exchange, i)));
    first = i == 0 ? slot : first;
  }
  lcomm_schedule_encode(schedule, exchange->span, first, (uint32_t)size, LCOMM_FEEDBACK_HOLD);
  for (int i = 1; i < size; i++) {
    int peer = lcomm_exchange_sent_to(exchange, me, i);
    if (lcomm_span_count(stripe_of(exchange, peer)) > 0) {
      lcomm_schedule_send(schedule, first + (uint32_t)peer, exchange->group.ranks[peer]);
    }
  }
  lcomm_span mine = stripe_of(exchange, me);
  if (lcomm_span_count(mine) > 0) {
    uint32_t slot = first + (uint32_t)me;
    lcomm_ownership owned = {mine, slot, slot, LCOMM_FEEDBACK_NONE};
    lcomm_exchange_own(schedule, exchange, &owned, &results[me]);
  }
  for (int i = 1; i < size; i++) {
    int peer = lcomm_exchange_received_from(exchange, me, i);
    lcomm_span stripe = stripe_of(exchange, peer);
    uint64_t count = lcomm_span_count(stripe);
    if (count == 0) {
      continue;
    }
    results[peer] = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
    lcomm_schedule_receive(schedule, results[peer], exchange->group.ranks[peer]);
    lcomm_schedule_decode(schedule, results[peer], stripe, first + (uint32_t)peer);
  }
}
