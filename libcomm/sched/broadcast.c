/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Broadcast over a topology: the head of each node hears from another head, and its node from it.
 *
 * One piece goes down a binomial tree of the heads. Several go along a chain of them, one behind
 * the other, so that each link between nodes carries the vector once and all links are busy at
 * the same time; a tree's root sends it lg(nodes) times. */

#include <stdlib.h>

#include "libcomm/sched/builders.h"

/* Ranks among which a piece goes from place 0 on, and mine; mine < 0: I am none of them. */
typedef struct passing {
  int *ranks;
  int size, mine;
} passing;

/* What does not change from piece to piece. */
typedef struct broadcast {
  lcomm_schedule *schedule;
  passing heads, node;
  bool chain;
} broadcast;

/* Place `index` of `size` in a binomial tree rooted at 0: its parent is the index without its
 * lowest set bit. */
static int tree_parent(int index) {
  return index & (index - 1);
}

/* The first child's distance is the largest power of two below both the lowest set bit of index
 * (any for the root) and size. */
static int tree_reach(int index, int size) {
  int limit = index == 0 ? size : index & -index;
  int reach = 1;
  while (reach * 2 < limit) {
    reach *= 2;
  }
  return reach < limit ? reach : 0;
}

static void pass_down_tree(lcomm_schedule *schedule, const passing *among, uint32_t slot) {
  int mine = among->mine;
  if (mine > 0) {
    lcomm_schedule_receive(schedule, slot, among->ranks[tree_parent(mine)]);
  }
  for (int reach = tree_reach(mine, among->size); reach > 0; reach /= 2) {
    if (mine + reach < among->size) {
      lcomm_schedule_send(schedule, slot, among->ranks[mine + reach]);
    }
  }
}

static void pass_along_chain(lcomm_schedule *schedule, const passing *among, uint32_t slot) {
  if (among->mine > 0) {
    lcomm_schedule_receive(schedule, slot, among->ranks[among->mine - 1]);
  }
  if (among->mine + 1 < among->size) {
    lcomm_schedule_send(schedule, slot, among->ranks[among->mine + 1]);
  }
}

/* The head of a node hears from other nodes. */
static int head_of(const lcomm_topo *topo, int node, int root) {
  return node == topo->node[root] ? root : lcomm_topo_rank(topo, node, 0);
}

/* The heads of all nodes, those behind the root's node in rotated order. */
static void find_heads(passing *heads, const lcomm_topo *topo, int root, int me) {
  heads->size = topo->nodes;
  heads->mine = -1;
  for (int i = 0; i < topo->nodes; i++) {
    heads->ranks[i] = head_of(topo, (topo->node[root] + i) % topo->nodes, root);
    heads->mine = heads->ranks[i] == me ? i : heads->mine;
  }
}

/* The ranks of my node, its head first. */
static void find_node(passing *node, lcomm_group group, int head) {
  int first = 0;
  while (group.ranks[first] != head) {
    first++;
  }
  node->size = group.size;
  node->mine = (group.me + group.size - first) % group.size;
  for (int i = 0; i < group.size; i++) {
    node->ranks[i] = group.ranks[(first + i) % group.size];
  }
}

static void pass_piece(const broadcast *it, lcomm_span span, bool root) {
  uint32_t slot = lcomm_schedule_slot(it->schedule, LCOMM_STAGE_RESULT, span.count);
  if (root) {
    lcomm_schedule_encode(it->schedule, span, slot, 1, LCOMM_FEEDBACK_NONE);
  }
  if (it->heads.mine >= 0 && it->chain) {
    pass_along_chain(it->schedule, &it->heads, slot);
  } else if (it->heads.mine >= 0) {
    pass_down_tree(it->schedule, &it->heads, slot);
  }
  pass_down_tree(it->schedule, &it->node, slot);
  if (!root) {
    lcomm_schedule_decode(it->schedule, slot, span, LCOMM_NO_SLOT);
  }
}

lcomm_status lcomm_broadcast_build(lcomm_schedule *schedule, const lcomm_topo *topo, int root,
                                   uint32_t chunks) {
  int me = schedule->rank, home = topo->node[me];
  lcomm_group group = lcomm_topo_node_group(topo, home, me);
  if (chunks < 1) {
    return LCOMM_ERR_ARGUMENT;
  }
  if (schedule->count == 0 || topo->size == 1) {
    return schedule->status;
  }
  int *ranks = malloc(((size_t)topo->nodes + (size_t)group.size) * sizeof *ranks);
  if (!ranks) {
    return schedule->status = LCOMM_ERR_MEMORY;
  }
  broadcast it = {schedule, {.ranks = ranks}, {.ranks = ranks + topo->nodes}, chunks > 1};
  find_heads(&it.heads, topo, root, me);
  find_node(&it.node, group, head_of(topo, home, root));
  lcomm_span whole = lcomm_span_whole(0, schedule->count);
  for (uint32_t chunk = 0; schedule->status == LCOMM_OK && chunk < chunks; chunk++) {
    lcomm_span span = lcomm_span_piece(whole, chunks, chunk);
    if (span.count > 0) {
      pass_piece(&it, span, me == root);
    }
  }
  free(ranks);
  return schedule->status;
}
