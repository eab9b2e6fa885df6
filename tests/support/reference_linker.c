/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/reference_linker.h"

#include <stdlib.h>
#include <string.h>

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
  use.reads = inside || (step->kind == LCOMM_STEP_DECODE && slot == step->commit);
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

/* Are all computations with `slot` on the same span as step `converter`? */
static bool has_one_span(const lcomm_schedule *schedule, uint32_t slot, uint32_t converter) {
  lcomm_span span = schedule->steps[converter].span;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    access use = slot_access(schedule, step, slot);
    bool computes = step->kind != LCOMM_STEP_SEND && step->kind != LCOMM_STEP_RECV;
    bool same = step->span.first == span.first && step->span.count == span.count &&
                step->span.parts == 1 && (step->kind != LCOMM_STEP_ENCODE || step->slot_count == 1);
    if (computes && (use.reads || use.writes) && !same) {
      return false;
    }
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
    if (copies[slot->stage] && slot->alias.count == 0 && has_one_span(schedule, step->slot, i) &&
        may_alias(schedule, step->slot, i)) {
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

/* A slot is written in memory that another had once all have read that. */
static bool ties_by_memory(const lcomm_schedule *schedule, const lcomm_step *a,
                           const lcomm_step *b) {
  if (b->kind != LCOMM_STEP_ENCODE && b->kind != LCOMM_STEP_RECV) {
    return false;
  }
  for (uint32_t slot = b->slot; slot < b->slot + b->slot_count; slot++) {
    uint32_t before = schedule->slots[slot].before;
    if (before != LCOMM_NO_SLOT && slot_access(schedule, a, before).reads) {
      return true;
    }
  }
  return false;
}

/* Are the ties of `schedule` those that `windows`, the same schedule with the
 * reference's aliases, asks for? */
static bool ties_are_alike(const lcomm_schedule *schedule, const lcomm_schedule *windows) {
  uint32_t *waits = calloc((size_t)schedule->step_count + 1, sizeof *waits);
  uint32_t place = 0;
  bool alike = waits;
  for (uint32_t i = 0; alike && i < schedule->step_count; i++) {
    const lcomm_step *first = &schedule->steps[i];
    alike = first->next_first == place && first->waits_for == waits[i];
    for (uint32_t j = i + 1; alike && j < schedule->step_count; j++) {
      const lcomm_step *second = &schedule->steps[j];
      if (ties_by_slot(windows, first, second) || ties_by_vector(windows, first, second) ||
          ties_by_memory(windows, first, second)) {
        alike = place < schedule->next_count && schedule->next[place++] == j;
        waits[j]++;
      }
    }
    alike = alike && first->next_count == place - first->next_first;
  }
  free(waits);
  return alike && place == schedule->next_count;
}

bool reference_links_alike(const lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT]) {
  lcomm_schedule windows = *schedule;
  windows.slots = calloc((size_t)schedule->slot_count + 1, sizeof *windows.slots);
  if (!windows.slots) {
    return false;
  }
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    windows.slots[i] = schedule->slots[i];
  }
  set_aliases(&windows, copies);
  bool alike = true;
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    lcomm_span ours = schedule->slots[i].alias, wanted = windows.slots[i].alias;
    alike &= ours.first == wanted.first && ours.count == wanted.count;
  }
  alike = alike && ties_are_alike(schedule, &windows);
  free(windows.slots);
  return alike;
}
