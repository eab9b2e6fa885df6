/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* All-reduce, flat or hierarchical.
 *
 * Inside a node too, peers are visited in rotated order: at any moment the
 * ranks send to different owners, and hear from the rank that sends to them.
 */

#include <stdlib.h>

#include "libcomm/sched/builders.h"

/* Slots that take each other's memory: each that of the one `depth` before it. */
typedef struct ring {
  uint32_t *slots; /* the last ones */
  uint32_t depth, used;
} ring;

typedef struct hier {
  lcomm_schedule *schedule;
  const lcomm_topo *topo;
  const lcomm_allreduce_shape *shape;
  lcomm_group node; /* ranks of my node */
  int shards;
  bool tells_sum;
  int *rail;          /* scratch: one rank per node */
  uint32_t *results;  /* scratch: one slot per node */
  uint32_t *sources;  /* scratch: one slot per rank of my node */
  int owners;         /* nodes with a part of each shard */
  int at, block;      /* my node among them; those that have one piece together */
  ring contributions; /* of my node to my shard */
  ring *told;         /* by the owner of each shard */
} hier;

int lcomm_topo_smallest_node(const lcomm_topo *topo) {
  int smallest = topo->size;
  for (int i = 0; i < topo->nodes; i++) {
    smallest = topo->node_size[i] < smallest ? topo->node_size[i] : smallest;
  }
  return smallest;
}

static lcomm_span chunk_of_shard(const hier *h, int shard, uint32_t chunk) {
  lcomm_span whole = lcomm_span_whole(0, h->schedule->count);
  lcomm_span part = lcomm_span_piece(whole, (uint32_t)h->shards, (uint32_t)shard);
  return lcomm_span_piece(part, h->shape->chunks, chunk);
}

int lcomm_allreduce_owners(const lcomm_topo *topo, const lcomm_allreduce_shape *shape) {
  return shape->by_racks ? (int)lcomm_racks_pieces(&topo->racks) : topo->nodes;
}

/* The ranks that own shard `shard`, one per node. */
static lcomm_group rail_of(const hier *h, int shard) {
  lcomm_group group = {h->rail, h->topo->nodes, -1};
  for (int i = 0; i < h->topo->nodes; i++) {
    h->rail[i] = lcomm_topo_rank(h->topo, i, shard);
    group.me = h->rail[i] == h->schedule->rank ? i : group.me;
  }
  return group;
}

/* What is exchanged of a shard between nodes. */
static lcomm_exchange exchange_of(const hier *h, int shard, uint32_t chunk) {
  return (lcomm_exchange){.kind = h->shape->exchange,
                          .group = rail_of(h, shard),
                          .span = chunk_of_shard(h, shard, chunk),
                          .stage = LCOMM_STAGE_NET,
                          .racks = h->shape->by_racks ? &h->topo->racks : NULL,
                          .block = h->block};
}

/* The part of a chunk that the owners of a block of nodes have. */
static lcomm_span piece_of(const hier *h, lcomm_span chunk, int piece) {
  uint32_t owners = (uint32_t)h->owners, block = (uint32_t)h->block;
  uint32_t first = (uint32_t)piece * block, last = first + block - 1;
  lcomm_span begin = lcomm_span_piece(chunk, owners, first);
  lcomm_span end = lcomm_span_piece(chunk, owners, last);
  return lcomm_span_whole(begin.first, end.first + end.count - begin.first);
}

/* The slots from `first` on take the memory of earlier ones. */
static void share(const hier *h, ring *of, uint32_t first) {
  if (h->shape->pieces == 0 || h->schedule->status != LCOMM_OK) {
    return;
  }
  for (uint32_t slot = first; slot < h->schedule->slot_count; slot++) {
    uint32_t *before = &of->slots[of->used % of->depth];
    if (of->used++ >= of->depth) {
      lcomm_schedule_share(h->schedule, slot, *before);
    }
    *before = slot;
  }
}

/* Inside the node: contributions to `span` go to local rank `owner`, which
 * sums them in rank order. */
