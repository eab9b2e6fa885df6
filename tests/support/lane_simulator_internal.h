/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_LANE_SIMULATOR_INTERNAL_H
#define LCOMM_TESTS_LANE_SIMULATOR_INTERNAL_H

#include <stdlib.h>

#include "libcomm/sched/dependency.h"
#include "libcomm/sched/lane.h"
#include "tests/support/lane_simulator.h"

#define LANE_NONE UINT32_MAX
#define LANE_ENTRY 0x80000000u /* marks an item as an entry of a lane, not a message */

enum { LANE_STAGE_IN, LANE_STAGE_OUT, LANE_COMPUTATIONS }; /* the first entries of a part */

/* A step or an entry of a part: of one operation on one rank. */
typedef struct lane_item {
  uint32_t part, item;
} lane_item;

typedef struct lane_step {
  uint32_t waits; /* of a message */
  bool has_begun, is_over, is_throttled;
} lane_step;

typedef struct lane_entry {
  uint32_t waits;
  uint32_t *steps, step_count; /* a window into lane_part.computations */
  lcomm_lane lane;
  lane_item previous, next; /* in its lane */
  bool is_over;
} lane_entry;

typedef struct lane_part {
  lane_step *steps;
  uint32_t *entry_of; /* of a step; LANE_NONE of messages */
  uint32_t *computations;
  lane_entry *entries;
  uint32_t entry_count, computations_left;
  uint32_t left; /* steps, and both stages */
  uint32_t *waits_for_in, waits_for_in_count;
  bool *is_in_place; /* of a slot: read where the sender has it */
  uint32_t *readers; /* of a slot: steps that have not read it yet */
  bool *has_gate;    /* of a SEND or RECV */
  bool *has_gates;   /* of a computation: all messages that it waits for have one */
  int far_sends;
  uint32_t throttled;
} lane_part;

typedef struct lane_state {
  sim_world *world;
  const lane_options *options;
  lane_part *parts; /* operation * size + rank */
  uint32_t part_count, parts_left;
  uint32_t **partner;    /* [rank][step]: the step of the peer */
  uint32_t **receive_of; /* [rank][slot]: the step that receives it */
  lane_item *movable;
  size_t movable_count;
  uint64_t random;
} lane_state;

static inline void *lane_zeros(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (!memory) {
    abort();
  }
  return memory;
}

static inline const lcomm_schedule *lane_schedule(const lane_state *s, uint32_t part) {
  return &s->world->schedules[part % (uint32_t)s->world->size];
}

static inline bool lane_is_far(const lane_state *s, uint32_t part, uint32_t step) {
  int rank = (int)(part % (uint32_t)s->world->size);
  const lcomm_topo *topo = &s->world->topo;
  return topo->node[rank] != topo->node[lane_schedule(s, part)->steps[step].peer];
}

static inline bool lane_is_paced(const lane_state *s, uint32_t part, uint32_t step) {
  return s->options->far_sends_max > 0 && lane_is_far(s, part, step) &&
         lane_schedule(s, part)->steps[step].kind == LCOMM_STEP_SEND;
}

static inline lane_item lane_partner(const lane_state *s, uint32_t part, uint32_t step) {
  uint32_t size = (uint32_t)s->world->size, rank = part % size;
  uint32_t peer = (uint32_t)s->world->schedules[rank].steps[step].peer;
  return (lane_item){part - rank + peer, s->partner[rank][step]};
}

/* lane_simulator_prepare.c */
void lanes_prepare(lane_state *s);
void lanes_clean_up(lane_state *s);
/* lane_simulator_gates.c: steps whose readers may wait for a SEND of this rank, where devices read
 * what peers have; its lanes and groups are known. */
void lanes_find_late(const lcomm_schedule *schedule, const lcomm_lane *lanes, const uint32_t *last,
                     bool *late);
/* ... what stays at its sender, and which messages have gates; all parts are made. */
void lanes_find_gates(lane_state *s);
/* lane_simulator_explain.c: follow who waits for whom, from the first step that is not over. */
void lanes_explain(const lane_state *s, char *why, size_t size);

#endif
