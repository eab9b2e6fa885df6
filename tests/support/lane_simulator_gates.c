/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the lane simulator knows of gates: which payloads stay at their senders, and which messages
 * and computations have gates, by the rules of libcomm/engine/gates.c. */

#include <stdlib.h>

#include "libcomm/engine/tape_internal.h"
#include "tests/support/lane_simulator_internal.h"

void lanes_find_late(const lcomm_schedule *schedule, const lcomm_lane *lanes, const uint32_t *last,
                     bool *late) {
  lcomm_tape_step *steps = lane_zeros(schedule->step_count, sizeof *steps);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    steps[i].lane = lanes[i];
    steps[i].last = last[i];
    late[i] = false;
  }
  lcomm_tape_find_late(schedule, steps, late);
  free(steps);
}

/* A slot goes one way to all that get it. */
static bool *find_stays(const lane_state *s, uint32_t part) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  bool *stays = lane_zeros(schedule->slot_count, sizeof *stays);
  for (uint32_t slot = 0; slot < schedule->slot_count; slot++) {
    stays[slot] = true;
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    if (schedule->steps[i].kind == LCOMM_STEP_SEND) {
      lane_item there = lane_partner(s, part, i);
      uint32_t slot = lane_schedule(s, there.part)->steps[there.item].slot;
      stays[schedule->steps[i].slot] &= s->parts[there.part].is_in_place[slot];
    }
  }
  return stays;
}

/* A SEND that waits for more than its ENCODE leaves later than the lane comes past it. */
static void find_sent(lane_state *s, uint32_t part) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  bool *stays = find_stays(s, part);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind != LCOMM_STEP_SEND) {
      continue;
    }
    lane_item there = lane_partner(s, part, i);
    lane_part *peer = &s->parts[there.part];
    peer->is_in_place[lane_schedule(s, there.part)->steps[there.item].slot] &= stays[step->slot];
    s->parts[part].has_gate[i] = stays[step->slot] && step->waits_for == 1;
    peer->has_gate[there.item] = s->parts[part].has_gate[i];
  }
  free(stays);
}

static void find_waiting(lane_state *s, uint32_t part) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  lane_part *p = &s->parts[part];
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    p->has_gates[i] = !lcomm_step_is_message(&schedule->steps[i]);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    bool has_gate = step->kind == LCOMM_STEP_RECV && p->has_gate[i];
    for (uint32_t k = 0; k < step->next_count && lcomm_step_is_message(step); k++) {
      p->has_gates[schedule->next[step->next_first + k]] &= has_gate;
    }
  }
}

void lanes_find_gates(lane_state *s) {
  for (uint32_t part = 0; part < s->part_count; part++) {
    find_sent(s, part);
  }
  for (uint32_t part = 0; part < s->part_count; part++) {
    find_waiting(s, part);
  }
}
