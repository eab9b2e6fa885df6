/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Selection for short vectors: which sums are short, one rank that speaks for its node, and
 * barriers. */

#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/select.h"

enum {
  SMALL_BYTES = 8 << 10,        /* up to here latency counts, not bytes */
  SMALL_TOTAL_BYTES = 64 << 10, /* ... as long as a rank receives no more than this */
  LEADERS_GATHER_MAX = 8        /* nodes whose leaders all exchange everything */
};

static uint64_t vector_bytes(const lcomm_plan *plan) {
  return plan->vector_count * plan->element_size;
}

bool lcomm_select_is_small(const lcomm_plan *plan, int ranks) {
  uint64_t bytes = vector_bytes(plan);
  return bytes <= SMALL_BYTES && bytes * (uint64_t)ranks <= SMALL_TOTAL_BYTES;
}

static int largest_node(const lcomm_topo *topo) {
  int largest = 0;
  for (int i = 0; i < topo->nodes; i++) {
    largest = topo->node_size[i] > largest ? topo->node_size[i] : largest;
  }
  return largest;
}

/* Is a vector so short that one rank of each node may speak for it? */
static bool is_short_for_leaders(const lcomm_plan *plan, const lcomm_topo *topo) {
  int leaders = topo->nodes < LEADERS_GATHER_MAX ? topo->nodes : LEADERS_GATHER_MAX;
  return topo->nodes > 1 && topo->nodes < topo->size &&
         lcomm_select_is_small(plan, largest_node(topo) + leaders);
}

/* ------------------------------------------------------------ 16-bit types */

/* Are the payloads of all stages 16-bit elements as they are? */
static bool travels_in_16_bits(const lcomm_plan *plan) {
  bool exact = lcomm_sum_dtype(plan->dtype) != plan->dtype;
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    const lcomm_format *format = &plan->stages[i].format;
    exact &= lcomm_eligibility_is_exact(format, plan->dtype) && !format->zstd;
  }
  return exact;
}

/* Do partial sums travel in it? */
static bool passes_sums_on(lcomm_exchange_kind kind) {
  return kind == LCOMM_EXCHANGE_RING || kind == LCOMM_EXCHANGE_DOUBLING ||
         kind == LCOMM_EXCHANGE_HALVING;
}

static void widen(lcomm_plan *plan) {
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    plan->stages[i] = (lcomm_codec_spec){.format = lcomm_format_exact(LCOMM_FLOAT32)};
  }
}

void lcomm_select_widen_for(lcomm_plan *plan, const lcomm_allreduce_shape *shape) {
  if (travels_in_16_bits(plan) && (shape->leaders || passes_sums_on(shape->exchange))) {
    widen(plan);
  }
}

/* Among single ranks of many nodes: do pairs cost less, with payloads of float32? */
static bool suits_wide_pairs(const lcomm_plan *plan, const lcomm_topo *topo) {
  if (topo->nodes < topo->size || topo->nodes < LCOMM_PAIRS_NODES_MIN ||
      vector_bytes(plan) > SMALL_BYTES) {
    return false;
  }
  return passes_sums_on(
      lcomm_cheapest_exchange(&topo->cost[LCOMM_LINK_NET], topo->size, vector_bytes(plan)));
}

void lcomm_select_widen_short(lcomm_plan *plan, const lcomm_topo *topo) {
  if (travels_in_16_bits(plan) &&
      (is_short_for_leaders(plan, topo) || suits_wide_pairs(plan, topo))) {
    lcomm_select_say(plan, "short 16-bit elements travel as float32, which rounds no partial sum");
    widen(plan);
  }
}

/* ------------------------------------------------------------------ leaders */

/* A message between hosts costs more than all inside them, so one rank of each
 * node speaks for it. Only where partial results travel as they are. */
bool lcomm_select_suits_leaders(const lcomm_plan *plan, const lcomm_topo *topo) {
  bool travel = true;
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    travel &= lcomm_select_keeps_sums(plan, (lcomm_stage)i);
  }
  return travel && is_short_for_leaders(plan, topo);
}

void lcomm_select_leaders(lcomm_plan *plan, const lcomm_topo *topo) {
  bool few = topo->nodes <= LEADERS_GATHER_MAX;
  plan->shape.hierarchical = plan->shape.leaders = true;
  plan->shape.exchange = few ? LCOMM_EXCHANGE_GATHER : LCOMM_EXCHANGE_DIRECT;
  lcomm_select_say(plan, "small, one rank speaks for its node");
  if (lcomm_select_suits_pairs(plan, topo, LCOMM_STAGE_NET)) {
    plan->shape.exchange = lcomm_select_cheapest(plan, topo, topo->nodes, vector_bytes(plan));
  }
  plan->shape.tells_sum = plan->shape.exchange != LCOMM_EXCHANGE_DIRECT;
}

void lcomm_select_barrier(lcomm_plan *plan, const lcomm_topo *topo) {
  enum { ONE_ROUND_RANKS = 16 }; /* inside a node up to so many all tell all */
  if (topo->nodes > 1 && topo->nodes < topo->size) {
    lcomm_select_leaders(plan, topo);
  } else if (topo->nodes >= LCOMM_PAIRS_NODES_MIN) {
    plan->shape.exchange = lcomm_select_cheapest(plan, topo, topo->size, plan->element_size);
  } else {
    plan->shape.exchange =
        topo->size <= ONE_ROUND_RANKS ? LCOMM_EXCHANGE_GATHER : LCOMM_EXCHANGE_DIRECT;
  }
}
