/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How many chunks: enough that encoding, wire and decoding overlap, and few enough that messages
 * are long. */

#include "libcomm/plan/select.h"

enum {
  CHUNK_BYTES = 1 << 20,        /* the last chunk's way through all phases is not overlapped */
  DEVICE_CHUNK_BYTES = 4 << 20, /* ... and on a device each costs its caller some twenty calls;
                                 * inside a node that is a rank's piece of it */
  PIECE_BYTES = 64 << 10, /* of a chunk in one message between nodes, where there are as many */
  NODE_PIECE_BYTES =
      512 << 10, /* of a longer chunk inside a node, at most; so long its slots are */
  NODE_PIECE_BYTES_MIN = 64 << 10,
  CHUNKS_MAX = 64,
  CHUNKS_TIMES_RANKS_MAX = 4096, /* every chunk has messages to every rank of the exchange */
  CHAIN_CHUNK_BYTES = 256 << 10, /* of a broadcast: on its way longer than the latency of a hop */
  TREE_CHUNK_BYTES = 1 << 20, /* ... inside a node, where a chunk costs ranks a turn to wait for */
  BROADCAST_CHUNKS_MAX = 1024
};

static bool sends_whole(const lcomm_plan *plan) {
  return plan->shape.exchange == LCOMM_EXCHANGE_GATHER ||
         plan->shape.exchange == LCOMM_EXCHANGE_DOUBLING;
}

/* As many chunks as leave each message between nodes its bytes, as it travels: a message costs the
 * same whatever it holds, and there are as many as chunks times peers. */
static uint64_t chunks_of_long_pieces(const lcomm_plan *plan, lcomm_stage stage, int ranks,
                                      uint64_t count) {
  const lcomm_format *format = &plan->stages[stage].format;
  uint64_t size = plan->plain ? count * plan->element_size : lcomm_payload_size(format, count);
  return size / ((uint64_t)PIECE_BYTES * (sends_whole(plan) ? 1 : (uint64_t)ranks));
}

static uint64_t chunk_size(const lcomm_plan *plan, const lcomm_topo *topo, int ranks) {
  if (!topo->all_have_devices) {
    return CHUNK_BYTES;
  }
  bool pieces = topo->nodes == 1 && !sends_whole(plan);
  return (uint64_t)DEVICE_CHUNK_BYTES * (pieces ? (uint64_t)ranks : 1);
}

uint32_t lcomm_select_chunks(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_stage stage,
                             int ranks, uint64_t count) {
  if (lcomm_format_is_sparse(&plan->stages[stage].format)) {
    return 1; /* one exact selection over the whole shard */
  }
  uint64_t size = chunk_size(plan, topo, ranks);
  uint64_t chunks = (count * plan->element_size + size - 1) / size;
  uint64_t most = CHUNKS_TIMES_RANKS_MAX / (uint64_t)ranks;
  uint64_t long_pieces =
      topo->nodes > 1 ? chunks_of_long_pieces(plan, stage, ranks, count) : CHUNKS_MAX;
  chunks = chunks > CHUNKS_MAX ? CHUNKS_MAX : chunks;
  chunks = chunks > most ? most : chunks;
  chunks = chunks > long_pieces ? long_pieces : chunks;
  return chunks > 1 ? (uint32_t)chunks : 1;
}

static int log2_up(int value) {
  int log = 0;
  while (1 << log < value) {
    log++;
  }
  return log;
}

/* Inside a node: ranks far down the tree begin while those above hear the rest. */
static uint64_t chunks_inside_node(const lcomm_plan *plan, const lcomm_topo *topo) {
  uint64_t size = topo->all_have_devices ? DEVICE_CHUNK_BYTES : TREE_CHUNK_BYTES;
  return topo->size > 2 ? plan->vector_count * plan->element_size / size : 1;
}

/* In chunks the vector goes along a chain, whose last node begins as many chunks late as there are
 * nodes between; in one piece down a tree, whose root sends it lg(nodes) times. Two nodes have
 * nothing to win unless one of them has ranks that are told while the rest arrives. */
static uint64_t chunks_between_nodes(const lcomm_plan *plan, const lcomm_topo *topo) {
  uint64_t size = topo->all_have_devices ? DEVICE_CHUNK_BYTES : CHAIN_CHUNK_BYTES;
  uint64_t chunks = plan->vector_count * plan->element_size / size;
  int between = topo->nodes - 2, saved = log2_up(topo->nodes) - 1;
  bool saves = topo->size > 2 && chunks * (uint64_t)saved >= 2 * (uint64_t)between;
  return saves ? chunks : 1;
}

uint32_t lcomm_select_broadcast_chunks(const lcomm_plan *plan, const lcomm_topo *topo) {
  uint64_t chunks =
      topo->nodes == 1 ? chunks_inside_node(plan, topo) : chunks_between_nodes(plan, topo);
  if (chunks < 2) {
    return 1;
  }
  return chunks < BROADCAST_CHUNKS_MAX ? (uint32_t)chunks : BROADCAST_CHUNKS_MAX;
}

/* Devices sum whole chunks, as each piece would cost calls. Payloads of plain plans are read where
 * they lie. Short chunks go whole, each in memory of its own: so ranks that run in turns on few
 * processors wait for each other less often. */
uint32_t lcomm_select_pieces(const lcomm_plan *plan, const lcomm_topo *topo) {
  const lcomm_allreduce_shape *shape = &plan->shape;
  if (!shape->hierarchical || shape->leaders || plan->plain || topo->all_have_devices) {
    return 0;
  }
  uint64_t shard = plan->vector_count / (uint64_t)lcomm_topo_smallest_node(topo);
  uint64_t chunk = shard / shape->chunks * plan->element_size;
  uint32_t pieces = 1, owners = (uint32_t)lcomm_allreduce_owners(topo, shape);
  while (chunk > CHUNK_BYTES && pieces < owners &&
         (owners % pieces != 0 || chunk / pieces > NODE_PIECE_BYTES)) {
    pieces++;
  }
  return pieces > 1 && chunk / pieces >= NODE_PIECE_BYTES_MIN ? pieces : 0;
}
