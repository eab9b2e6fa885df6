/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/sched/exchange.h"

#include <stdlib.h>

typedef void (*builder)(lcomm_schedule *, const lcomm_exchange *, uint32_t *);

static const struct {
  const char *name;
  builder build;
} kinds[] = {
    [LCOMM_EXCHANGE_DIRECT] = {"direct", lcomm_direct_build},
    [LCOMM_EXCHANGE_GATHER] = {"gather", lcomm_gather_build},
    [LCOMM_EXCHANGE_RING] = {"ring", lcomm_ring_build},
    [LCOMM_EXCHANGE_SPARSE] = {"sparse", lcomm_sparse_build},
    [LCOMM_EXCHANGE_DOUBLING] = {"doubling", lcomm_doubling_build},
    [LCOMM_EXCHANGE_HALVING] = {"halving", lcomm_halving_build},
};

const char *lcomm_exchange_name(lcomm_exchange_kind kind) {
  return kinds[kind].name;
}

bool lcomm_exchange_has_results(lcomm_exchange_kind kind) {
  return kind != LCOMM_EXCHANGE_DOUBLING && kind != LCOMM_EXCHANGE_HALVING;
}

void lcomm_exchange_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                          uint32_t *results) {
  for (int i = 0; i < exchange->group.size; i++) {
    results[i] = LCOMM_NO_SLOT;
  }
  kinds[exchange->kind].build(schedule, exchange, results);
}

/* Which part of the span result `index` describes. */
static lcomm_span result_span(const lcomm_exchange *exchange, int index) {
  uint32_t size = (uint32_t)exchange->group.size;
  switch (exchange->kind) {
  case LCOMM_EXCHANGE_GATHER:
    return exchange->span;
  case LCOMM_EXCHANGE_SPARSE:
    return (lcomm_span){exchange->span.first, exchange->span.count, size, (uint32_t)index};
  case LCOMM_EXCHANGE_DIRECT:
  case LCOMM_EXCHANGE_RING:
  case LCOMM_EXCHANGE_DOUBLING: /* have no results to tell */
  case LCOMM_EXCHANGE_HALVING:
    break;
  }
  return lcomm_span_piece(exchange->span, size, (uint32_t)index);
}

void lcomm_exchange_forward(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                            const uint32_t *results, int bystander) {
  for (int i = 0; i < exchange->group.size; i++) {
    if (results[i] != LCOMM_NO_SLOT) {
      lcomm_schedule_send(schedule, results[i], bystander);
    }
  }
}

/* All contributions arrive; sum them as the members did. */
static void learn_contributions(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                                int member) {
  uint32_t size = (uint32_t)exchange->group.size;
  uint32_t *slots = malloc(size * sizeof *slots);
  if (!slots) {
    schedule->status = LCOMM_ERR_MEMORY;
    return;
  }
  for (uint32_t i = 0; i < size; i++) {
    slots[i] = lcomm_schedule_slot(schedule, exchange->stage, exchange->span.count);
    lcomm_schedule_receive(schedule, slots[i], member);
  }
  lcomm_schedule_sum(schedule, exchange->span, slots, size, LCOMM_FEEDBACK_NONE);
  free(slots);
}

void lcomm_exchange_learn(lcomm_schedule *schedule, const lcomm_exchange *exchange, int member) {
  if (exchange->span.count == 0) {
    return;
  }
  if (exchange->kind == LCOMM_EXCHANGE_GATHER) {
    learn_contributions(schedule, exchange, member);
    return;
  }
  for (int i = 0; i < exchange->group.size; i++) {
    lcomm_span span = result_span(exchange, i);
    uint64_t count = lcomm_span_count(span);
    if (count == 0) {
      continue;
    }
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
    lcomm_schedule_receive(schedule, slot, member);
    lcomm_schedule_decode(schedule, slot, span, LCOMM_NO_SLOT);
  }
}

void lcomm_exchange_own(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        const lcomm_ownership *it, uint32_t *result) {
  int size = exchange->group.size, me = exchange->group.me;
  uint64_t count = lcomm_span_count(it->span);
  uint32_t *sources = malloc((size_t)size * sizeof *sources);
  if (!sources) {
    schedule->status = LCOMM_ERR_MEMORY;
    return;
  }
  sources[me] = it->own;
  for (int i = 1; i < size; i++) {
    int peer = (me + size - i) % size;
    sources[peer] = lcomm_schedule_slot(schedule, exchange->stage, count);
    lcomm_schedule_receive(schedule, sources[peer], exchange->group.ranks[peer]);
  }
  lcomm_schedule_sum(schedule, it->span, sources, (uint32_t)size, it->feedback);
  free(sources);
  *result = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
  lcomm_schedule_encode(schedule, it->span, *result, 1, LCOMM_FEEDBACK_OWNER);
  lcomm_schedule_decode(schedule, *result, it->span, it->commit);
  for (int i = 1; i < size; i++) {
    lcomm_schedule_send(schedule, *result, exchange->group.ranks[(me + i) % size]);
  }
}

bool lcomm_collect_build(lcomm_schedule *schedule, lcomm_group group, lcomm_span span, int owner,
                         uint32_t *sources) {
  if (group.me != owner) {
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_NODE, span.count);
    lcomm_schedule_encode(schedule, span, slot, 1, LCOMM_FEEDBACK_NONE);
    lcomm_schedule_send(schedule, slot, group.ranks[owner]);
    return false;
  }
  sources[owner] = LCOMM_SOURCE_SELF;
  for (int i = 1; i < group.size; i++) {
    int peer = (owner + group.size - i) % group.size;
    sources[peer] = lcomm_schedule_slot(schedule, LCOMM_STAGE_NODE, span.count);
    lcomm_schedule_receive(schedule, sources[peer], group.ranks[peer]);
  }
  return true;
}
