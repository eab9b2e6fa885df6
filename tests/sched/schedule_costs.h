/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SCHED_SCHEDULE_COSTS_H
#define LCOMM_TESTS_SCHED_SCHEDULE_COSTS_H

/* What a collective costs, counted in the schedules of all its ranks, for comparison with
 * the formulas of libcomm/sched/ALGORITHMS.md. Each figure is that of the rank (or node)
 * that has most of it. */

#include "kernels/stripe.h"
#include "tests/sched/worlds.h"

typedef struct schedule_costs {
  uint64_t rounds;                 /* messages in the longest chain, one behind the other */
  uint64_t messages, far_messages; /* sent by a rank: all, and those to other nodes */
  uint64_t sent, received;         /* elements that payloads stand for, by a rank */
  uint64_t node_sent;              /* by a node to other nodes */
  uint64_t node_in_rack;           /* of these, to nodes of its rack */
  uint64_t rack_messages;          /* sent by a rank to other racks */
  uint64_t rack_sent;              /* by a rack to other racks */
  uint64_t quantisations;          /* ENCODE steps of lossy stages that a value goes through */
  uint64_t slots;                  /* elements of slots that have memory of their own */
} schedule_costs;

/* One rank while the steps are walked through in the order of the linker. */
typedef struct walk {
  const lcomm_schedule *schedule;
  uint32_t *waits; /* for so many steps, by step */
  bool *done;
  uint64_t *chain;       /* messages behind each other that end in this step */
  uint64_t *vector_loss; /* quantisations so far, by element */
  uint64_t *slot_loss;   /* by slot */
} walk;

static inline uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static inline void *walk_memory(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  assert_non_null(memory);
  return memory;
}

static inline void walk_begin(walk *w, const lcomm_schedule *schedule) {
  w->schedule = schedule;
  w->waits = walk_memory(schedule->step_count, sizeof *w->waits);
  w->done = walk_memory(schedule->step_count, sizeof *w->done);
  w->chain = walk_memory(schedule->step_count, sizeof *w->chain);
  w->vector_loss = walk_memory(schedule->count, sizeof *w->vector_loss);
  w->slot_loss = walk_memory(schedule->slot_count, sizeof *w->slot_loss);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    w->waits[i] = schedule->steps[i].waits_for;
  }
}

static inline void walk_end(walk *w) {
  free(w->waits);
  free(w->done);
  free(w->chain);
  free(w->vector_loss);
  free(w->slot_loss);
}

/* The element of the vector that is element `local` of a span. */
static inline uint64_t walk_index(lcomm_span span, uint64_t local) {
  return span.first + lcomm_stripe_global(local, span.parts, span.part);
}

static inline uint64_t span_loss(const walk *w, lcomm_span span) {
  uint64_t loss = 0;
  for (uint64_t i = 0; i < lcomm_span_count(span); i++) {
    loss = larger(loss, w->vector_loss[walk_index(span, i)]);
  }
  return loss;
}

static inline void set_span_loss(walk *w, lcomm_span span, uint64_t loss) {
  for (uint64_t i = 0; i < lcomm_span_count(span); i++) {
    w->vector_loss[walk_index(span, i)] = loss;
  }
}

static inline uint64_t sum_loss(const walk *w, const lcomm_step *step) {
  uint64_t loss = 0;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    uint32_t source = w->schedule->sources[step->sources + i];
    loss =
        larger(loss, source == LCOMM_SOURCE_SELF ? span_loss(w, step->span) : w->slot_loss[source]);
  }
  return loss;
}

/* The SEND that a RECV of `rank` waits for. */
static inline uint32_t partner_of(const walk *sender, const lcomm_step *receive, int rank) {
  uint32_t i = 0;
  const lcomm_step *steps = sender->schedule->steps;
  while (steps[i].kind != LCOMM_STEP_SEND || steps[i].peer != rank ||
         steps[i].message != receive->message) {
    i++;
  }
  return i;
}

static inline void walk_compute(walk *w, const lcomm_step *step,
                                const bool lossy[LCOMM_STAGE_COUNT]) {
  if (step->kind == LCOMM_STEP_ENCODE) {
    uint64_t loss = span_loss(w, step->span);
    for (uint32_t i = step->slot; i < step->slot + step->slot_count; i++) {
      w->slot_loss[i] = loss + lossy[w->schedule->slots[i].stage];
    }
  } else if (step->kind == LCOMM_STEP_DECODE) {
    set_span_loss(w, step->span, w->slot_loss[step->slot]);
  } else if (step->kind == LCOMM_STEP_REDUCE) {
    set_span_loss(w, step->span, sum_loss(w, step));
  }
}

