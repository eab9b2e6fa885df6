/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_SELECT_H
#define LCOMM_PLAN_SELECT_H

#include "libcomm/plan/cost.h"

enum { LCOMM_PAIRS_NODES_MIN = 4 }; /* from here log2 partners are fewer than all peers */

/* Fill stages, shape and reason of a plan whose request fields are set. */
void lcomm_plan_select(lcomm_plan *plan, const lcomm_plan_request *request,
                       const lcomm_policy *policy, const lcomm_topo *topo);

/* What the rules of select.c and select_short.c share. */

/* Do partial sums travel as they are? Not so for 16-bit elements: their exact codec holds every
 * contribution, but rounds a partial sum. */
bool lcomm_select_keeps_sums(const lcomm_plan *plan, lcomm_stage stage);

/* Add to the plan's reason. */
void lcomm_select_say(lcomm_plan *plan, const char *more);

/* Does a rank that receives all vectors of `ranks` receive little? */
bool lcomm_select_is_small(const lcomm_plan *plan, int ranks);

/* May nodes exchange sums from pair to pair; and the cheapest exchange of `size` bytes among
 * `ranks`, with its reason. */
bool lcomm_select_suits_pairs(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_stage stage);
lcomm_exchange_kind lcomm_select_cheapest(lcomm_plan *plan, const lcomm_topo *topo, int ranks,
                                          uint64_t size);

/* Short all-reduces whose payloads are 16-bit elements between several nodes: let them travel as
 * float32, of which the vector is made. Then partial sums are rounded nowhere, and the rules of
 * float32 hold; every rank rounds the finished sum, once. */
void lcomm_select_widen_short(lcomm_plan *plan, const lcomm_topo *topo);

/* The same for a shape that is given, where partial sums travel in it. */
void lcomm_select_widen_for(lcomm_plan *plan, const lcomm_allreduce_shape *shape);

/* May one rank of each node speak for it; let it; the shape of a barrier. */
bool lcomm_select_suits_leaders(const lcomm_plan *plan, const lcomm_topo *topo);
void lcomm_select_leaders(lcomm_plan *plan, const lcomm_topo *topo);
void lcomm_select_barrier(lcomm_plan *plan, const lcomm_topo *topo);

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
