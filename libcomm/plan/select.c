/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Selection: which codec on which stage (eligibility.c says which may act), which exchange; how
 * many chunks, says select_chunks.c. Every rule depends only on what all ranks know alike. */

#include "libcomm/plan/select.h"

#include <stdio.h>
#include <string.h>

#include "kernels/stripe.h"
#include "libcomm/plan/auto.h"
#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/policy_match.h"

enum {
  GATHERED_BYTES = 64 << 10, /* of picked entries that a rank receives from all others at most */
  PAIR_BYTES = 32 << 10,     /* up to here two ranks take one round instead of two */
  RING_HOP_BYTES = 64 << 10  /* smallest piece that a ring passes on between nodes */
};

/* Bits of an entry of top-k, and of a value of int8: above a density the latter are less. */
static const double ENTRY_BITS = 24.3, INT8_BITS = 8.25;

static lcomm_codec_spec exact_spec(lcomm_dtype dtype) {
  return (lcomm_codec_spec){.format = lcomm_format_exact(dtype)};
}

/* Partial sums travel as they are. Not so for 16-bit buffers: their exact
 * codec holds every contribution, but rounds a partial sum. */
bool lcomm_select_keeps_sums(const lcomm_plan *plan, lcomm_stage stage) {
  const lcomm_format *format = &plan->stages[stage].format;
  return format->codec->id == LCOMM_CODEC_NONE && !format->zstd;
}

/* Are all payloads the vector's own elements? */
static bool is_plain(const lcomm_plan *plan) {
  bool plain = true;
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    plain &= lcomm_select_keeps_sums(plan, (lcomm_stage)i);
  }
  return plain;
}

static const char *why_compressed(const lcomm_eligibility *eligibility) {
  return eligibility->pattern ? "as a pattern of the policy's net[...] asks" : "as the policy asks";
}

/* The choice between nodes: of auto the candidate for which this plan is made, where one of them
 * may act. */
static lcomm_codec_spec choose_net(lcomm_plan *plan, const lcomm_eligibility *eligibility) {
  lcomm_codec_spec dense = lcomm_auto_candidate(LCOMM_AUTO_BF16);
  if (!eligibility->net.automatic || lcomm_eligibility_why_exact(eligibility, &dense)) {
    return eligibility->net;
  }
  plan->automatic.allowed = eligibility->net.automatic;
  return lcomm_auto_candidate(plan->automatic.candidate);
}

/* Inside racks a codec acts where that of net does: what is exact between racks is exact there. */
static lcomm_codec_spec choose_rack(const lcomm_plan *plan, const lcomm_eligibility *eligibility,
                                    const lcomm_topo *topo) {
  bool exact = lcomm_eligibility_is_exact(&plan->stages[LCOMM_STAGE_NET].format, plan->dtype);
  return exact || topo->racks.count < 2
             ? exact_spec(plan->dtype)
             : lcomm_eligibility_codec(eligibility, &eligibility->policy->rack);
}

static void choose_codecs(lcomm_plan *plan, const lcomm_plan_request *request,
                          const lcomm_policy *policy, const lcomm_topo *topo) {
  uint64_t named = lcomm_match_named(policy, request->name ? request->name : "");
  lcomm_eligibility eligibility = lcomm_eligibility_begin(request, policy, topo->size, named);
  lcomm_codec_spec net = topo->nodes > 1 ? choose_net(plan, &eligibility) : eligibility.net;
  const lcomm_codec_spec *outer = topo->nodes > 1 ? &net : &policy->node;
  plan->ops = lcomm_eligibility_equal_ops(request, policy, topo->size, named);
  plan->stages[LCOMM_STAGE_NODE] = lcomm_eligibility_codec(&eligibility, &policy->node);
  plan->stages[LCOMM_STAGE_NET] =
      topo->nodes > 1 ? lcomm_eligibility_codec(&eligibility, &net) : exact_spec(plan->dtype);
  plan->stages[LCOMM_STAGE_RESULT] = lcomm_eligibility_codec(&eligibility, outer);
  plan->stages[LCOMM_STAGE_RACK] = choose_rack(plan, &eligibility, topo);
  const char *why =
      plan->automatic.allowed ? NULL : lcomm_eligibility_why_plan_exact(&eligibility, topo);
  snprintf(plan->reason, sizeof(plan->reason), "%s", why ? why : why_compressed(&eligibility));
  if (lcomm_collective_moves(plan->collective)) { /* as they are, whatever the type */
    for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
      plan->stages[i] = exact_spec(LCOMM_FLOAT32);
    }
  }
  plan->plain = is_plain(plan);
}

