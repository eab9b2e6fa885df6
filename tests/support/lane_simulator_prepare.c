/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the lane simulator follows: entries of lanes, and how much each waits for. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/sched/lane_group.h"
#include "tests/support/lane_simulator_internal.h"

/* ----------------------------------------------------------------- messages */

/* Steps by peer and number of one direction: place[peer] is the first of that peer. */
static uint32_t *steps_by_message(const lcomm_schedule *schedule, lcomm_step_kind kind,
                                  uint32_t *place) {
  uint32_t *list = lane_zeros(schedule->step_count, sizeof *list);
  memset(place, 0, ((size_t)schedule->size + 1) * sizeof *place);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    place[schedule->steps[i].kind == kind ? schedule->steps[i].peer + 1 : 0]++;
  }
  place[0] = 0;
  for (int peer = 0; peer < schedule->size; peer++) {
    place[peer + 1] += place[peer];
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    if (schedule->steps[i].kind == kind) {
      list[place[schedule->steps[i].peer] + schedule->steps[i].message] = i;
    }
  }
  return list;
}

/* The schedules are verified, so that every message has its partner. */
static void find_partners(lane_state *s) {
  uint32_t size = (uint32_t)s->world->size;
  uint32_t *place = lane_zeros((size_t)size + 1, sizeof *place);
  s->partner = lane_zeros(size, sizeof *s->partner);
  for (uint32_t rank = 0; rank < size; rank++) {
    s->partner[rank] = lane_zeros(s->world->schedules[rank].step_count, sizeof **s->partner);
  }
  for (uint32_t rank = 0; rank < size; rank++) {
    const lcomm_schedule *mine = &s->world->schedules[rank];
    uint32_t *receives = steps_by_message(mine, LCOMM_STEP_RECV, place);
    for (uint32_t peer = 0; peer < size; peer++) {
      const lcomm_schedule *theirs = &s->world->schedules[peer];
      for (uint32_t i = 0; i < theirs->step_count && place[peer] < place[peer + 1]; i++) {
        const lcomm_step *send = &theirs->steps[i];
        if (send->kind == LCOMM_STEP_SEND && send->peer == (int)rank) {
          uint32_t receive = receives[place[peer] + send->message];
          s->partner[peer][i] = receive;
          s->partner[rank][receive] = i;
        }
      }
    }
    free(receives);
  }
  free(place);
}

static void find_receives(lane_state *s) {
  s->receive_of = lane_zeros((size_t)s->world->size, sizeof *s->receive_of);
  for (int rank = 0; rank < s->world->size; rank++) {
    const lcomm_schedule *schedule = &s->world->schedules[rank];
    s->receive_of[rank] = lane_zeros(schedule->slot_count, sizeof **s->receive_of);
    for (uint32_t i = 0; i < schedule->step_count; i++) {
      if (schedule->steps[i].kind == LCOMM_STEP_RECV) {
        s->receive_of[rank][schedule->steps[i].slot] = i;
      }
    }
  }
}

/* -------------------------------------------------------------------- lanes */

static lcomm_lane lane_of(const lane_state *s, lcomm_lane lane) {
  return s->options->lanes == 1 ? LCOMM_LANE_ENCODE : lane;
}

/* Behind the last entry of its lane so far. */
static void append(lane_state *s, lane_item *last, uint32_t part, uint32_t entry) {
  lane_entry *it = &s->parts[part].entries[entry];
  it->previous = last[it->lane];
  it->next = (lane_item){LANE_NONE, 0};
  if (it->previous.part != LANE_NONE) {
    s->parts[it->previous.part].entries[it->previous.item].next = (lane_item){part, entry};
    it->waits++;
  }
  last[it->lane] = (lane_item){part, entry};
}

static void wait_for_in(lane_part *p, uint32_t item) {
  p->waits_for_in[p->waits_for_in_count++] = item;
  if (item & LANE_ENTRY) {
    p->entries[item & ~LANE_ENTRY].waits++;
  } else {
    p->steps[item].waits++;
  }
}

