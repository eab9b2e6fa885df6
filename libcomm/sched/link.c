/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The linker: from "what each step reads and writes" to "which step waits for which". Program order
 * decides who is first; two steps have a dependency when they touch the same slot, slots in the
 * same memory, or overlapping spans and at least one of them writes.
 */

#include <stdlib.h>
#include <string.h>

#include "libcomm/sched/dependency.h"

uint32_t lcomm_step_read_count(const lcomm_step *step) {
  switch (step->kind) {
  case LCOMM_STEP_ENCODE:
  case LCOMM_STEP_RECV:
    return 0;
  case LCOMM_STEP_SEND:
    return 1;
  case LCOMM_STEP_DECODE:
    return 2;
  case LCOMM_STEP_REDUCE:
    return step->slot_count;
  }
  return 0;
}

uint32_t lcomm_step_read(const lcomm_schedule *schedule, const lcomm_step *step, uint32_t index) {
  if (step->kind == LCOMM_STEP_REDUCE) {
    return schedule->sources[step->sources + index];
  }
  return index == 0 ? step->slot : step->commit;
}

/* Of each slot: the step that writes it, and the one that writes the next slot in the same memory.
 * UINT32_MAX for none. */
typedef struct writers {
  uint32_t *own, *next;
} writers;

/* Readers of a slot wait for its writer. There is one, and it comes first. The writer of the next
 * slot in its memory waits for them. */
static bool order_readers(const lcomm_schedule *schedule, uint32_t index, const writers *writer,
                          lcomm_dependencies *dependencies) {
  const lcomm_step *step = &schedule->steps[index];
  for (uint32_t i = 0; i < lcomm_step_read_count(step); i++) {
    uint32_t slot = lcomm_step_read(schedule, step, i);
    if (slot >= schedule->slot_count) {
      continue;
    }
    bool written = writer->own[slot] < index;
    bool overwritten = writer->next[slot] != UINT32_MAX && writer->next[slot] > index;
    if ((written && !lcomm_dependencies_add(dependencies, writer->own[slot], index)) ||
        (overwritten && !lcomm_dependencies_add(dependencies, index, writer->next[slot]))) {
      return false;
    }
  }
  return true;
}

static void note_writer(const lcomm_schedule *schedule, uint32_t index, const writers *writer) {
  const lcomm_step *step = &schedule->steps[index];
  bool writes = step->kind == LCOMM_STEP_ENCODE || step->kind == LCOMM_STEP_RECV;
  for (uint32_t k = 0; writes && k < step->slot_count; k++) {
    if (step->slot + k < schedule->slot_count) {
      uint32_t before = schedule->slots[step->slot + k].before;
      writer->own[step->slot + k] = index;
      if (before < schedule->slot_count) {
        writer->next[before] = index;
      }
    }
  }
}

static bool order_by_slots(const lcomm_schedule *schedule, lcomm_dependencies *dependencies) {
  size_t slots = schedule->slot_count;
  uint32_t *memory = malloc((2 * slots + 1) * sizeof *memory);
  if (!memory) {
    return false;
  }
  writers writer = {memory, memory + slots};
  memset(memory, 0xff, 2 * slots * sizeof *memory);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    note_writer(schedule, i, &writer);
  }
  bool good = true;
  for (uint32_t i = 0; good && i < schedule->step_count; i++) {
    good = order_readers(schedule, i, &writer, dependencies);
  }
  free(memory);
  return good;
}

/* How a step uses the vector: computations their span, messages the span of which their slot may be
 * an alias. */
static lcomm_use use_of(const lcomm_schedule *schedule, uint32_t index) {
  const lcomm_step *step = &schedule->steps[index];
  switch (step->kind) {
  case LCOMM_STEP_ENCODE:
    return (lcomm_use){step->span, index, false};
  case LCOMM_STEP_DECODE:
  case LCOMM_STEP_REDUCE:
    return (lcomm_use){step->span, index, true};
  case LCOMM_STEP_SEND:
  case LCOMM_STEP_RECV:
    break;
  }
  lcomm_span none = lcomm_span_whole(0, 0);
  bool exists = step->slot < schedule->slot_count;
  return (lcomm_use){exists ? schedule->slots[step->slot].alias : none, index,
                     step->kind == LCOMM_STEP_RECV};
}

static bool order_by_vector(const lcomm_schedule *schedule, lcomm_dependencies *dependencies) {
  lcomm_use *uses = malloc(((size_t)schedule->step_count + 1) * sizeof *uses);
  for (uint32_t i = 0; uses && i < schedule->step_count; i++) {
    uses[i] = use_of(schedule, i);
  }
  bool good = uses && lcomm_dependencies_by_overlap(dependencies, uses, schedule->step_count);
  free(uses);
  return good;
}

/* Write the sorted dependencies into the schedule, each once. */
static bool write_dependencies(lcomm_schedule *schedule, const lcomm_dependencies *dependencies) {
  uint32_t *next =
      dependencies->count < UINT32_MAX ? malloc((dependencies->count + 1) * sizeof *next) : NULL;
  if (!next) {
    return false;
  }
  free(schedule->next);
  schedule->next = next;
  schedule->next_room = (uint32_t)dependencies->count + 1;
  schedule->next_count = 0;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    schedule->steps[i].waits_for = 0;
  }
  size_t at = 0;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    schedule->steps[i].next_first = schedule->next_count;
    for (; at < dependencies->count && dependencies->list[at].from == i; at++) {
      uint32_t later = dependencies->list[at].to;
      bool again =
          at > 0 && dependencies->list[at - 1].from == i && dependencies->list[at - 1].to == later;
      if (!again) {
        next[schedule->next_count++] = later;
        schedule->steps[later].waits_for++;
      }
    }
    schedule->steps[i].next_count = schedule->next_count - schedule->steps[i].next_first;
  }
  return true;
}

lcomm_status lcomm_schedule_link(lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT]) {
  if (schedule->status != LCOMM_OK) {
    return schedule->status;
  }
  lcomm_dependencies dependencies = {0};
  bool good = lcomm_schedule_set_aliases(schedule, copies) &&
              order_by_slots(schedule, &dependencies) && order_by_vector(schedule, &dependencies) &&
              lcomm_dependencies_sort(&dependencies, schedule->step_count) &&
              write_dependencies(schedule, &dependencies);
  free(dependencies.list);
  return good ? LCOMM_OK : LCOMM_ERR_MEMORY;
}
