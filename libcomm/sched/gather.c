/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One-shot all-reduce: every rank sends its whole span to all others and sums
 * all encoded contributions, its own included, in group order. Everyone adds
 * the same bytes in the same order, so the replicas are equal. Peers are
 * visited in rotated order, as in the direct exchange.
 */

#include "libcomm/sched/exchange.h"

void lcomm_gather_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        uint32_t *results) {
  int size = exchange->group.size, me = exchange->group.me;
  lcomm_span span = exchange->span;
  if (span.count == 0) {
    return;
  }
  results[me] = lcomm_schedule_slot(schedule, exchange->stage, span.count);
  lcomm_schedule_encode(schedule, span, results[me], 1, LCOMM_FEEDBACK_SEND);
  for (int i = 1; i < size; i++) {
    int peer = lcomm_exchange_sent_to(exchange, me, i);
    lcomm_schedule_send(schedule, results[me], exchange->group.ranks[peer]);
  }
  for (int i = 1; i < size; i++) {
    int peer = lcomm_exchange_received_from(exchange, me, i);
    results[peer] = lcomm_schedule_slot(schedule, exchange->stage, span.count);
    lcomm_schedule_receive(schedule, results[peer], exchange->group.ranks[peer]);
  }
  lcomm_schedule_sum(schedule, span, results, (uint32_t)size, LCOMM_FEEDBACK_NONE);
}
