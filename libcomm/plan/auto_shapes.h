/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_AUTO_SHAPES_H
#define LCOMM_PLAN_AUTO_SHAPES_H

/* The shapes in which an all-reduce with given codecs may be made: which exchange, over all ranks,
 * by one shard for each rank of a node or by a leader for each node, and in how many chunks. What
 * the rules never choose for correctness' sake is not among them. */

#include "libcomm/plan/plan.h"

enum { LCOMM_AUTO_SHAPES_MAX = 24 };

typedef struct lcomm_auto_shapes {
  lcomm_allreduce_shape list[LCOMM_AUTO_SHAPES_MAX];
  int count;
} lcomm_auto_shapes;

/* The other exchanges than that of `plan`, with as many chunks. */
lcomm_auto_shapes lcomm_auto_exchanges(const lcomm_plan *plan, const lcomm_topo *topo);

/* Other numbers of chunks for `shape`. */
lcomm_auto_shapes lcomm_auto_chunkings(const lcomm_plan *plan, const lcomm_topo *topo,
                                       const lcomm_allreduce_shape *shape);

/* "hier(gather) in 4 chunks". Returns text. */
enum { LCOMM_AUTO_SHAPE_TEXT_MAX = 64 };
const char *lcomm_auto_shape_format(const lcomm_allreduce_shape *shape,
                                    char text[LCOMM_AUTO_SHAPE_TEXT_MAX]);

#endif
