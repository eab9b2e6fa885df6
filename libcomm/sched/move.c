/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Broadcast, all-gather and reduce-scatter over a topology. */

#include <stdlib.h>

#include "libcomm/sched/collective.h"

/* The rank of node `node` that speaks for `rank` there: the rank itself on
 * its own node, elsewhere the one with the same local rank (wrapped around
 * in smaller nodes). */
static int speaker(const lcomm_topo *topo, int node, int rank) {
  return lcomm_topo_rank(topo, node, topo->local[rank] % topo->node_size[node]);
}

/* ------------------------------------------------------- reduce-scatter */

/* The other nodes' sums of my segment arrive from their speakers; sources has
 * room for one slot per node. */
static void sum_over_nodes(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_span span,
                           uint32_t *sources) {
  int home = topo->node[schedule->rank];
  for (int node = 0; node < topo->nodes; node++) {
    sources[node] = LCOMM_SOURCE_SELF;
    if (node != home) {
      sources[node] = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, span.count);
      lcomm_schedule_receive(schedule, sources[node], speaker(topo, node, schedule->rank));
    }
  }
  lcomm_schedule_sum(schedule, span, sources, (uint32_t)topo->nodes, LCOMM_FEEDBACK_KEEP);
}

/* My node's sum of the segment of `owner`, on the rank that speaks for it. */
static void sum_in_node(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_group node,
                        lcomm_span span, int owner, uint32_t *sources) {
  int collector = speaker(topo, topo->node[schedule->rank], owner);
  bool mine =
      node.size == 1 || lcomm_collect_build(schedule, node, span, topo->local[collector], sources);
  if (!mine) {
    return;
  }
  if (topo->nodes == 1 && node.size > 1) {
    lcomm_schedule_sum(schedule, span, sources, (uint32_t)node.size, LCOMM_FEEDBACK_NONE);
  } else if (node.size > 1) {
    lcomm_schedule_partial(schedule, span, sources, (uint32_t)node.size);
  }
  if (owner != schedule->rank) {
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, span.count);
    lcomm_schedule_encode(schedule, span, slot, 1, LCOMM_FEEDBACK_SEND);
    lcomm_schedule_send(schedule, slot, owner);
  }
}

lcomm_status lcomm_reduce_scatter_build(lcomm_schedule *schedule, const lcomm_topo *topo,
                                        uint64_t count) {
  int me = schedule->rank;
  lcomm_group node = lcomm_topo_node_group(topo, topo->node[me], me);
  if (count == 0) {
    return schedule->status;
  }
  int room = topo->nodes > node.size ? topo->nodes : node.size;
  uint32_t *sources = malloc((size_t)room * sizeof(*sources));
  if (!sources) {
    return schedule->status = LCOMM_ERR_MEMORY;
  }
  for (int owner = 0; owner < topo->size; owner++) {
    lcomm_span span = lcomm_span_whole((uint64_t)owner * count, count);
    sum_in_node(schedule, topo, node, span, owner, sources);
  }
  if (topo->nodes > 1) {
    sum_over_nodes(schedule, topo, lcomm_span_whole((uint64_t)me * count, count), sources);
  }
  free(sources);
  return schedule->status;
}

/* ------------------------------------------------------------ all-gather */

static void send_to_node(lcomm_schedule *schedule, lcomm_group node, uint32_t slot) {
  for (int i = 1; i < node.size; i++) {
    lcomm_schedule_send(schedule, slot, node.ranks[(node.me + i) % node.size]);
  }
}

static uint32_t receive_segment(lcomm_schedule *schedule, int owner, uint64_t count, int from) {
  uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
  lcomm_schedule_receive(schedule, slot, from);
  lcomm_schedule_decode(schedule, slot, lcomm_span_whole((uint64_t)owner * count, count),
                        LCOMM_NO_SLOT);
  return slot;
}

