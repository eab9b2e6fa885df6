/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SCHED_BUILDERS_H
#define LCOMM_SCHED_BUILDERS_H

/* Whole collectives over a topology, made of exchanges and trees. Each adds
 * the part of schedule->rank to a fresh schedule. ARGUMENT for what cannot be
 * built, MEMORY. */

#include "libcomm/sched/exchange.h"

typedef struct lcomm_allreduce_shape {
  lcomm_exchange_kind exchange;
  /* true: reduce inside each node first, exchange between nodes, then broadcast in the node. false:
   * one exchange over all ranks. */
  bool hierarchical;
  uint32_t chunks; /* pieces that move through the phases independently */
  /* Hierarchical only. Leaders: one shard, the first rank of each node speaks
   * for all of it; fewest messages, for short vectors. Otherwise as many
   * shards as the smallest node has ranks. */
  bool leaders;
  /* Hierarchical without leaders, not sparse, several racks: between nodes sums go by racks. */
  bool by_racks;
  /* Hierarchical gather: members send the sum to their node instead of all contributions. For exact
   * stages, where the sum loses nothing: the members keep it as it is. Doubling and halving always
   * do. */
  bool tells_sum;
  /* Hierarchical only: 0, or contributions inside nodes go in so many pieces of a chunk, a divisor
   * of the number of owners, and what a rank receives from its node takes the memory of what it
   * received before. Pieces end where those of the owners do, and nodes visit each other by
   * pieces, so nodes stay alike. */
  uint32_t pieces;
} lcomm_allreduce_shape;

/* Nodes that own a part of each shard, those of different racks being one where sums go by racks.
 */
int lcomm_allreduce_owners(const lcomm_topo *topo, const lcomm_allreduce_shape *shape);

/* Of these, so many in a row have one piece together. */
static inline int lcomm_allreduce_block(const lcomm_allreduce_shape *shape, int owners) {
  return shape->pieces > 0 ? owners / (int)shape->pieces : 1;
}

/* A barrier is one of one element: nobody has the sum before all have sent.
 * Hierarchical form: shard s belongs to local rank s of every node, and further
 * ranks own none. So nodes of any size fit together. */
lcomm_status lcomm_allreduce_build(lcomm_schedule *schedule, const lcomm_topo *topo,
                                   const lcomm_allreduce_shape *shape);

/* The vector is size segments, of part_counts[r] elements or, where that is NULL, of `count` each;
 * segment r ends up summed on rank r. Reduced inside each node first, then by a ring of the nodes,
 * or straight to its rank (any other kind). The schedule has as many elements as all segments
 * together. */
lcomm_status lcomm_reduce_scatter_build(lcomm_schedule *schedule, const lcomm_topo *topo,
                                        uint64_t count, const uint64_t *part_counts,
                                        lcomm_exchange_kind kind);

/* The rank of node `node` that sums its contributions to the segment of `owner`: the owner
 * itself on its own node, elsewhere the one with the same local rank (wrapped around in
 * smaller nodes). It passes that segment of an all-gather on, too. */
int lcomm_reduce_scatter_collector(const lcomm_topo *topo, int node, int owner);

/* Segments likewise: that of rank r goes to everyone. Around a ring of the nodes; doubling: in log2
 * steps, in which first ranks of nodes tell each other all that they have (Bruck), then inside the
 * nodes; any other kind: straight, once to each node, then inside the nodes. */
lcomm_status lcomm_allgather_build(lcomm_schedule *schedule, const lcomm_topo *topo, uint64_t count,
                                   const uint64_t *part_counts, lcomm_exchange_kind kind);

/* The vector is an input of size segments of `count` elements, then an output
 * of as many. Segment r of the input goes to rank r; the output's segment s
 * comes from rank s. Straight from rank to rank, in rotated order; the own
 * segment by way of a slot. */
lcomm_status lcomm_alltoall_build(lcomm_schedule *schedule, const lcomm_topo *topo, uint64_t count);

/* One chunk: down a binomial tree of the nodes. More: each along a chain of the nodes, which follow
 * that of the root in rotated order. Inside a node each down a binomial tree. */
lcomm_status lcomm_broadcast_build(lcomm_schedule *schedule, const lcomm_topo *topo, int root,
                                   uint32_t chunks);

/* Does a node learn a sum of the hierarchical form in the pieces in which it came from other nodes?
 * Else one rank of it sends the sum that it holds. */
bool lcomm_allreduce_forwards(const lcomm_topo *topo, const lcomm_allreduce_shape *shape);

/* Are the ranks of each node neighbours, in the order of the nodes? */
bool lcomm_topo_nodes_in_row(const lcomm_topo *topo);

/* Number of shards of the hierarchical form without leaders. */
int lcomm_topo_smallest_node(const lcomm_topo *topo);

#endif
