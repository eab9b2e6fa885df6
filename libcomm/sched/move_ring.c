/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Reduce-scatter and all-gather around a ring of the nodes. Each link between nodes has one sender
 * and one receiver at any time, where several senders meet at a receiver if parts go straight to
 * their ranks. Partial sums travel, so the sums are exact ones. */

#include <stdlib.h>

#include "libcomm/sched/move_parts.h"

typedef struct ring {
  lcomm_schedule *schedule;
  const lcomm_topo *topo;
  const uint64_t *begins;
  lcomm_group node; /* ranks of my node */
  int home, left, right;
  uint32_t *sources; /* scratch: one slot per rank of my node */
} ring;

typedef void ring_step(const ring *r, int owner);

static ring ring_of(lcomm_schedule *schedule, const lcomm_topo *topo, const uint64_t *begins) {
  int home = topo->node[schedule->rank];
  return (ring){.schedule = schedule,
                .topo = topo,
                .begins = begins,
                .node = lcomm_topo_node_group(topo, home, schedule->rank),
                .home = home,
                .left = (home + topo->nodes - 1) % topo->nodes,
                .right = (home + 1) % topo->nodes};
}

static int collector_of(const ring *r, int node, int owner) {
  return lcomm_reduce_scatter_collector(r->topo, node, owner);
}

/* step() for all parts that are not empty of the ranks of a node. */
static void for_parts_of(const ring *r, int node, ring_step *step) {
  for (int local = 0; local < r->topo->node_size[node]; local++) {
    int owner = lcomm_topo_rank(r->topo, node, local);
    if (lcomm_part_of(r->begins, owner).count > 0) {
      step(r, owner);
    }
  }
}

/* The node that is `hops` before mine. */
static int node_before(const ring *r, int hops) {
  return (r->home + r->topo->nodes - hops) % r->topo->nodes;
}

/* ------------------------------------------------------- reduce-scatter */

static void sum_in_node(const ring *r, int owner) {
  (void)lcomm_part_sum_in_node(r->schedule, r->topo, r->node, lcomm_part_of(r->begins, owner),
                               collector_of(r, r->home, owner), r->sources);
}

/* The sum of a part begins behind its owner's node, takes that of each node, and ends at its owner.
 */
static void add_and_pass_on(const ring *r, int owner) {
  lcomm_span part = lcomm_part_of(r->begins, owner);
  int of = r->topo->node[owner];
  if (collector_of(r, r->home, owner) != r->schedule->rank) {
    return;
  }
  if (of != r->left) {
    uint32_t slot = lcomm_schedule_slot(r->schedule, LCOMM_STAGE_NET, part.count);
    uint32_t sources[2] = {slot, LCOMM_SOURCE_SELF};
    lcomm_schedule_receive(r->schedule, slot, collector_of(r, r->left, owner));
    if (of == r->home) {
      lcomm_schedule_sum(r->schedule, part, sources, 2, LCOMM_FEEDBACK_NONE);
      return;
    }
    lcomm_schedule_partial(r->schedule, part, sources, 2);
  }
  uint32_t sum = lcomm_schedule_slot(r->schedule, LCOMM_STAGE_NET, part.count);
  lcomm_schedule_encode(r->schedule, part, sum, 1, LCOMM_FEEDBACK_NONE);
  lcomm_schedule_send(r->schedule, sum, collector_of(r, r->right, owner));
}

lcomm_status lcomm_reduce_scatter_ring(lcomm_schedule *schedule, const lcomm_topo *topo,
                                       const uint64_t *begins) {
  ring r = ring_of(schedule, topo, begins);
  r.sources = malloc((size_t)r.node.size * sizeof *r.sources);
  if (!r.sources) {
    return schedule->status = LCOMM_ERR_MEMORY;
  }
  for (int hop = 1; hop <= topo->nodes; hop++) {
    for_parts_of(&r, node_before(&r, hop), sum_in_node);
  }
  for (int hop = 1; hop <= topo->nodes && topo->nodes > 1; hop++) {
    for_parts_of(&r, node_before(&r, hop), add_and_pass_on);
  }
  free(r.sources);
  return schedule->status;
}

/* ------------------------------------------------------------ all-gather */

static void tell_my_part(const ring *r) {
  int me = r->schedule->rank;
  lcomm_span part = lcomm_part_of(r->begins, me);
  if (part.count == 0) {
    return;
  }
  uint32_t slot = lcomm_schedule_slot(r->schedule, LCOMM_STAGE_RESULT, part.count);
  lcomm_schedule_encode(r->schedule, part, slot, 1, LCOMM_FEEDBACK_NONE);
  if (r->topo->nodes > 1) {
    lcomm_schedule_send(r->schedule, slot, collector_of(r, r->right, me));
  }
  lcomm_part_to_node(r->schedule, r->node, slot);
}

/* The part of another rank: one of my node tells it itself; that of another node comes to its
 * collector here, who passes it on unless the next node has it, and tells the others. */
static void hear_and_pass_on(const ring *r, int owner) {
  lcomm_span part = lcomm_part_of(r->begins, owner);
  int of = r->topo->node[owner], here = collector_of(r, r->home, owner);
  if (owner == r->schedule->rank) {
    return;
  }
  if (of == r->home || here != r->schedule->rank) {
    (void)lcomm_part_receive(r->schedule, part, here);
    return;
  }
  uint32_t slot = lcomm_part_receive(r->schedule, part, collector_of(r, r->left, owner));
  if (of != r->right) {
    lcomm_schedule_send(r->schedule, slot, collector_of(r, r->right, owner));
  }
  lcomm_part_to_node(r->schedule, r->node, slot);
}

lcomm_status lcomm_allgather_ring(lcomm_schedule *schedule, const lcomm_topo *topo,
                                  const uint64_t *begins) {
  ring r = ring_of(schedule, topo, begins);
  if (topo->size == 1) {
    return schedule->status;
  }
  tell_my_part(&r);
  for (int hop = 0; hop < topo->nodes; hop++) {
    for_parts_of(&r, node_before(&r, hop), hear_and_pass_on);
  }
  return schedule->status;
}
