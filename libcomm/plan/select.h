/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_SELECT_H
#define LCOMM_PLAN_SELECT_H

#include "libcomm/plan/plan.h"

enum { LCOMM_PAIRS_NODES_MIN = 4 }; /* from here log2 partners are fewer than all peers */

/* Fill stages, shape and reason of a plan whose request fields are set. */
void lcomm_plan_select(lcomm_plan *plan, const lcomm_plan_request *request,
                       const lcomm_policy *policy, const lcomm_topo *topo);

/* Chunks of an all-reduce whose exchange is chosen, of `count` elements among `ranks`. */
uint32_t lcomm_select_chunks(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_stage stage,
                             int ranks, uint64_t count);

/* Chunks of a broadcast: see lcomm_broadcast_build(). */
uint32_t lcomm_select_broadcast_chunks(const lcomm_plan *plan, const lcomm_topo *topo);

/* Pieces in which contributions of a selected shape go inside nodes: see lcomm_allreduce_shape. */
uint32_t lcomm_select_pieces(const lcomm_plan *plan, const lcomm_topo *topo);

/* Bound the payload of every slot of the linked schedule. MEMORY. */
lcomm_status lcomm_plan_bound_slots(lcomm_plan *plan);

/* Find the memory of all slots from their bounds, once they are linked. */
void lcomm_plan_place_slots(lcomm_plan *plan);

/* The hash of a plan: over everything that must be equal on all ranks. */
uint64_t lcomm_plan_hash(const lcomm_plan *plan, const lcomm_policy *policy,
                         const lcomm_topo *topo);

#endif