static void reduce_to_owner(hier *h, lcomm_span span, int owner) {
  if (span.count == 0 || h->node.size == 1) {
    return;
  }
  uint32_t first = h->schedule->slot_count;
  if (lcomm_collect_build(h->schedule, h->node, span, owner, h->sources)) {
    share(h, &h->contributions, first);
    lcomm_schedule_partial(h->schedule, span, h->sources, (uint32_t)h->node.size);
  }
}

/* Send the sum itself to my node, in one message. */
static void send_sum(const hier *h, lcomm_span span, int owner) {
  if (span.count == 0 || h->node.size == 1) {
    return;
  }
  uint32_t slot = lcomm_schedule_slot(h->schedule, LCOMM_STAGE_RESULT, span.count);
  if (h->node.me != owner) {
    lcomm_schedule_receive(h->schedule, slot, h->node.ranks[owner]);
    lcomm_schedule_decode(h->schedule, slot, span, LCOMM_NO_SLOT);
    return;
  }
  lcomm_schedule_encode(h->schedule, span, slot, 1, LCOMM_FEEDBACK_NONE);
  for (int i = 1; i < h->node.size; i++) {
    lcomm_schedule_send(h->schedule, slot, h->node.ranks[(owner + i) % h->node.size]);
  }
}

static void tell_the_node(const hier *h, const lcomm_exchange *exchange, int owner) {
  if (h->tells_sum) {
    send_sum(h, exchange->span, owner);
    return;
  }
  if (h->node.me != owner) {
    lcomm_exchange_learn(h->schedule, exchange, h->node.ranks[owner], h->results);
    return;
  }
  for (int i = 1; i < h->node.size; i++) {
    int peer = h->node.ranks[(h->node.me + i) % h->node.size];
    lcomm_exchange_forward(h->schedule, exchange, h->results, peer);
  }
}

/* Contributions go to the owners after me first, to me last. Pieces come in the order in which
 * the exchange sends them. */
static void reduce_in_node(hier *h, uint32_t chunk) {
  int pieces = h->shape->pieces > 0 ? (int)h->shape->pieces : 1;
  for (int turn = 1; turn <= pieces; turn++) {
    int piece = (h->at / h->block + turn) % pieces;
    for (int i = 1; i <= h->shards; i++) {
      int shard = (h->node.me + i) % h->shards;
      lcomm_span span = chunk_of_shard(h, shard, chunk);
      reduce_to_owner(h, h->shape->pieces > 0 ? piece_of(h, span, piece) : span, shard);
    }
  }
}

/* The other shards, from the owners before me first. */
static void learn_from_node(const hier *h, uint32_t chunk) {
  for (int i = 1; i <= h->shards; i++) {
    int shard = ((h->node.me - i) % h->shards + h->shards) % h->shards;
    if (shard != h->node.me) {
      lcomm_exchange exchange = exchange_of(h, shard, chunk);
      uint32_t first = h->schedule->slot_count;
      tell_the_node(h, &exchange, shard);
      share(h, &h->told[shard], first);
    }
  }
}

static void build_chunk(hier *h, uint32_t chunk) {
  reduce_in_node(h, chunk);
  if (h->node.me < h->shards) {
    lcomm_exchange exchange = exchange_of(h, h->node.me, chunk);
    lcomm_exchange_build(h->schedule, &exchange, h->results);
    tell_the_node(h, &exchange, h->node.me);
  }
  learn_from_node(h, chunk);
}

bool lcomm_allreduce_forwards(const lcomm_topo *topo, const lcomm_allreduce_shape *shape) {
  bool tells_sum = shape->tells_sum && shape->exchange == LCOMM_EXCHANGE_GATHER;
  return shape->hierarchical && topo->nodes > 1 && !tells_sum &&
         lcomm_exchange_has_results(shape->exchange);
}

/* A sum of contributions is made while those of the next piece arrive, a result decoded while the
 * next few do; those of a gather are read all at once. */
