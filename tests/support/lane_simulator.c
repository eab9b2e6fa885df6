/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/lane_simulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/lane_simulator_internal.h"

/* ------------------------------------------------------------------- moving */

static void can_move(lane_state *s, uint32_t part, uint32_t item) {
  s->movable[s->movable_count++] = (lane_item){part, item};
}

static void entry_waits_less(lane_state *s, uint32_t part, uint32_t entry) {
  if (--s->parts[part].entries[entry].waits == 0) {
    can_move(s, part, entry | LANE_ENTRY);
  }
}

static void step_waits_less(lane_state *s, uint32_t part, uint32_t step) {
  lane_part *p = &s->parts[part];
  if (p->entry_of[step] != LANE_NONE) {
    entry_waits_less(s, part, p->entry_of[step]);
  } else if (--p->steps[step].waits == 0) {
    can_move(s, part, step);
  }
}

static void part_over(lane_state *s, uint32_t part) {
  uint32_t later = part + (uint32_t)(s->options->tracks * s->world->size);
  if (--s->parts[part].left > 0) {
    return;
  }
  s->parts_left--;
  if (later >= s->part_count) {
    return;
  }
  entry_waits_less(s, later, LANE_STAGE_IN);
  for (uint32_t i = 0; i < lane_schedule(s, later)->step_count; i++) {
    if (lane_schedule(s, later)->steps[i].kind == LCOMM_STEP_RECV) {
      step_waits_less(s, later, i);
    }
  }
}

static void step_over(lane_state *s, uint32_t part, uint32_t step);

static void paced_send_over(lane_state *s, uint32_t part, uint32_t step) {
  lane_part *p = &s->parts[part];
  if (!lane_is_paced(s, part, step)) {
    return;
  }
  p->far_sends--;
  for (uint32_t i = 0; p->throttled > 0 && i < lane_schedule(s, part)->step_count; i++) {
    if (p->steps[i].is_throttled) {
      p->steps[i].is_throttled = false;
      p->throttled--;
      can_move(s, part, i);
      return;
    }
  }
}

/* A reader of a payload that lies at its sender is over. */
static void reader_over(lane_state *s, uint32_t part, uint32_t step) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  for (uint32_t i = 0; i < lcomm_step_read_count(&schedule->steps[step]); i++) {
    uint32_t slot = lcomm_step_read(schedule, &schedule->steps[step], i);
    if (slot >= schedule->slot_count || !s->parts[part].is_in_place[slot]) {
      continue;
    }
    uint32_t receive = s->receive_of[part % (uint32_t)s->world->size][slot];
    if (--s->parts[part].readers[slot] == 0 && s->parts[part].steps[receive].is_over) {
      lane_item sender = lane_partner(s, part, receive);
      step_over(s, sender.part, sender.item);
    }
  }
}

/* A computation has made what a SEND with a gate is for. */
static void open_gate(lane_state *s, uint32_t part, uint32_t send) {
  lane_item receive = lane_partner(s, part, send);
  const lcomm_schedule *schedule = lane_schedule(s, receive.part);
  const lcomm_step *it = &schedule->steps[receive.item];
  for (uint32_t i = 0; i < it->next_count; i++) {
    uint32_t later = schedule->next[it->next_first + i];
    if (s->parts[receive.part].has_gates[later]) {
      step_waits_less(s, receive.part, later);
    }
  }
}

static void step_over(lane_state *s, uint32_t part, uint32_t step) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  const lcomm_step *it = &schedule->steps[step];
  lane_part *p = &s->parts[part];
  p->steps[step].is_over = true;
  if (it->kind == LCOMM_STEP_SEND) {
    paced_send_over(s, part, step);
  }
  for (uint32_t i = 0; i < it->next_count; i++) {
    uint32_t later = schedule->next[it->next_first + i];
    bool together = p->entry_of[later] != LANE_NONE && p->entry_of[later] == p->entry_of[step];
    bool is_past = it->kind == LCOMM_STEP_RECV && p->has_gates[later]; /* a lane came to its gate */
    if (!together && !is_past) {
      step_waits_less(s, part, later);
    }
    if (schedule->steps[later].kind == LCOMM_STEP_SEND && p->has_gate[later]) {
      open_gate(s, part, later);
    }
  }
  reader_over(s, part, step);
  if (p->entry_of[step] != LANE_NONE && --p->computations_left == 0) {
    entry_waits_less(s, part, LANE_STAGE_OUT);
  }
  part_over(s, part);
}