/* Ranks that exchange with each other, and elements they exchange: between racks, where sums go by
 * racks. */
static void exchange_size(const lcomm_plan *plan, const lcomm_topo *topo, int *ranks,
                          uint64_t *count) {
  *ranks = plan->shape.hierarchical ? topo->nodes : topo->size;
  uint64_t shards = plan->shape.hierarchical ? (uint64_t)lcomm_topo_smallest_node(topo) : 1;
  if (plan->shape.by_racks) {
    *ranks = topo->racks.count;
    shards *= lcomm_racks_pieces(&topo->racks);
  }
  *count = plan->vector_count / shards;
}

void lcomm_select_say(lcomm_plan *plan, const char *more) {
  size_t used = strlen(plan->reason);
  snprintf(plan->reason + used, sizeof(plan->reason) - used, "; %s", more);
}

/* Is what a rank receives short, where each rank sends all others what it has picked? That grows
 * with the ranks, where the results of owners do not. */
static bool gathers_little(const lcomm_plan *plan, lcomm_stage stage, int ranks, uint64_t count) {
  double entries = lcomm_plan_density(plan, stage, 0, plan->vector_count) * (double)count;
  return (ranks - 1) * entries * ENTRY_BITS / 8 <= GATHERED_BYTES;
}

static lcomm_exchange_kind choose_sparse(lcomm_plan *plan, lcomm_algorithm wanted,
                                         lcomm_stage stage, int ranks, uint64_t count) {
  if (wanted == LCOMM_ALGO_GATHER) {
    lcomm_select_say(plan, "gather by policy");
    return LCOMM_EXCHANGE_GATHER;
  }
  if (wanted == LCOMM_ALGO_AUTO && ranks == 2) {
    lcomm_select_say(plan, "two sides simply swap slots");
    return LCOMM_EXCHANGE_GATHER;
  }
  if (wanted == LCOMM_ALGO_AUTO && count < (uint64_t)ranks * LCOMM_TILE &&
      gathers_little(plan, stage, ranks, count)) {
    lcomm_select_say(plan, "too few elements for a tile per owner");
    return LCOMM_EXCHANGE_GATHER;
  }
  return LCOMM_EXCHANGE_SPARSE;
}

/* A ring keeps one sender and one receiver on every link, where the direct
 * exchange lets several senders meet at one receiver (measured with 4 nodes:
 * 1.1 against 1.3 times the limit of the wire). It costs more rounds, so the
 * pieces must be long; and it would round anything but float32 at every hop. */
static bool suits_ring(const lcomm_plan *plan, const lcomm_topo *topo, int ranks, uint64_t count,
                       lcomm_stage stage) {
  uint64_t piece_bytes = count * plan->element_size / (uint64_t)ranks;
  return topo->nodes > 2 && ranks > 2 && lcomm_select_keeps_sums(plan, stage) &&
         lcomm_topo_smallest_node(topo) * topo->nodes == topo->size &&
         piece_bytes >= RING_HOP_BYTES;
}

/* The same of segments: an exact reduce-scatter, and an all-gather. What error feedback keeps is
 * told by the direct form (lcomm_plan_feedback). */
static bool moves_in_ring(const lcomm_plan *plan, const lcomm_topo *topo) {
  uint64_t segment = plan->vector_count * plan->element_size / (uint64_t)topo->size;
  bool has_one = lcomm_collective_scatters(plan->collective) ||
                 plan->collective == LCOMM_COLLECTIVE_ALLGATHER ||
                 plan->collective == LCOMM_COLLECTIVE_ALLGATHERV;
  return has_one && topo->nodes > 2 && lcomm_select_keeps_sums(plan, LCOMM_STAGE_NET) &&
         !plan->error_feedback && segment >= RING_HOP_BYTES;
}

/* Short segments: few messages, and few links, for more bytes. */
static bool gathers_by_doubling(const lcomm_plan *plan, const lcomm_topo *topo) {
  bool gathers = plan->collective == LCOMM_COLLECTIVE_ALLGATHER ||
                 plan->collective == LCOMM_COLLECTIVE_ALLGATHERV;
  return gathers && lcomm_gathers_by_doubling(topo, plan->vector_count * plan->element_size);
}

