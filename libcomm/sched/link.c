/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The linker: from "what each step reads and writes" to "which step waits for which". Program order
 * decides who is first; two steps have a dependency when they touch the same slot or overlapping
 * spans and at least one of them writes.
 */

#include <stdlib.h>

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

/* Readers of a slot wait for its writer. There is one, and it comes first. */
static bool order_readers(const lcomm_schedule *schedule, uint32_t index, const uint32_t *writer,
                          lcomm_dependencies *dependencies) {
  const lcomm_step *step = &schedule->steps[index];
  for (uint32_t i = 0; i < lcomm_step_read_count(step); i++) {
    uint32_t slot = lcomm_step_read(schedule, step, i);
    bool written = slot < schedule->slot_count && writer[slot] < index;
    if (written && !lcomm_dependencies_add(dependencies, writer[slot], index)) {
      return false;
    }
  }
  return true;
}

static bool order_by_slots(const lcomm_schedule *schedule, lcomm_dependencies *dependencies) {
  uint32_t *writer = malloc(((size_t)schedule->slot_count + 1) * sizeof *writer);
  bool good = writer;
  for (uint32_t i = 0; good && i < schedule->slot_count; i++) {
    writer[i] = UINT32_MAX;
  }
  for (uint32_t i = 0; good && i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    bool writes = step->kind == LCOMM_STEP_ENCODE || step->kind == LCOMM_STEP_RECV;
    for (uint32_t k = 0; writes && k < step->slot_count; k++) {
      if (step->slot + k < schedule->slot_count) {
        writer[step->slot + k] = i;
      }
    }
    good = order_readers(schedule, i, writer, dependencies);
  }
  free(writer);
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
