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

#include <stdlib.h>

#include "libcomm/sched/exchange.h"

static lcomm_span stripe_of(const lcomm_exchange *exchange, int part) {
  return (lcomm_span){exchange->span.first, exchange->span.count, (uint32_t)exchange->group.size,
                      (uint32_t)part};
}

static void own_my_stripe(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                          uint32_t my_slot, uint32_t *result) {
  int size = exchange->group.size, me = exchange->group.me;
  lcomm_span mine = stripe_of(exchange, me);
  uint64_t count = lcomm_span_count(mine);
  uint32_t *sources = malloc((size_t)size * sizeof *sources);
  if (!sources) {
    schedule->status = LCOMM_ERR_MEMORY;
    return;
  }
  sources[me] = my_slot;
  for (int i = 1; i < size; i++) {
    int peer = (me + size - i) % size;
    sources[peer] = lcomm_schedule_slot(schedule, exchange->stage, count);
    lcomm_schedule_receive(schedule, sources[peer], exchange->group.ranks[peer]);
  }
  lcomm_schedule_sum(schedule, mine, sources, (uint32_t)size, LCOMM_FEEDBACK_NONE);
  free(sources);
  *result = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
  lcomm_schedule_encode(schedule, mine, *result, 1, LCOMM_FEEDBACK_OWNER);
  lcomm_schedule_decode(schedule, *result, mine, my_slot);
  for (int i = 1; i < size; i++) {
    lcomm_schedule_send(schedule, *result, exchange->group.ranks[(me + i) % size]);
  }
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
    int peer = (me + i) % size;
    if (lcomm_span_count(stripe_of(exchange, peer)) > 0) {
      lcomm_schedule_send(schedule, first + (uint32_t)peer, exchange->group.ranks[peer]);
    }
  }
  if (lcomm_span_count(stripe_of(exchange, me)) > 0) {
    own_my_stripe(schedule, exchange, first + (uint32_t)me, &results[me]);
  }
  for (int i = 1; i < size; i++) {
    int peer = (me + size - i) % size;
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
