/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SCHED_MOVE_PARTS_H
#define LCOMM_SCHED_MOVE_PARTS_H

/* What builders of reduce-scatter and all-gather share (move.c, move_ring.c, move_bruck.c). Part r
 * of the vector is rank r's: elements begins[r] up to begins[r + 1]. On each node one rank is a
 * part's collector: lcomm_reduce_scatter_collector(). */

#include "libcomm/sched/builders.h"

typedef lcomm_status lcomm_parts_build(lcomm_schedule *schedule, const lcomm_topo *topo,
                                       const uint64_t *begins);

/* Around a ring of the nodes: its collectors pass a part on. */
lcomm_parts_build lcomm_reduce_scatter_ring, lcomm_allgather_ring;

/* In log2 steps of what nodes have, or all ranks. */
lcomm_parts_build lcomm_allgather_bruck;

static inline lcomm_span lcomm_part_of(const uint64_t *begins, int rank) {
  return lcomm_span_whole(begins[rank], begins[rank + 1] - begins[rank]);
}

/* My node's sum of a part, on its rank `collector`. Am I that rank? sources has room for one slot
 * per rank of the node. */
bool lcomm_part_sum_in_node(lcomm_schedule *schedule, const lcomm_topo *topo, lcomm_group node,
                            lcomm_span span, int collector, uint32_t *sources);

void lcomm_part_to_node(lcomm_schedule *schedule, lcomm_group node, uint32_t slot);

/* Returns its slot. */
uint32_t lcomm_part_receive(lcomm_schedule *schedule, lcomm_span part, int from);

#endif