/* Both ends have begun, or the message needs only one. */
static void meet(lane_state *s, lane_item send, lane_item receive) {
  lane_step *from = &s->parts[send.part].steps[send.item];
  lane_step *to = &s->parts[receive.part].steps[receive.item];
  uint32_t slot = lane_schedule(s, receive.part)->steps[receive.item].slot;
  if (s->options->messages == LANE_MESSAGES_EAGER && from->has_begun && !from->is_over) {
    step_over(s, send.part, send.item);
  }
  if (!from->has_begun || !to->has_begun || to->is_over) {
    return;
  }
  bool in_place = s->parts[receive.part].is_in_place[slot];
  step_over(s, receive.part, receive.item);
  if (!from->is_over && (!in_place || s->parts[receive.part].readers[slot] == 0)) {
    step_over(s, send.part, send.item);
  }
}

static void begin_message(lane_state *s, uint32_t part, uint32_t step) {
  lane_item here = {part, step}, there = lane_partner(s, part, step);
  lane_part *p = &s->parts[part];
  if (lane_is_paced(s, part, step)) {
    if (p->far_sends >= s->options->far_sends_max) {
      p->steps[step].is_throttled = true;
      p->throttled++;
      return;
    }
    p->far_sends++;
  }
  p->steps[step].has_begun = true;
  if (lane_schedule(s, part)->steps[step].kind == LCOMM_STEP_SEND) {
    meet(s, here, there);
  } else {
    meet(s, there, here);
  }
}

static void run_entry(lane_state *s, uint32_t part, uint32_t entry) {
  lane_part *p = &s->parts[part];
  const lane_entry *it = &p->entries[entry];
  for (uint32_t i = 0; i < it->step_count; i++) {
    p->steps[it->steps[i]].has_begun = true;
    step_over(s, part, it->steps[i]);
  }
  if (entry == LANE_STAGE_IN) {
    for (uint32_t i = 0; i < p->waits_for_in_count; i++) {
      lane_item waiter = {part, p->waits_for_in[i]};
      if (waiter.item & LANE_ENTRY) {
        entry_waits_less(s, part, waiter.item & ~LANE_ENTRY);
      } else {
        step_waits_less(s, part, waiter.item);
      }
    }
  }
  p->entries[entry].is_over = true;
  if (it->next.part != LANE_NONE) {
    entry_waits_less(s, it->next.part, it->next.item);
  }
  if (entry == LANE_STAGE_IN || entry == LANE_STAGE_OUT) {
    part_over(s, part);
  }
}

static lane_item take(lane_state *s) {
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  uint32_t at = (uint32_t)(s->random % s->movable_count);
  lane_item it = s->movable[at];
  s->movable[at] = s->movable[--s->movable_count];
  return it;
}

int lanes_run(sim_world *world, const lane_options *options, char *why, size_t size) {
  lane_state s = {.world = world, .options = options, .random = options->seed + UINT64_C(88172645)};
  lanes_prepare(&s);
  while (s.movable_count > 0) {
    lane_item it = take(&s);
    if (it.item & LANE_ENTRY) {
      run_entry(&s, it.part, it.item & ~LANE_ENTRY);
    } else {
      begin_message(&s, it.part, it.item);
    }
  }
  bool ended = s.parts_left == 0;
  if (!ended) {
    lanes_explain(&s, why, size);
  }
  lanes_clean_up(&s);
  return ended ? 0 : -1;
}
