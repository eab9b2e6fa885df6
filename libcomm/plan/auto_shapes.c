/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/auto_shapes.h"

#include <stdio.h>

#include "libcomm/plan/select.h"

enum {
  PIECE_BYTES_MIN = 64 << 10, /* of a chunk: shorter messages cost more than they overlap */
  CHUNKS_MOST = 64,
  CHUNKS_TIMES_RANKS_MOST = 256 /* that are tried: planning must stay short */
};

static bool is_same(const lcomm_allreduce_shape *a, const lcomm_allreduce_shape *b) {
  return a->exchange == b->exchange && a->hierarchical == b->hierarchical &&
         a->leaders == b->leaders && a->chunks == b->chunks;
}

static void add(lcomm_auto_shapes *shapes, const lcomm_allreduce_shape *shape,
                const lcomm_allreduce_shape *but) {
  if (shapes->count < LCOMM_AUTO_SHAPES_MAX && !is_same(shape, but)) {
    shapes->list[shapes->count++] = *shape;
  }
}

/* -------------------------------------------------------------- exchanges */

/* As many ranks on every node: a ring of rails. */
static bool is_even(const lcomm_topo *topo) {
  return lcomm_topo_smallest_node(topo) * topo->nodes == topo->size;
}

/* Partial sums travel with all but the first two, and only exact ones may: select.c. */
static bool may_use(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_exchange_kind kind) {
  const lcomm_format *format = &plan->stages[LCOMM_STAGE_NET].format;
  bool sparse = lcomm_format_is_sparse(format);
  switch (kind) {
  case LCOMM_EXCHANGE_GATHER:
    return true;
  case LCOMM_EXCHANGE_DIRECT:
    return !sparse;
  case LCOMM_EXCHANGE_SPARSE: /* two sides swap slots */
    return sparse && topo->nodes > 2;
  case LCOMM_EXCHANGE_RING:
    return plan->plain && topo->nodes > 2 && is_even(topo);
  default:
    return plan->plain && topo->nodes >= LCOMM_PAIRS_NODES_MIN;
  }
}

/* All kinds in one form. Leaders tell their node the sum, as select.c has it. */
static void add_kinds(lcomm_auto_shapes *shapes, const lcomm_plan *plan, const lcomm_topo *topo,
                      lcomm_allreduce_shape shape) {
  static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_GATHER,   LCOMM_EXCHANGE_DIRECT,
                                              LCOMM_EXCHANGE_SPARSE,   LCOMM_EXCHANGE_RING,
                                              LCOMM_EXCHANGE_DOUBLING, LCOMM_EXCHANGE_HALVING};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    shape.exchange = kinds[i];
    shape.tells_sum = shape.leaders && kinds[i] != LCOMM_EXCHANGE_DIRECT;
    if (may_use(plan, topo, kinds[i])) {
      add(shapes, &shape, &plan->shape);
    }
  }
}

lcomm_auto_shapes lcomm_auto_exchanges(const lcomm_plan *plan, const lcomm_topo *topo) {
  lcomm_auto_shapes shapes = {.count = 0};
  uint32_t chunks = plan->shape.chunks;
  bool nested = topo->nodes > 1 && topo->nodes < topo->size;
  if (!nested || plan->plain) { /* a codec acts between nodes, on what each has summed */
    add_kinds(&shapes, plan, topo, (lcomm_allreduce_shape){.chunks = chunks});
  }
  if (nested) {
    add_kinds(&shapes, plan, topo, (lcomm_allreduce_shape){.hierarchical = true, .chunks = chunks});
  }
  if (nested && plan->plain) {
    add_kinds(&shapes, plan, topo,
              (lcomm_allreduce_shape){.hierarchical = true, .leaders = true, .chunks = chunks});
  }
  return shapes;
}

/* ----------------------------------------------------------------- chunks */

lcomm_auto_shapes lcomm_auto_chunkings(const lcomm_plan *plan, const lcomm_topo *topo,
                                       const lcomm_allreduce_shape *shape) {
  lcomm_auto_shapes shapes = {.count = 0};
  uint64_t ranks = (uint64_t)(shape->hierarchical ? topo->nodes : topo->size);
  uint64_t most = plan->vector_count * plan->element_size / PIECE_BYTES_MIN;
  bool sparse = lcomm_format_is_sparse(&plan->stages[LCOMM_STAGE_NET].format);
  most = most > CHUNKS_MOST ? CHUNKS_MOST : most;
  most = most > CHUNKS_TIMES_RANKS_MOST / ranks ? CHUNKS_TIMES_RANKS_MOST / ranks : most;
  for (uint32_t chunks = 1; !sparse && chunks <= most; chunks *= 2) {
    lcomm_allreduce_shape other = *shape;
    other.chunks = chunks;
    add(&shapes, &other, shape);
  }
  return shapes;
}

/* ------------------------------------------------------------------ words */

const char *lcomm_auto_shape_format(const lcomm_allreduce_shape *shape,
                                    char text[LCOMM_AUTO_SHAPE_TEXT_MAX]) {
  snprintf(text, LCOMM_AUTO_SHAPE_TEXT_MAX, "%s%s%s in %u chunk%s",
           shape->leaders        ? "leaders("
           : shape->hierarchical ? "hier("
                                 : "",
           lcomm_exchange_name(shape->exchange), shape->hierarchical ? ")" : "", shape->chunks,
           shape->chunks == 1 ? "" : "s");
  return text;
}