/* The last step of the group of each computation: itself, where nothing is merged. */
static uint32_t *find_groups(const lane_state *s, const lcomm_schedule *schedule,
                             const lcomm_lane *lanes) {
  const bool merged = s->options->merged;
  const lcomm_group_limits limits = {{merged, merged, merged},
                                     {merged, merged, merged},
                                     UINT32_MAX,
                                     {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
  uint32_t *last = lane_zeros(schedule->step_count, sizeof *last);
  if (lcomm_schedule_groups(schedule, lanes, &limits, last) != LCOMM_OK) {
    abort();
  }
  return last;
}

/* The computations of a part become entries, neighbours one if they may. */
static void make_entries(lane_state *s, uint32_t part, const lcomm_lane *lanes, lane_item *last) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  lane_part *p = &s->parts[part];
  lane_entry *open = NULL;
  bool is_first[LCOMM_LANE_COUNT] = {true, true, true};
  uint32_t placed = 0, before = 0, *last_of = find_groups(s, schedule, lanes);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    p->entry_of[i] = LANE_NONE;
    if (lcomm_step_is_message(&schedule->steps[i])) {
      continue;
    }
    p->computations[placed] = i;
    bool joins = open && last_of[before] == last_of[i];
    before = i;
    if (!joins) {
      open = &p->entries[p->entry_count];
      open->steps = &p->computations[placed];
      open->lane = lane_of(s, lanes[i]);
      append(s, last, part, p->entry_count);
      if (is_first[open->lane]) {
        wait_for_in(p, p->entry_count | LANE_ENTRY);
      }
      is_first[open->lane] = false;
      p->entry_count++;
    }
    open->step_count++;
    p->entry_of[i] = p->entry_count - 1;
    placed++;
  }
  p->computations_left = placed;
  free(last_of);
}

/* ----------------------------------------------------------------- in place */

/* Steps that depend on a SEND of this rank. */
static bool *find_late(const lcomm_schedule *schedule) {
  bool *late = lane_zeros(schedule->step_count, sizeof *late);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    for (uint32_t j = 0; j < step->next_count; j++) {
      late[schedule->next[step->next_first + j]] |= late[i] || step->kind == LCOMM_STEP_SEND;
    }
  }
  return late;
}

/* Of each slot: can it be read where its sender has it? Not by readers that are late, and not
 * without any. */
static void find_readers(const lcomm_schedule *schedule, lane_part *p, const bool *late) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    for (uint32_t j = 0; j < lcomm_step_read_count(&schedule->steps[i]); j++) {
      uint32_t slot = lcomm_step_read(schedule, &schedule->steps[i], j);
      if (slot < schedule->slot_count) {
        p->readers[slot]++;
        p->is_in_place[slot] &= !late[i] && schedule->steps[i].kind != LCOMM_STEP_SEND;
      }
    }
  }
  for (uint32_t slot = 0; slot < schedule->slot_count; slot++) {
    p->is_in_place[slot] &= p->readers[slot] > 0;
  }
}

static void find_in_place(lane_state *s, uint32_t part, const lcomm_lane *lanes) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  lane_part *p = &s->parts[part];
  lane_messages messages = s->options->messages;
  bool *late = find_late(schedule);
  if (messages == LANE_MESSAGES_GATES) {
    uint32_t *last = find_groups(s, schedule, lanes);
    lanes_find_late(schedule, lanes, last, late);
    free(last);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_RECV) {
      p->is_in_place[step->slot] =
          (messages == LANE_MESSAGES_IN_PLACE || messages == LANE_MESSAGES_GATES) &&
          !lane_is_far(s, part, i);
    }
  }
  find_readers(schedule, p, late);
  free(late);
}

/* -------------------------------------------------------------------- parts */

static void count_waits(lane_state *s, uint32_t part) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  lane_part *p = &s->parts[part];
  bool shares = part >= (uint32_t)(s->options->tracks * s->world->size);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    for (uint32_t j = 0; j < step->next_count; j++) {
      uint32_t later = schedule->next[step->next_first + j], entry = p->entry_of[later];
      if (entry == LANE_NONE) {
        p->steps[later].waits++;
      } else if (entry != p->entry_of[i]) {
        p->entries[entry].waits++;
      }
    }
    if (step->kind == LCOMM_STEP_RECV) {
      p->steps[i].waits += shares;
      if (schedule->slots[step->slot].alias.count > 0) {
        wait_for_in(p, i);
      }
    }
  }
  p->entries[LANE_STAGE_IN].waits += shares;
  p->entries[LANE_STAGE_OUT].waits += p->computations_left > 0;
}

