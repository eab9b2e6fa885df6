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

static void clear_results(const lcomm_exchange *exchange, uint32_t *results) {
  for (int i = 0; i < exchange->group.size; i++) {
    results[i] = LCOMM_NO_SLOT;
  }
}

void lcomm_exchange_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                          uint32_t *results) {
  clear_results(exchange, results);
  (exchange->racks ? lcomm_rack_exchange_build : kinds[exchange->kind].build)(schedule, exchange,
                                                                              results);
}

/* ------------------------------------------------------------------ peers */

/* Place `turn` behind a member, places being counted by blocks that rotate, and in them. */
static int peer_of(const lcomm_exchange *exchange, int member, int turn, int direction) {
  int size = exchange->group.size, block = exchange->block > 0 ? exchange->block : 1;
  int blocks = size / block, place = turn > 0 ? turn + block - 1 : 0;
  place = place < size ? place : place - size + 1; /* the rest of the own block */
  int far = member / block + direction * (place / block);
  int near = member % block + direction * (place % block);
  return (far + blocks) % blocks * block + (near + block) % block;
}

int lcomm_exchange_sent_to(const lcomm_exchange *exchange, int member, int turn) {
  return peer_of(exchange, member, turn, 1);
}

int lcomm_exchange_received_from(const lcomm_exchange *exchange, int member, int turn) {
  return peer_of(exchange, member, turn, -1);
}

/* ---------------------------------------------------------------- results */

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
                            const uint32_t *results, int outside) {
  if (exchange->racks) {
    lcomm_rack_exchange_forward(schedule, exchange, results, outside);
    return;
  }
  for (int turn = 0; turn < exchange->group.size; turn++) {
    int part = lcomm_exchange_received_from(exchange, exchange->group.me, turn);
    if (results[part] != LCOMM_NO_SLOT) {
      lcomm_schedule_send(schedule, results[part], outside);
    }
  }
}

static int place_of(lcomm_group group, int rank) {
  int place = 0;
  while (group.ranks[place] != rank) {
    place++;
  }
  return place;
}

/* All contributions arrive; sum them as the members did. */
static void learn_contributions(lcomm_schedule *schedule, const lcomm_exchange *exchange, int place,
                                int peer, uint32_t *results) {
  int size = exchange->group.size;
  for (int turn = 0; turn < size; turn++) {
    uint32_t slot = lcomm_schedule_slot(schedule, exchange->stage, exchange->span.count);
    lcomm_schedule_receive(schedule, slot, peer);
    results[lcomm_exchange_received_from(exchange, place, turn)] = slot;
  }
  lcomm_schedule_sum(schedule, exchange->span, results, (uint32_t)size, LCOMM_FEEDBACK_NONE);
}

static void learn_parts(lcomm_schedule *schedule, const lcomm_exchange *exchange, int place,
                        int peer, uint32_t *results) {
  for (int turn = 0; turn < exchange->group.size; turn++) {
    int part = lcomm_exchange_received_from(exchange, place, turn);
    lcomm_span span = result_span(exchange, part);
    uint64_t count = lcomm_span_count(span);
    if (count == 0) {
      continue;
    }
    results[part] = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
    lcomm_schedule_receive(schedule, results[part], peer);
    lcomm_schedule_decode(schedule, results[part], span, LCOMM_NO_SLOT);
  }
}

void lcomm_exchange_learn_from(lcomm_schedule *schedule, const lcomm_exchange *exchange, int place,
                               int peer, uint32_t *results) {
  clear_results(exchange, results);
  if (exchange->span.count == 0) {
    return;
  }
  if (exchange->racks) {
    lcomm_rack_exchange_learn(schedule, exchange, place, peer, results);
    return;
  }
  (exchange->kind == LCOMM_EXCHANGE_GATHER ? learn_contributions
                                           : learn_parts)(schedule, exchange, place, peer, results);
}

void lcomm_exchange_learn(lcomm_schedule *schedule, const lcomm_exchange *exchange, int member,
                          uint32_t *results) {
  lcomm_exchange_learn_from(schedule, exchange, place_of(exchange->group, member), member, results);
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
    int peer = lcomm_exchange_received_from(exchange, me, i);
    sources[peer] = lcomm_schedule_slot(schedule, exchange->stage, count);
    lcomm_schedule_receive(schedule, sources[peer], exchange->group.ranks[peer]);
  }
  lcomm_schedule_sum(schedule, it->span, sources, (uint32_t)size, it->feedback);
  free(sources);
  *result = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
  lcomm_schedule_encode(schedule, it->span, *result, 1, LCOMM_FEEDBACK_OWNER);
  lcomm_schedule_decode(schedule, *result, it->span, it->commit);
  for (int i = 1; i < size; i++) {
    int peer = lcomm_exchange_sent_to(exchange, me, i);
    lcomm_schedule_send(schedule, *result, exchange->group.ranks[peer]);
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