/* A message between hosts costs a rank some 15 us of its processor over TCP, whatever its
 * size, so a few partners may beat all peers. Partial sums must travel as they are. */
bool lcomm_select_suits_pairs(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_stage stage) {
  return topo->nodes >= LCOMM_PAIRS_NODES_MIN && lcomm_select_keeps_sums(plan, stage);
}

lcomm_exchange_kind lcomm_select_cheapest(lcomm_plan *plan, const lcomm_topo *topo, int ranks,
                                          uint64_t size) {
  lcomm_exchange_kind kind = lcomm_cheapest_exchange(&topo->cost[LCOMM_LINK_NET], ranks, size);
  bool pairs = kind == LCOMM_EXCHANGE_DOUBLING || kind == LCOMM_EXCHANGE_HALVING;
  lcomm_select_say(plan, pairs ? "exact sums go from pair to pair"
                               : "a peer or two more cost less than rounds");
  return kind;
}

/* What the policy names, if it may act here: partial sums travel with all but two. */
static bool choose_named(lcomm_plan *plan, lcomm_algorithm wanted, lcomm_stage stage,
                         lcomm_exchange_kind *kind) {
  static const struct {
    lcomm_exchange_kind kind;
    bool sums_travel;
    const char *why;
  } named[] = {
      [LCOMM_ALGO_RING] = {LCOMM_EXCHANGE_RING, true, "ring by policy"},
      [LCOMM_ALGO_DIRECT] = {LCOMM_EXCHANGE_DIRECT, false, "direct by policy"},
      [LCOMM_ALGO_GATHER] = {LCOMM_EXCHANGE_GATHER, false, "gather by policy"},
      [LCOMM_ALGO_DOUBLING] = {LCOMM_EXCHANGE_DOUBLING, true, "doubling by policy"},
      [LCOMM_ALGO_HALVING] = {LCOMM_EXCHANGE_HALVING, true, "halving by policy"},
  };
  if (wanted == LCOMM_ALGO_AUTO ||
      (named[wanted].sums_travel && !lcomm_select_keeps_sums(plan, stage))) {
    return false;
  }
  *kind = named[wanted].kind;
  lcomm_select_say(plan, named[wanted].why);
  return true;
}

static lcomm_exchange_kind choose_dense(lcomm_plan *plan, lcomm_algorithm wanted,
                                        const lcomm_topo *topo, int ranks, uint64_t count,
                                        lcomm_stage stage) {
  lcomm_exchange_kind named;
  if (choose_named(plan, wanted, stage, &named)) {
    return named;
  }
  if (suits_ring(plan, topo, ranks, count, stage)) {
    lcomm_select_say(plan, "long exact pieces between nodes go around a ring");
    return LCOMM_EXCHANGE_RING;
  }
  if (ranks >= LCOMM_PAIRS_NODES_MIN && lcomm_select_suits_pairs(plan, topo, stage)) {
    return lcomm_select_cheapest(plan, topo, ranks, count * plan->element_size);
  }
  if (lcomm_select_is_small(plan, topo->size)) {
    lcomm_select_say(plan, "small, one round");
    return LCOMM_EXCHANGE_GATHER;
  }
  if (!lcomm_eligibility_is_exact(&plan->stages[stage].format, plan->dtype) && ranks == 2) {
    lcomm_select_say(plan, "two sides, one quantisation, one round");
    return LCOMM_EXCHANGE_GATHER;
  }
  /* Each sends as many bytes as in two rounds, and sums twice as many: inside a host it
   * takes four fifths of the time at 16 KiB, and as long at 64 KiB. */
  if (ranks == 2 && count * plan->element_size <= PAIR_BYTES) {
    lcomm_select_say(plan, "two sides, one round");
    return LCOMM_EXCHANGE_GATHER;
  }
  return LCOMM_EXCHANGE_DIRECT;
}

/* Servers sum tensors; plans are for all else. */
static lcomm_algorithm wanted_by(const lcomm_policy *policy) {
  return policy->algorithm == LCOMM_ALGO_SERVERS ? LCOMM_ALGO_AUTO : policy->algorithm;
}