static bool make_rings(hier *h) {
  enum { RESULTS = 8 };
  uint32_t nodes = (uint32_t)h->topo->nodes, shards = (uint32_t)h->shards;
  uint32_t heard = 2 * (uint32_t)h->node.size;
  uint32_t told = h->shape->exchange == LCOMM_EXCHANGE_GATHER ? 2 * nodes : RESULTS;
  h->told = malloc(shards * sizeof *h->told);
  h->contributions = (ring){malloc((heard + shards * told) * sizeof(uint32_t)), heard, 0};
  h->contributions.depth = heard - 2;
  for (uint32_t i = 0; h->told && h->contributions.slots && i < shards; i++) {
    h->told[i] = (ring){h->contributions.slots + heard + i * told, told, 0};
  }
  return h->told && h->contributions.slots;
}

static lcomm_status build_hierarchical(lcomm_schedule *schedule, const lcomm_topo *topo,
                                       const lcomm_allreduce_shape *shape) {
  hier h = {.schedule = schedule, .topo = topo, .shape = shape};
  h.owners = lcomm_allreduce_owners(topo, shape);
  h.at = topo->node[schedule->rank];
  h.at = shape->by_racks ? topo->racks.place[h.at] % h.owners : h.at;
  h.block = lcomm_allreduce_block(shape, h.owners);
  h.node = lcomm_topo_node_group(topo, topo->node[schedule->rank], schedule->rank);
  h.shards = shape->leaders ? 1 : lcomm_topo_smallest_node(topo);
  h.tells_sum = !lcomm_allreduce_forwards(topo, shape);
  h.rail = malloc((size_t)topo->nodes * sizeof *h.rail);
  h.results = malloc((size_t)topo->nodes * sizeof *h.results);
  h.sources = malloc((size_t)h.node.size * sizeof *h.sources);
  if (!h.rail || !h.results || !h.sources || !make_rings(&h)) {
    schedule->status = LCOMM_ERR_MEMORY;
  }
  for (uint32_t chunk = 0; schedule->status == LCOMM_OK && chunk < shape->chunks; chunk++) {
    build_chunk(&h, chunk);
  }
  free(h.rail);
  free(h.results);
  free(h.sources);
  free(h.contributions.slots);
  free(h.told);
  return schedule->status;
}

static lcomm_status build_flat(lcomm_schedule *schedule, const lcomm_topo *topo,
                               const lcomm_allreduce_shape *shape) {
  int *ranks = malloc((size_t)topo->size * sizeof *ranks);
  uint32_t *results = malloc((size_t)topo->size * sizeof *results);
  if (!ranks || !results) {
    schedule->status = LCOMM_ERR_MEMORY;
  }
  for (int i = 0; ranks && i < topo->size; i++) {
    ranks[i] = i;
  }
  lcomm_exchange exchange = {shape->exchange,
                             {ranks, topo->size, schedule->rank},
                             {0, 0, 1, 0},
                             topo->nodes > 1 ? LCOMM_STAGE_NET : LCOMM_STAGE_NODE,
                             NULL,
                             0};
  lcomm_span whole = lcomm_span_whole(0, schedule->count);
  for (uint32_t chunk = 0; schedule->status == LCOMM_OK && chunk < shape->chunks; chunk++) {
    exchange.span = lcomm_span_piece(whole, shape->chunks, chunk);
    lcomm_exchange_build(schedule, &exchange, results);
  }
  free(ranks);
  free(results);
  return schedule->status;
}

static bool fits_racks(const lcomm_topo *topo, const lcomm_allreduce_shape *shape) {
  return topo->racks.count > 1 && shape->hierarchical && !shape->leaders &&
         shape->exchange != LCOMM_EXCHANGE_SPARSE;
}

lcomm_status lcomm_allreduce_build(lcomm_schedule *schedule, const lcomm_topo *topo,
                                   const lcomm_allreduce_shape *shape) {
  if (shape->chunks < 1 || topo->size != schedule->size ||
      (shape->by_racks && !fits_racks(topo, shape))) {
    return LCOMM_ERR_ARGUMENT;
  }
  if (shape->pieces > 0 && lcomm_allreduce_owners(topo, shape) % (int)shape->pieces != 0) {
    return LCOMM_ERR_ARGUMENT;
  }
  if (topo->size == 1 || schedule->count == 0) {
    return schedule->status;
  }
  if (shape->hierarchical && topo->nodes > 1) {
    return build_hierarchical(schedule, topo, shape);
  }
  return build_flat(schedule, topo, shape);
}
