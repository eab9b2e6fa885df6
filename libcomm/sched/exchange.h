/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SCHED_EXCHANGE_H
#define LCOMM_SCHED_EXCHANGE_H

/* Exchanges: all-reduce of one contiguous span over one group. Flat and hierarchical collectives
 * are built of them.
 *
 *   direct  two-phase: everyone sends piece p to its owner p, the owner sums
 *           in group order with its own piece unquantised, encodes once and
 *           sends the result to all. Two quantisations on any value's path.
 *   gather  everyone sends everything to all, each sums alike. One
 *           quantisation and one round; bytes grow with the group.
 *   ring    reduce-scatter and all-gather around a ring. Exact stages only:
 *           a lossy one would quantise at every hop.
 *   sparse  two-phase over block-cyclic stripes: one selection makes a slot
 *           for every owner; the owner sums and selects again.
 *   doubling  log2 of the group's size rounds, in each of which pairs exchange
 *           all they have. Fewest messages; for short spans. Exact stages
 *           only. The sum is in the span, in no slot.
 *   halving   the same pairs, each of which sums one half of what they have in
 *           common, then all sums back: the bytes of direct, fewer messages.
 *           For groups of a power of two; others pay two more whole spans.
 */

#include "libcomm/sched/sched.h"
#include "libcomm/topo/topo.h"

typedef enum lcomm_exchange_kind {
  LCOMM_EXCHANGE_DIRECT,
  LCOMM_EXCHANGE_GATHER,
  LCOMM_EXCHANGE_RING,
  LCOMM_EXCHANGE_SPARSE,
  LCOMM_EXCHANGE_DOUBLING,
  LCOMM_EXCHANGE_HALVING
} lcomm_exchange_kind;

const char *lcomm_exchange_name(lcomm_exchange_kind kind);

/* Are parts of the result in slots that can be forwarded? If not, only the span has it. */
bool lcomm_exchange_has_results(lcomm_exchange_kind kind);

typedef struct lcomm_exchange {
  lcomm_exchange_kind kind;
  lcomm_group group;
  lcomm_span span;   /* contiguous */
  lcomm_stage stage; /* of the contributions */
  /* NULL, or the group has a member on each node, in the order of nodes, and goes by these racks:
   * contributions inside each, an exchange of this kind between them, results inside again. Any
   * kind but sparse. */
  const lcomm_racks *racks;
  int block; /* peers are visited in blocks of so many neighbours, a divisor of the group's size; 0:
              * one by one */
} lcomm_exchange;

/* Peers in rotated order, by turn: 1 .. group.size - 1; 0 is the member itself. In every turn the
 * members that are sent to are a permutation, and each receives from the one that sends to it.
 * Blocks rotate, and members in their block: the own block comes last. */
int lcomm_exchange_sent_to(const lcomm_exchange *exchange, int member, int turn);
int lcomm_exchange_received_from(const lcomm_exchange *exchange, int member, int turn);

/* Add my part of the exchange. results[i] (group.size entries) receives the slot that holds part i
 * of the result, LCOMM_NO_SLOT where that part is empty; with these a member can forward the result
 * to a rank outside the group. */
void lcomm_exchange_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                          uint32_t *results);

/* Forward the result to `outside`, a rank outside the group, in the order in which its parts
 * arrive; learn is that rank's side. Both need the same exchange; that rank's has
 * group.me == -1. `member`, a rank, is the one that forwards. */
void lcomm_exchange_forward(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                            const uint32_t *results, int outside);
/* results[i] (group.size entries) receives the slots, as of lcomm_exchange_build. */
void lcomm_exchange_learn(lcomm_schedule *schedule, const lcomm_exchange *exchange, int member,
                          uint32_t *results);

/* The same from any rank `peer` that has learnt the result itself, in the order of number `place`
 * of the group. */
void lcomm_exchange_learn_from(lcomm_schedule *schedule, const lcomm_exchange *exchange, int place,
                               int peer, uint32_t *results);

/* Bring the contributions to `span` of a group inside a node to its member
 * `owner` (an index). The owner gets true, and in `sources` (group.size
 * entries) what to sum, in group order; the others get false. */
bool lcomm_collect_build(lcomm_schedule *schedule, lcomm_group group, lcomm_span span, int owner,
                         uint32_t *sources);

/* The second phase of direct and sparse at an owner: sum in group order, encode once, share. */
typedef struct lcomm_ownership {
  lcomm_span span; /* what it owns of the exchange */
  uint32_t own;    /* its own contribution: a slot, or LCOMM_SOURCE_SELF */
  uint32_t commit; /* of the result's DECODE: a slot, or LCOMM_NO_SLOT */
  lcomm_feedback feedback;
} lcomm_ownership;

/* *result receives the slot of the result. */
void lcomm_exchange_own(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        const lcomm_ownership *it, uint32_t *result);

/* Parts of a span that goes by racks: each belongs to the node of one number in all of them. */
static inline uint32_t lcomm_racks_pieces(const lcomm_racks *racks) {
  return (uint32_t)lcomm_racks_smallest(racks);
}

/* The three of an exchange by racks; called by those above. */
void lcomm_rack_exchange_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                               uint32_t *results);
void lcomm_rack_exchange_forward(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                                 const uint32_t *results, int outside);
void lcomm_rack_exchange_learn(lcomm_schedule *schedule, const lcomm_exchange *exchange, int place,
                               int peer, uint32_t *results);

/* One per kind, each in its own file; called by lcomm_exchange_build. */
void lcomm_direct_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        uint32_t *results);
void lcomm_gather_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        uint32_t *results);
void lcomm_ring_build(lcomm_schedule *schedule, const lcomm_exchange *exchange, uint32_t *results);
void lcomm_sparse_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                        uint32_t *results);
void lcomm_doubling_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                          uint32_t *results);
void lcomm_halving_build(lcomm_schedule *schedule, const lcomm_exchange *exchange,
                         uint32_t *results);

#endif
