/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Aliases: slots that share memory with a part of the vector. Where the payload of a stage is
 * a plain copy, a slot made by ENCODE or consumed by DECODE need not exist
 * apart from the vector, if
 *   - all computations with the slot are on one and the same span, so that
 *     there is nothing to copy;
 *   - its readers all come before that span is overwritten;
 *   - nothing looks at the span between the arrival of a slot and its DECODE.
 */

#include <stdlib.h>

#include "libcomm/sched/dependency.h"

enum { NEVER = UINT32_MAX };

/* What the steps do with a slot. */
typedef struct history {
  uint32_t filled;    /* step that begins with it: ENCODE or RECV; NEVER for none */
  uint32_t last_read; /* 0: not read, as the first step of a schedule reads none */
  uint32_t computed;  /* first step that computes with it; NEVER for none */
  bool mixed;         /* computations are on several spans */
} history;

static bool computes(const lcomm_step *step) {
  return step->kind != LCOMM_STEP_SEND && step->kind != LCOMM_STEP_RECV;
}

static bool same_span(lcomm_span a, lcomm_span b) {
  return a.first == b.first && a.count == b.count && a.parts == b.parts && a.part == b.part;
}

static void record_span(const lcomm_schedule *schedule, history *slot, uint32_t index) {
  slot->computed = slot->computed == NEVER ? index : slot->computed;
  slot->mixed |= !same_span(schedule->steps[slot->computed].span, schedule->steps[index].span);
}

static void record_reads(const lcomm_schedule *schedule, history *slots, uint32_t index) {
  const lcomm_step *step = &schedule->steps[index];
  for (uint32_t i = 0; i < lcomm_step_read_count(step); i++) {
    uint32_t slot = lcomm_step_read(schedule, step, i);
    if (slot >= schedule->slot_count) {
      continue;
    }
    slots[slot].last_read = index;
    if (computes(step)) {
      record_span(schedule, &slots[slot], index);
    }
  }
}

static void record_writes(const lcomm_schedule *schedule, history *slots, uint32_t index) {
  const lcomm_step *step = &schedule->steps[index];
  if (step->kind != LCOMM_STEP_ENCODE && step->kind != LCOMM_STEP_RECV) {
    return;
  }
  for (uint32_t i = 0; i < step->slot_count && step->slot + i < schedule->slot_count; i++) {
    history *slot = &slots[step->slot + i];
    slot->filled = slot->filled == NEVER ? index : slot->filled;
    slot->mixed |= step->slot_count > 1; /* each output is a part of the span */
    if (computes(step)) {
      record_span(schedule, slot, index);
    }
  }
}

/* Could the slot of this step be an alias of the step's span? */
static bool is_candidate(const lcomm_schedule *schedule, const history *slots,
                         const bool copies[LCOMM_STAGE_COUNT], const lcomm_step *step) {
  bool converts = step->kind == LCOMM_STEP_ENCODE || step->kind == LCOMM_STEP_DECODE;
  return converts && step->span.parts == 1 && step->slot_count == 1 &&
         step->slot < schedule->slot_count && copies[schedule->slots[step->slot].stage] &&
         !slots[step->slot].mixed;
}

/* Does `other`, which computes on part of the candidate's span, forbid the alias? A DECODE of the
 * slot itself does nothing once the slot is one. */
static bool stands_against(const lcomm_schedule *schedule, const history *slots, uint32_t candidate,
                           uint32_t other) {
  const lcomm_step *step = &schedule->steps[other];
  uint32_t index = schedule->steps[candidate].slot;
  const history *slot = &slots[index];
  if (slot->filled == NEVER || other <= slot->filled) {
    return false;
  }
  if (other < candidate) {
    return true;
  }
  bool overwrites =
      step->kind == LCOMM_STEP_REDUCE || (step->kind == LCOMM_STEP_DECODE && step->slot != index);
  return overwrites && other < slot->last_read;
}

/* All computations; candidates count as writers, so that they depend on every overlapping one. */
static size_t list_computations(const lcomm_schedule *schedule, const bool *candidate,
                                lcomm_use *uses) {
  size_t count = 0;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (computes(step)) {
      uses[count++] = (lcomm_use){step->span, i, candidate[i]};
    }
  }
  return count;
}

/* Drop the candidates that another computation forbids. */
static bool sift(const lcomm_schedule *schedule, const history *slots, bool *candidate) {
  lcomm_dependencies dependencies = {0};
  lcomm_use *uses = malloc(((size_t)schedule->step_count + 1) * sizeof *uses);
  bool good = uses && lcomm_dependencies_by_overlap(&dependencies, uses,
                                                    list_computations(schedule, candidate, uses));
  for (size_t i = 0; good && i < dependencies.count; i++) {
    uint32_t a = dependencies.list[i].from, b = dependencies.list[i].to;
    candidate[a] = candidate[a] && !stands_against(schedule, slots, a, b);
    candidate[b] = candidate[b] && !stands_against(schedule, slots, b, a);
  }
  free(dependencies.list);
  free(uses);
  return good;
}

/* Slots take the first candidate that is left. */
static bool choose(lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT], history *slots,
                   bool *candidate) {
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    slots[i] = (history){NEVER, 0, NEVER, false};
    schedule->slots[i].alias = lcomm_span_whole(0, 0);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    record_reads(schedule, slots, i);
    record_writes(schedule, slots, i);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    candidate[i] = is_candidate(schedule, slots, copies, &schedule->steps[i]);
  }
  if (!sift(schedule, slots, candidate)) {
    return false;
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (candidate[i] && schedule->slots[step->slot].alias.count == 0) {
      schedule->slots[step->slot].alias = step->span;
    }
  }
  return true;
}

bool lcomm_schedule_set_aliases(lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT]) {
  history *slots = malloc(((size_t)schedule->slot_count + 1) * sizeof *slots);
  bool *candidate = malloc((size_t)schedule->step_count + 1);
  bool good = slots && candidate && choose(schedule, copies, slots, candidate);
  free(slots);
  free(candidate);
  return good;
}
