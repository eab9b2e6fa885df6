/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The linker: from "what each step reads and writes" to "which step waits for
 * which". Program order decides who is first; two steps are tied when they
 * touch the same slot or overlapping spans and at least one of them writes.
 */

#include <stdlib.h>
#include <string.h>

#include "libcomm/sched/sched.h"

typedef struct access {
  bool reads, writes;
} access;

/* How a step uses slot `slot`. */
static access slot_access(const lcomm_schedule *schedule, const lcomm_step *step, uint32_t slot) {
  access use = {false, false};
  if (step->kind == LCOMM_STEP_REDUCE) {
    for (uint32_t i = 0; i < step->slot_count; i++) {
      use.reads |= schedule->sources[step->sources + i] == slot;
    }
    return use;
  }
  bool inside = slot >= step->slot && slot - step->slot < step->slot_count;
  if (step->kind == LCOMM_STEP_ENCODE || step->kind == LCOMM_STEP_RECV) {
    use.writes = inside;
    return use;
  }
  use.reads = inside || (step->kind == LCOMM_STEP_DECODE && slot == step->settle);
  return use;
}

/* Does a step change part of `span`? DECODE of `slot` itself would not, once
 * the slot is a window there. */
static bool overwrites(const lcomm_step *step, lcomm_span span, uint32_t slot) {
  bool writes =
      step->kind == LCOMM_STEP_REDUCE || (step->kind == LCOMM_STEP_DECODE && step->slot != slot);
  return writes && lcomm_span_overlap(step->span, span);
}

/* May slot `slot`, filled or emptied by step `converter`, be a window into
 * the vector? Only if its readers all come before the window is overwritten,
 * and if nothing else looks at the window between its arrival (RECV) and its
 * DECODE. */
static bool may_alias(const lcomm_schedule *schedule, uint32_t slot, uint32_t converter) {
  lcomm_span span = schedule->steps[converter].span;
  bool filled = false, overwritten = false;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    bool fills =
        (step->kind == LCOMM_STEP_ENCODE || step->kind == LCOMM_STEP_RECV) && step->slot == slot;
    if (overwritten && slot_access(schedule, step, slot).reads) {
      return false;
    }
    if (filled && i < converter && step->kind != LCOMM_STEP_SEND && step->kind != LCOMM_STEP_RECV &&
        lcomm_span_overlap(step->span, span)) {
      return false;
    }
    filled |= fills;
    overwritten |= filled && overwrites(step, span, slot);
  }
  return true;
}

/* Let slots be windows into the vector where their payload is a plain copy:
 * a slot made by ENCODE or consumed by DECODE. */
static void set_aliases(lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT]) {
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    schedule->slots[i].alias = lcomm_span_whole(0, 0);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    bool converts = step->kind == LCOMM_STEP_ENCODE || step->kind == LCOMM_STEP_DECODE;
    if (!converts || step->span.parts != 1 || step->slot_count != 1) {
      continue;
    }
    lcomm_slot *slot = &schedule->slots[step->slot];
    if (copies[slot->stage] && slot->alias.count == 0 && may_alias(schedule, step->slot, i)) {
      slot->alias = step->span;
    }
  }
}

/* How a step uses the vector. At most two spans: its own, and the alias of
 * the slot it sends, receives or sums. */
static access vector_access(const lcomm_schedule *schedule, const lcomm_step *step,
                            lcomm_span *span) {
  access none = {false, false};
  *span = step->span;
  switch (step->kind) {
  case LCOMM_STEP_ENCODE:
    return (access){true, false};
  case LCOMM_STEP_DECODE:
    return (access){false, true};
  case LCOMM_STEP_REDUCE:
    return (access){true, true};
  case LCOMM_STEP_SEND:
  case LCOMM_STEP_RECV:
    *span = schedule->slots[step->slot].alias;
    if (span->count == 0) {
      return none;
    }
    return step->kind == LCOMM_STEP_SEND ? (access){true, false} : (access){false, true};
  }
  return none;
}

static bool ties_by_vector(const lcomm_schedule *schedule, const lcomm_step *a,
                           const lcomm_step *b) {
  lcomm_span span_a, span_b;
  access access_a = vector_access(schedule, a, &span_a);
  access access_b = vector_access(schedule, b, &span_b);
  if (!(access_a.writes && (access_b.reads || access_b.writes)) &&
      !(access_a.reads && access_b.writes)) {
    return false;
  }
  return lcomm_span_overlap(span_a, span_b);
}

static bool ties_by_slot(const lcomm_schedule *schedule, const lcomm_step *a, const lcomm_step *b) {
  /* Slots are written once, so only write-then-read ties exist. */
  bool a_writes = a->kind == LCOMM_STEP_ENCODE || a->kind == LCOMM_STEP_RECV;
  if (!a_writes) {
    return false;
  }
  for (uint32_t slot = a->slot; slot < a->slot + a->slot_count; slot++) {
    if (slot_access(schedule, b, slot).reads) {
      return true;
    }
  }
  return false;
}

static bool add_edge(lcomm_schedule *schedule, uint32_t from, uint32_t to) {
  if (schedule->next_count == schedule->next_room) {
    uint32_t room = schedule->next_room * 2 + 256;
    uint32_t *bigger = realloc(schedule->next, room * sizeof(*bigger));
    if (!bigger) {
      return false;
    }
    schedule->next = bigger;
    schedule->next_room = room;
  }
  schedule->next[schedule->next_count++] = to;
  schedule->steps[from].next_count++;
  schedule->steps[to].waits_for++;
  return true;
}

lcomm_status lcomm_schedule_link(lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT]) {
  if (schedule->status != LCOMM_OK) {
    return schedule->status;
  }
  set_aliases(schedule, copies);
  schedule->next_count = 0;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    schedule->steps[i].waits_for = 0;
    schedule->steps[i].next_count = 0;
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *first = &schedule->steps[i];
    schedule->steps[i].next_first = schedule->next_count;
    for (uint32_t j = i + 1; j < schedule->step_count; j++) {
      const lcomm_step *second = &schedule->steps[j];
      if (!ties_by_slot(schedule, first, second) && !ties_by_vector(schedule, first, second)) {
        continue;
      }
      if (!add_edge(schedule, i, j)) {
        return LCOMM_ERR_MEMORY;
      }
    }
  }
  return LCOMM_OK;
}
