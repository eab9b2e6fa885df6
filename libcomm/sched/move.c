/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Reduce-scatter and all-gather over a topology. Nodes, and the ranks inside them, are visited in
 * rotated order (sends begin with the next one, receives with the one before), so that senders and
 * receivers pair up.
 */

#include <stdlib.h>

#include "libcomm/sched/move_parts.h"

int lcomm_reduce_scatter_collector(const lcomm_topo *topo, int node, int owner) {
  return lcomm_topo_rank(topo, node, topo->local[owner] % topo->node_size[node]);
}

/* ----------------------------------------------------------------- parts */

/* Part r has part_counts[r] elements, or `count` where that is NULL. ARGUMENT unless the parts fill
 * the vector. */
static lcomm_status build_of_parts(lcomm_schedule *schedule, const lcomm_topo *topo, uint64_t count,
                                   const uint64_t *part_counts, lcomm_parts_build *build) {
  uint64_t *begins = malloc(((size_t)topo->size + 1) * sizeof *begins);
  if (!begins) {
    return schedule->status = LCOMM_ERR_MEMORY;
  }
  begins[0] = 0;
  bool fits = true;
  for (int rank = 0; rank < topo->size; rank++) {
    uint64_t part = part_counts ? part_counts[rank] : count;
    fits = fits && part <= schedule->count - begins[rank];
    begins[rank + 1] = fits ? begins[rank] + part : begins[rank];
  }
  lcomm_status status = fits && begins[topo->size] == schedule->count
                            ? build(schedule, topo, begins)
                            : LCOMM_ERR_ARGUMENT;
  free(begins);
  return status;
}

/* ------------------------------------------------------- reduce-scatter */

/* The other nodes' sums of my segment arrive from their collectors; sources has
 * room for one slot per node. */
static void sum_over_nodes(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_span span,
                           uint32_t *sources) {
  int home = topo->node[schedule->rank];
  sources[home] = LCOMM_SOURCE_SELF;
  for (int i = 1; i < topo->nodes; i++) {
    int node = (home + topo->nodes - i) % topo->nodes;
    sources[node] = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, span.count);
    lcomm_schedule_receive(schedule, sources[node],
                           lcomm_reduce_scatter_collector(topo, node, schedule->rank));
  }
  lcomm_schedule_sum(schedule, span, sources, (uint32_t)topo->nodes, LCOMM_FEEDBACK_KEEP);
}

bool lcomm_part_sum_in_node(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_group node,
                            lcomm_span span, int collector, uint32_t *sources) {
  bool mine =
      node.size == 1 || lcomm_collect_build(schedule, node, span, topo->local[collector], sources);
  if (mine && topo->nodes == 1 && node.size > 1) {
    lcomm_schedule_sum(schedule, span, sources, (uint32_t)node.size, LCOMM_FEEDBACK_NONE);
  } else if (mine && node.size > 1) {
    lcomm_schedule_partial(schedule, span, sources, (uint32_t)node.size);
  }
  return mine;
}

/* My node's sum of the segment of `owner`, on its collector. */
static void sum_in_node(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_group node,
                        const uint64_t *begins, int owner, uint32_t *sources) {
  lcomm_span span = lcomm_part_of(begins, owner);
  if (span.count == 0) {
    return;
  }
  int collector = lcomm_reduce_scatter_collector(topo, topo->node[schedule->rank], owner);
  bool mine = lcomm_part_sum_in_node(schedule, topo, node, span, collector, sources);
  if (mine && owner != schedule->rank) {
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, span.count);
    lcomm_schedule_encode(schedule, span, slot, 1, LCOMM_FEEDBACK_SEND);
    lcomm_schedule_send(schedule, slot, owner);
  }
}

/* All segments whose collector is local rank `collector`: those of the next node
 * first, of the own one last. The order is the same on all ranks of a node,
 * which numbers the messages alike. */
static void sum_for_collector(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_group node,
                              const uint64_t *begins, int collector, uint32_t *sources) {
  int home = topo->node[schedule->rank];
  for (int i = 1; i <= topo->nodes; i++) {
    int other = (home + i) % topo->nodes;
    for (int local = collector; local < topo->node_size[other]; local += node.size) {
      sum_in_node(schedule, topo, node, begins, lcomm_topo_rank(topo, other, local), sources);
    }
  }
}

