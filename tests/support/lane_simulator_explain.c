/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Why lanes stand still: one item that is not over after the other, each waiting for the next. */

#include <stdio.h>
#include <string.h>

#include "tests/support/lane_simulator_internal.h"

enum { CHAIN_MAX = 8 };

static const char *const kinds[] = {"ENCODE", "SEND", "RECV", "DECODE", "REDUCE"};

static bool is_over(const lane_state *s, lane_item it) {
  const lane_part *p = &s->parts[it.part];
  return it.item & LANE_ENTRY ? p->entries[it.item & ~LANE_ENTRY].is_over
                              : p->steps[it.item].is_over;
}

static lane_item item_of(const lane_state *s, uint32_t part, uint32_t step) {
  uint32_t entry = s->parts[part].entry_of[step];
  return (lane_item){part, entry == LANE_NONE ? step : entry | LANE_ENTRY};
}

/* A step before `step` that it depends on and that is not over; NONE. */
static lane_item open_dependency(const lane_state *s, uint32_t part, uint32_t step) {
  const lcomm_schedule *schedule = lane_schedule(s, part);
  for (uint32_t i = 0; i < step; i++) {
    const lcomm_step *before = &schedule->steps[i];
    for (uint32_t j = 0; j < before->next_count && !s->parts[part].steps[i].is_over; j++) {
      if (schedule->next[before->next_first + j] == step) {
        return item_of(s, part, i);
      }
    }
  }
  return (lane_item){LANE_NONE, 0};
}

/* The earlier operation of the same track, as far as it is not over. */
static lane_item open_before(const lane_state *s, uint32_t part) {
  uint32_t distance = (uint32_t)(s->options->tracks * s->world->size);
  if (part < distance) {
    return (lane_item){LANE_NONE, 0};
  }
  for (uint32_t i = 0; i < lane_schedule(s, part)->step_count; i++) {
    if (!s->parts[part - distance].steps[i].is_over) {
      return item_of(s, part - distance, i);
    }
  }
  return (lane_item){LANE_NONE, 0};
}

static lane_item awaited_by_entry(const lane_state *s, lane_item it) {
  const lane_entry *entry = &s->parts[it.part].entries[it.item & ~LANE_ENTRY];
  if (entry->previous.part != LANE_NONE &&
      !s->parts[entry->previous.part].entries[entry->previous.item].is_over) {
    return (lane_item){entry->previous.part, entry->previous.item | LANE_ENTRY};
  }
  for (uint32_t i = 0; i < entry->step_count; i++) {
    lane_item before = open_dependency(s, it.part, entry->steps[i]);
    if (before.part != LANE_NONE && before.item != it.item) {
      return before;
    }
  }
  return open_before(s, it.part);
}

/* A reader of the slot that a message brings, of those that are not over. */
static lane_item open_reader(const lane_state *s, lane_item receive) {
  const lcomm_schedule *schedule = lane_schedule(s, receive.part);
  uint32_t slot = schedule->steps[receive.item].slot;
  for (uint32_t i = receive.item + 1; i < schedule->step_count; i++) {
    for (uint32_t j = 0; j < lcomm_step_read_count(&schedule->steps[i]); j++) {
      if (lcomm_step_read(schedule, &schedule->steps[i], j) == slot &&
          !s->parts[receive.part].steps[i].is_over) {
        return item_of(s, receive.part, i);
      }
    }
  }
  return (lane_item){LANE_NONE, 0};
}

static lane_item awaited_by_message(const lane_state *s, lane_item it) {
  lane_item partner = lane_partner(s, it.part, it.item);
  if (s->parts[it.part].steps[it.item].has_begun) {
    return is_over(s, partner) ? open_reader(s, partner) : partner;
  }
  lane_item before = open_dependency(s, it.part, it.item);
  return before.part != LANE_NONE ? before : open_before(s, it.part);
}

static size_t print(const lane_state *s, lane_item it, char *text, size_t size) {
  uint32_t ranks = (uint32_t)s->world->size, entry = it.item & ~LANE_ENTRY;
  const lane_part *p = &s->parts[it.part];
  bool is_entry = it.item & LANE_ENTRY;
  bool is_stage = is_entry && entry < LANE_COMPUTATIONS;
  uint32_t step = is_stage ? 0 : is_entry ? p->entries[entry].steps[0] : it.item;
  const char *what = is_stage ? (entry == LANE_STAGE_IN ? "stage in" : "stage out")
                              : kinds[lane_schedule(s, it.part)->steps[step].kind];
  int length = snprintf(text, size, "operation %u, rank %u, step %u (%s)", it.part / ranks,
                        it.part % ranks, step, what);
  return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

static lane_item first_open(const lane_state *s) {
  for (uint32_t part = 0; part < s->part_count; part++) {
    for (uint32_t i = 0; i < lane_schedule(s, part)->step_count; i++) {
      if (!s->parts[part].steps[i].is_over) {
        return item_of(s, part, i);
      }
    }
  }
  return (lane_item){LANE_NONE, 0};
}

void lanes_explain(const lane_state *s, char *why, size_t size) {
  size_t at = 0;
  lane_item it = first_open(s);
  why[0] = '\0';
  for (int i = 0; i < CHAIN_MAX && it.part != LANE_NONE; i++) {
    at += (size_t)snprintf(why + at, size - at, "%s", i > 0 ? " waits for " : "");
    size_t length = print(s, it, why + at, size - at);
    at += length;
    if (length == 0) {
      return;
    }
    it = it.item & LANE_ENTRY ? awaited_by_entry(s, it) : awaited_by_message(s, it);
  }
}