/* Take step `index` of rank `rank`, if all that it waits for is done. */
static inline bool walk_step(walk *all, int rank, uint32_t index,
                             const bool lossy[LCOMM_STAGE_COUNT]) {
  walk *w = &all[rank];
  const lcomm_step *step = &w->schedule->steps[index];
  if (w->done[index] || w->waits[index] > 0) {
    return false;
  }
  if (step->kind == LCOMM_STEP_RECV) {
    const walk *sender = &all[step->peer];
    uint32_t send = partner_of(sender, step, rank);
    if (!sender->done[send]) {
      return false;
    }
    w->chain[index] = larger(w->chain[index], sender->chain[send] + 1);
    w->slot_loss[step->slot] = sender->slot_loss[sender->schedule->steps[send].slot];
  }
  walk_compute(w, step, lossy);
  w->done[index] = true;
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t next = w->schedule->next[step->next_first + i];
    w->waits[next]--;
    w->chain[next] = larger(w->chain[next], w->chain[index]);
  }
  return true;
}

static inline void walk_all(walk *all, int size, const bool lossy[LCOMM_STAGE_COUNT]) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < size; rank++) {
      for (uint32_t i = 0; i < all[rank].schedule->step_count; i++) {
        moved |= walk_step(all, rank, i, lossy);
      }
    }
  }
}

/* Rounds and quantisations, which depend on the order of steps on all ranks. */
static inline void add_chains(const sim_world *world, const bool lossy[LCOMM_STAGE_COUNT],
                              schedule_costs *costs) {
  walk *all = walk_memory((size_t)world->size, sizeof *all);
  for (int rank = 0; rank < world->size; rank++) {
    walk_begin(&all[rank], &world->schedules[rank]);
  }
  walk_all(all, world->size, lossy);
  for (int rank = 0; rank < world->size; rank++) {
    const lcomm_schedule *schedule = all[rank].schedule;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
      assert_true(all[rank].done[i]);
      costs->rounds = larger(costs->rounds, all[rank].chain[i]);
    }
    uint64_t loss = span_loss(&all[rank], lcomm_span_whole(0, schedule->count));
    costs->quantisations = larger(costs->quantisations, loss);
    walk_end(&all[rank]);
  }
  free(all);
}

/* Messages and memory, rank by rank. Returns what this rank sends: its part of the figures of node
 * and rack. */
static inline schedule_costs add_rank(const sim_world *world, int rank, schedule_costs *costs) {
  const lcomm_schedule *schedule = &world->schedules[rank];
  schedule_costs own = {0};
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind != LCOMM_STEP_SEND && step->kind != LCOMM_STEP_RECV) {
      continue;
    }
    uint64_t count = schedule->slots[step->slot].count;
    bool sends = step->kind == LCOMM_STEP_SEND;
    bool leaves = sends && world->topo.node[step->peer] != world->topo.node[rank];
    own.messages += sends;
    own.far_messages += leaves;
    own.sent += sends ? count : 0;
    own.received += sends ? 0 : count;
    bool in_rack = leaves && lcomm_topo_shares_rack(&world->topo, rank, step->peer);
    own.rack_messages += leaves && !in_rack;
    own.node_sent += leaves ? count : 0;
    own.node_in_rack += in_rack ? count : 0;
    own.rack_sent += leaves && !in_rack ? count : 0;
  }
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    own.slots += schedule->slots[i].alias.count == 0 ? schedule->slots[i].count : 0;
  }
  costs->messages = larger(costs->messages, own.messages);
  costs->far_messages = larger(costs->far_messages, own.far_messages);
  costs->sent = larger(costs->sent, own.sent);
  costs->received = larger(costs->received, own.received);
  costs->slots = larger(costs->slots, own.slots);
  costs->rack_messages = larger(costs->rack_messages, own.rack_messages);
  return own;
}

/* lossy: stages whose payloads are coded; the slots of all others are windows into the
 * vector, where the linker allows it. */
static inline schedule_costs costs_of(const world_shape *shape, const collective *what,
                                      const bool lossy[LCOMM_STAGE_COUNT]) {
  sim_world world;
  schedule_costs costs = {0};
  bool copies[LCOMM_STAGE_COUNT];
  make_world(&world, shape);
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    copies[i] = !lossy[i];
  }
  for (int rank = 0; rank < world.size; rank++) {
    lcomm_schedule *schedule = &world.schedules[rank];
    uint64_t count = vector_count(what, world.size);
    assert_int_equal(lcomm_schedule_init(schedule, rank, world.size, count), LCOMM_OK);
    assert_int_equal(build_schedule(schedule, &world.topo, what), LCOMM_OK);
    assert_int_equal(lcomm_schedule_link(schedule, copies), LCOMM_OK);
  }
  uint64_t node_sent[64] = {0}, in_rack[64] = {0}, rack_sent[64] = {0};
  for (int rank = 0; rank < world.size; rank++) {
    int node = world.topo.node[rank], rack = shape->racks[node];
    schedule_costs own = add_rank(&world, rank, &costs);
    costs.node_sent = larger(costs.node_sent, node_sent[node] += own.node_sent);
    costs.node_in_rack = larger(costs.node_in_rack, in_rack[node] += own.node_in_rack);
    costs.rack_sent = larger(costs.rack_sent, rack_sent[rack] += own.rack_sent);
  }
  add_chains(&world, lossy, &costs);
  sim_world_free(&world);
  return costs;
}

#endif