/* The exchange of a shape that the rules choose. */
static void choose_exchange(lcomm_plan *plan, const lcomm_policy *policy, const lcomm_topo *topo,
                            lcomm_stage stage) {
  int ranks = 0;
  uint64_t count = 0;
  exchange_size(plan, topo, &ranks, &count);
  plan->shape.exchange = lcomm_format_is_sparse(&plan->stages[stage].format)
                             ? choose_sparse(plan, wanted_by(policy), stage, ranks, count)
                             : choose_dense(plan, wanted_by(policy), topo, ranks, count, stage);
  plan->shape.chunks = lcomm_select_chunks(plan, topo, stage, ranks, count);
}

static void choose_result(lcomm_plan *plan, lcomm_stage stage) {
  if (plan->shape.exchange == LCOMM_EXCHANGE_SPARSE &&
      lcomm_plan_density(plan, stage, 0, plan->vector_count) > INT8_BITS / ENTRY_BITS) {
    lcomm_select_say(plan, "at this density a dense int8 result is smaller");
    plan->stages[LCOMM_STAGE_RESULT] =
        (lcomm_codec_spec){.format = lcomm_format_of(&lcomm_codec_int8), .error_feedback = true};
  }
}

/* Why a sum between nodes does not go by racks; NULL: it does. One piece for each node of the
 * smallest rack: the others must not have many more nodes, whose owners would do the work of all.
 */
static const char *why_not_by_racks(const lcomm_plan *plan, const lcomm_topo *topo,
                                    lcomm_stage stage) {
  int smallest = lcomm_racks_smallest(&topo->racks), largest = lcomm_racks_largest(&topo->racks);
  if (lcomm_format_is_sparse(&plan->stages[stage].format)) {
    return "racks do not count for top-k";
  }
  if (plan->automatic.allowed) {
    return "racks do not count for net=auto, which predicts times for nodes";
  }
  if (smallest < 2) {
    return "racks do not count, as one of them has a single node";
  }
  return largest > 2 * smallest
             ? "racks do not count, as one has more than twice the nodes of another"
             : NULL;
}

static void choose_racks(lcomm_plan *plan, const lcomm_topo *topo, lcomm_stage stage) {
  const char *why = why_not_by_racks(plan, topo, stage);
  plan->shape.by_racks = !why;
  plan->shape.hierarchical |= !why;
  lcomm_select_say(plan, why ? why : "inside each rack first, then between racks");
}

static void choose_shape(lcomm_plan *plan, const lcomm_policy *policy, const lcomm_topo *topo,
                         lcomm_stage stage) {
  bool automatic = wanted_by(policy) == LCOMM_ALGO_AUTO;
  if (automatic) {
    lcomm_select_widen_short(plan, topo);
  }
  if (automatic && lcomm_select_suits_leaders(plan, topo)) {
    lcomm_select_leaders(plan, topo);
    return;
  }
  bool small = automatic && lcomm_select_is_small(plan, topo->size);
  plan->shape.hierarchical = topo->nodes > 1 && topo->nodes < topo->size && !small;
  if (topo->racks.count > 1 && !small) {
    choose_racks(plan, topo, stage);
  }
  choose_exchange(plan, policy, topo, stage);
}

void lcomm_plan_select(lcomm_plan *plan, const lcomm_plan_request *request,
                       const lcomm_policy *policy, const lcomm_topo *topo) {
  lcomm_stage stage = topo->nodes > 1 ? LCOMM_STAGE_NET : LCOMM_STAGE_NODE;
  choose_codecs(plan, request, policy, topo);
  plan->shape.chunks = 1;
  if (plan->collective == LCOMM_COLLECTIVE_BARRIER) {
    lcomm_select_barrier(plan, topo);
    return;
  }
  if (plan->collective == LCOMM_COLLECTIVE_BROADCAST) {
    plan->shape.chunks = lcomm_select_broadcast_chunks(plan, topo);
  }
  if (moves_in_ring(plan, topo)) {
    plan->shape.exchange = LCOMM_EXCHANGE_RING;
  } else if (gathers_by_doubling(plan, topo)) {
    plan->shape.exchange = LCOMM_EXCHANGE_DOUBLING;
  }
  if (plan->collective != LCOMM_COLLECTIVE_ALLREDUCE) {
    return;
  }
  if (request->shape) {
    plan->shape = *request->shape;
    lcomm_select_widen_for(plan, request->shape);
    if (topo->racks.count > 1 && plan->automatic.allowed) {
      lcomm_select_say(plan, why_not_by_racks(plan, topo, stage));
    }
  } else {
    choose_shape(plan, policy, topo, stage);
  }
  plan->shape.pieces = lcomm_select_pieces(plan, topo);
  choose_result(plan, stage);
}