static void make_part(lane_state *s, uint32_t part, lane_item *last) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  lane_part *p = &s->parts[part];
  uint32_t steps = schedule->step_count;
  lcomm_lane *lanes = lane_zeros(steps, sizeof *lanes);
  p->steps = lane_zeros(steps, sizeof *p->steps);
  p->entry_of = lane_zeros(steps, sizeof *p->entry_of);
  p->computations = lane_zeros(steps, sizeof *p->computations);
  p->entries = lane_zeros((size_t)steps + LANE_COMPUTATIONS, sizeof *p->entries);
  p->waits_for_in = lane_zeros((size_t)steps + LCOMM_LANE_COUNT, sizeof *p->waits_for_in);
  p->is_in_place = lane_zeros(schedule->slot_count, sizeof *p->is_in_place);
  p->readers = lane_zeros(schedule->slot_count, sizeof *p->readers);
  p->has_gate = lane_zeros(steps, sizeof *p->has_gate);
  p->has_gates = lane_zeros(steps, sizeof *p->has_gates);
  p->entry_count = LANE_COMPUTATIONS;
  p->left = steps + 2;
  p->entries[LANE_STAGE_IN].lane = lane_of(s, LCOMM_LANE_ENCODE);
  p->entries[LANE_STAGE_OUT].lane = lane_of(s, LCOMM_LANE_DECODE);
  lcomm_schedule_lanes(schedule, lanes);
  append(s, last, part, LANE_STAGE_IN);
  make_entries(s, part, lanes, last);
  append(s, last, part, LANE_STAGE_OUT);
  find_in_place(s, part, lanes);
  count_waits(s, part);
  free(lanes);
}

/* What waits for nothing moves first. */
static void find_movable(lane_state *s) {
  for (uint32_t part = 0; part < s->part_count; part++) {
    const lane_part *p = &s->parts[part];
    for (uint32_t i = 0; i < p->entry_count; i++) {
      if (p->entries[i].waits == 0) {
        s->movable[s->movable_count++] = (lane_item){part, i | LANE_ENTRY};
      }
    }
    for (uint32_t i = 0; i < lane_schedule(s, part)->step_count; i++) {
      if (p->entry_of[i] == LANE_NONE && p->steps[i].waits == 0) {
        s->movable[s->movable_count++] = (lane_item){part, i};
      }
    }
  }
}

void lanes_prepare(lane_state *s) {
  bool plain = s->options->plain, copies[LCOMM_STAGE_COUNT] = {plain, plain, plain, plain};
  uint32_t size = (uint32_t)s->world->size;
  size_t items = 0;
  for (uint32_t rank = 0; rank < size; rank++) {
    if (lcomm_schedule_link(&s->world->schedules[rank], copies) != LCOMM_OK) {
      abort();
    }
    items += s->world->schedules[rank].step_count + LANE_COMPUTATIONS;
  }
  s->part_count = s->parts_left = (uint32_t)s->options->operations * size;
  s->parts = lane_zeros(s->part_count, sizeof *s->parts);
  s->movable = lane_zeros(items * (size_t)s->options->operations, sizeof *s->movable);
  find_partners(s);
  find_receives(s);
  for (uint32_t rank = 0; rank < size; rank++) {
    lane_item last[LCOMM_LANE_COUNT] = {{LANE_NONE, 0}, {LANE_NONE, 0}, {LANE_NONE, 0}};
    for (uint32_t part = rank; part < s->part_count; part += size) {
      make_part(s, part, last);
    }
  }
  if (s->options->messages == LANE_MESSAGES_GATES) {
    lanes_find_gates(s);
  }
  find_movable(s);
}

void lanes_clean_up(lane_state *s) {
  for (uint32_t part = 0; part < s->part_count; part++) {
    lane_part *p = &s->parts[part];
    free(p->steps);
    free(p->entry_of);
    free(p->computations);
    free(p->entries);
    free(p->waits_for_in);
    free(p->is_in_place);
    free(p->readers);
    free(p->has_gate);
    free(p->has_gates);
  }
  for (int rank = 0; rank < s->world->size; rank++) {
    free(s->partner[rank]);
    free(s->receive_of[rank]);
  }
  free(s->partner);
  free(s->receive_of);
  free(s->parts);
  free(s->movable);
}