static lcomm_status build_reduce_scatter(lcomm_schedule *schedule, const lcomm_topo *topo,
                                         const uint64_t *begins) {
  int me = schedule->rank;
  lcomm_group node = lcomm_topo_node_group(topo, topo->node[me], me);
  int room = topo->nodes > node.size ? topo->nodes : node.size;
  uint32_t *sources = malloc((size_t)room * sizeof *sources);
  if (!sources) {
    return schedule->status = LCOMM_ERR_MEMORY;
  }
  for (int i = 1; i <= node.size; i++) {
    sum_for_collector(schedule, topo, node, begins, (node.me + i) % node.size, sources);
  }
  if (topo->nodes > 1 && lcomm_part_of(begins, me).count > 0) {
    sum_over_nodes(schedule, topo, lcomm_part_of(begins, me), sources);
  }
  free(sources);
  return schedule->status;
}

lcomm_status lcomm_reduce_scatter_build(lcomm_schedule *schedule, const lcomm_topo *topo,
                                        uint64_t count, const uint64_t *part_counts,
                                        lcomm_exchange_kind kind) {
  lcomm_parts_build *build =
      kind == LCOMM_EXCHANGE_RING ? lcomm_reduce_scatter_ring : build_reduce_scatter;
  return build_of_parts(schedule, topo, count, part_counts, build);
}

/* ------------------------------------------------------------ all-gather */

void lcomm_part_to_node(lcomm_schedule *schedule, lcomm_group node, uint32_t slot) {
  for (int i = 1; i < node.size; i++) {
    lcomm_schedule_send(schedule, slot, node.ranks[(node.me + i) % node.size]);
  }
}

uint32_t lcomm_part_receive(lcomm_schedule *schedule, lcomm_span part, int from) {
  uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, part.count);
  lcomm_schedule_receive(schedule, slot, from);
  lcomm_schedule_decode(schedule, slot, part, LCOMM_NO_SLOT);
  return slot;
}

static void publish_my_part(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_group node,
                            lcomm_span part) {
  int me = schedule->rank, home = topo->node[me];
  if (part.count == 0) {
    return;
  }
  uint32_t mine = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, part.count);
  lcomm_schedule_encode(schedule, part, mine, 1, LCOMM_FEEDBACK_NONE);
  for (int i = 1; i < topo->nodes; i++) {
    lcomm_schedule_send(schedule, mine,
                        lcomm_reduce_scatter_collector(topo, (home + i) % topo->nodes, me));
  }
  lcomm_part_to_node(schedule, node, mine);
}

/* The part of a rank of another node, from it or from its collector here. */
static void gather_remote_part(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_group node,
                               lcomm_span part, int owner) {
  int me = schedule->rank, collector = lcomm_reduce_scatter_collector(topo, topo->node[me], owner);
  if (part.count == 0) {
    return;
  }
  uint32_t slot = lcomm_part_receive(schedule, part, collector == me ? owner : collector);
  if (collector == me) {
    lcomm_part_to_node(schedule, node, slot);
  }
}

static lcomm_status build_allgather(lcomm_schedule *schedule, const lcomm_topo *topo,
                                    const uint64_t *begins) {
  int me = schedule->rank, home = topo->node[me];
  lcomm_group node = lcomm_topo_node_group(topo, home, me);
  if (topo->size == 1) {
    return schedule->status;
  }
  publish_my_part(schedule, topo, node, lcomm_part_of(begins, me));
  for (int i = 1; i < node.size; i++) {
    int owner = node.ranks[(node.me + node.size - i) % node.size];
    if (lcomm_part_of(begins, owner).count > 0) {
      lcomm_part_receive(schedule, lcomm_part_of(begins, owner), owner);
    }
  }
  for (int i = 1; i < topo->nodes; i++) {
    int other = (home + topo->nodes - i) % topo->nodes;
    for (int local = 0; local < topo->node_size[other]; local++) {
      int owner = lcomm_topo_rank(topo, other, local);
      gather_remote_part(schedule, topo, node, lcomm_part_of(begins, owner), owner);
    }
  }
  return schedule->status;
}

lcomm_status lcomm_allgather_build(lcomm_schedule *schedule, const lcomm_topo *topo, uint64_t count,
                                   const uint64_t *part_counts, lcomm_exchange_kind kind) {
  lcomm_parts_build *build = kind == LCOMM_EXCHANGE_RING       ? lcomm_allgather_ring
                             : kind == LCOMM_EXCHANGE_DOUBLING ? lcomm_allgather_bruck
                                                               : build_allgather;
  return build_of_parts(schedule, topo, count, part_counts, build);
}