lcomm_status lcomm_allgather_build(lcomm_schedule *schedule, const lcomm_topo *topo,
                                   uint64_t count) {
  int me = schedule->rank, home = topo->node[me];
  lcomm_group node = lcomm_topo_node_group(topo, home, me);
  if (count == 0 || topo->size == 1) {
    return schedule->status;
  }
  uint32_t mine = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
  lcomm_schedule_encode(schedule, lcomm_span_whole((uint64_t)me * count, count), mine, 1,
                        LCOMM_FEEDBACK_NONE);
  for (int i = 1; i < topo->nodes; i++) {
    lcomm_schedule_send(schedule, mine, speaker(topo, (home + i) % topo->nodes, me));
  }
  send_to_node(schedule, node, mine);
  for (int i = 0; i < node.size; i++) {
    if (node.ranks[i] != me) {
      receive_segment(schedule, node.ranks[i], count, node.ranks[i]);
    }
  }
  for (int owner = 0; owner < topo->size; owner++) {
    int collector = speaker(topo, home, owner);
    if (topo->node[owner] == home) {
      continue;
    }
    uint32_t slot = receive_segment(schedule, owner, count, collector == me ? owner : collector);
    if (collector == me) {
      send_to_node(schedule, node, slot);
    }
  }
  return schedule->status;
}

/* ------------------------------------------------------------- broadcast */

/* Position `index` of `size` in a binomial tree rooted at 0: its parent is
 * the index without its lowest set bit. */
static int tree_parent(int index) {
  return index & (index - 1);
}

/* The first child's distance is the largest power of two below both the
 * lowest set bit of index (any for the root) and size. */
static int tree_reach(int index, int size) {
  int limit = index == 0 ? size : index & -index;
  int reach = 1;
  while (reach * 2 < limit) {
    reach *= 2;
  }
  return reach < limit ? reach : 0;
}

static void send_to_children(lcomm_schedule *schedule, uint32_t slot, const int *ranks, int size,
                             int index) {
  for (int reach = tree_reach(index, size); reach > 0; reach /= 2) {
    if (index + reach < size) {
      lcomm_schedule_send(schedule, slot, ranks[index + reach]);
    }
  }
}

static int index_of(const int *ranks, int size, int rank) {
  for (int i = 0; i < size; i++) {
    if (ranks[i] == rank) {
      return i;
    }
  }
  return -1;
}

/* The head of a node takes part in the tree between nodes. */
static int head_of(const lcomm_topo *topo, int node, int root) {
  return node == topo->node[root] ? root : lcomm_topo_rank(topo, node, 0);
}

lcomm_status lcomm_broadcast_build(lcomm_schedule *schedule, const lcomm_topo *topo, int root) {
  int me = schedule->rank, home = topo->node[me], head = head_of(topo, home, root);
  lcomm_group node = lcomm_topo_node_group(topo, home, me);
  if (schedule->count == 0 || topo->size == 1) {
    return schedule->status;
  }
  int room = topo->nodes > node.size ? topo->nodes : node.size;
  int *tree = malloc((size_t)room * sizeof(*tree));
  if (!tree) {
    return schedule->status = LCOMM_ERR_MEMORY;
  }
  lcomm_span whole = lcomm_span_whole(0, schedule->count);
  uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, schedule->count);
  if (me == root) {
    lcomm_schedule_encode(schedule, whole, slot, 1, LCOMM_FEEDBACK_NONE);
  }
  if (me == head) {
    for (int i = 0; i < topo->nodes; i++) {
      tree[i] = head_of(topo, (topo->node[root] + i) % topo->nodes, root);
    }
    int index = index_of(tree, topo->nodes, me);
    if (index > 0) {
      lcomm_schedule_receive(schedule, slot, tree[tree_parent(index)]);
    }
    send_to_children(schedule, slot, tree, topo->nodes, index);
  }
  int head_index = index_of(node.ranks, node.size, head);
  for (int i = 0; i < node.size; i++) {
    tree[i] = node.ranks[(head_index + i) % node.size];
  }
  int index = index_of(tree, node.size, me);
  if (index > 0) {
    lcomm_schedule_receive(schedule, slot, tree[tree_parent(index)]);
  }
  send_to_children(schedule, slot, tree, node.size, index);
  if (me != root) {
    lcomm_schedule_decode(schedule, slot, whole, LCOMM_NO_SLOT);
  }
  free(tree);
  return schedule->status;
}
