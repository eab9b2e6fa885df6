/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tapes: made with a run, freed with it. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/device_batch.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/tape_internal.h"

lcomm_status lcomm_tape_got(const lcomm_run *run, const char *what, int error) {
  return error == 0
             ? LCOMM_OK
             : lcomm_error_thread(LCOMM_ERR_SYSTEM, "device %d gives no %s: %s",
                                  run->device->ordinal, what, run->device->table->explain(error));
}

static bool make_tables(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  size_t steps = (size_t)run->plan->schedule.step_count + 1;
  size_t slots = (size_t)run->plan->schedule.slot_count + 1;
  tape->steps = calloc(steps, sizeof *tape->steps);
  tape->slots = calloc(slots, sizeof *tape->slots);
  tape->waiting = calloc(steps, sizeof *tape->waiting);
  tape->works = calloc(steps, sizeof *tape->works);
  tape->is_begun = calloc(steps, sizeof *tape->is_begun);
  run->device->batch = calloc(1, sizeof *run->device->batch);
  if (!tape->steps || !tape->slots || !tape->waiting || !tape->works || !tape->is_begun ||
      !run->device->batch) {
    return false;
  }
  return true;
}

static bool fetches(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *slots = NULL;
  uint32_t count = lcomm_exec_reads(&run->plan->schedule, step, &slots);
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    any |=
        slots[i] != LCOMM_SOURCE_SELF && lcomm_slot_is(&run->slots[slots[i]], LCOMM_SLOT_FETCHED);
  }
  return any;
}

/* The proxy waits for what is read on devices of peers, to tell them that it was. */
static void announce_reads(const lcomm_run *run) {
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    const lcomm_step *step = &run->plan->schedule.steps[i];
    lcomm_tape_step *it = &run->tape->steps[i];
    bool reads = !lcomm_step_is_message(step) && fetches(run, step);
    it->only_read = reads && !it->announces;
    it->announces |= reads;
  }
}

static lcomm_status find_fetched(lcomm_run *run) {
  bool *late = calloc((size_t)run->plan->schedule.step_count + 1, sizeof *late);
  if (!late) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_tape_find_late(&run->plan->schedule, run->tape->steps, late);
  lcomm_device_zcopy_find_fetched(run, late);
  free(late);
  memcpy(run->tape->slots, run->slots, run->plan->schedule.slot_count * sizeof *run->slots);
  return LCOMM_OK;
}

static lcomm_status make_events(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  const lcomm_device_table *table = run->device->table;
  LCOMM_TRY(lcomm_tape_got(run, "event", table->event.create(false, &tape->staged)));
  LCOMM_TRY(lcomm_tape_got(run, "event", table->event.create(false, &tape->done)));
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    if (tape->steps[i].is_joined) {
      LCOMM_TRY(lcomm_tape_got(run, "event", table->event.create(false, &tape->steps[i].event)));
    }
  }
  return LCOMM_OK;
}

static lcomm_status make_numbers(lcomm_run *run) {
  size_t size = lcomm_tape_numbers_size(run->plan);
  LCOMM_TRY(
      lcomm_tape_got(run, "pinned memory",
                     run->device->table->memory.pinned_get(size, (void **)&run->tape->numbers)));
  memset(run->tape->numbers, 0, size);
  size = ((size_t)run->plan->schedule.slot_count + 1) * sizeof *run->tape->from;
  LCOMM_TRY(lcomm_tape_got(run, "pinned memory",
                           run->device->table->memory.pinned_get(size, (void **)&run->tape->from)));
  memset(run->tape->from, 0, size);
  return LCOMM_OK;
}

lcomm_status lcomm_tape_open(lcomm_run *run) {
  int error = 0;
  run->tape = calloc(1, sizeof *run->tape);
  if (!run->tape) {
    return LCOMM_ERR_MEMORY;
  }
  run->tape->lanes = lcomm_lanes_of(run->comm, run->device->ordinal, run->series.space, &error);
  LCOMM_TRY(run->tape->lanes ? LCOMM_OK : lcomm_tape_got(run, "stream", error));
  lcomm_tape_turn_to(run, LCOMM_LANE_ENCODE);
  return LCOMM_OK;
}

lcomm_status lcomm_tape_make(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  if (!make_tables(run)) {
    return LCOMM_ERR_MEMORY;
  }
  LCOMM_TRY(lcomm_tape_relate(run->plan, tape->steps, tape->waits_for_staging));
  LCOMM_TRY(find_fetched(run));
  announce_reads(run);
  LCOMM_TRY(make_numbers(run));
  return make_events(run);
}

lcomm_status lcomm_tape_record(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    LCOMM_TRY(lcomm_tape_got(run, "event",
                             run->device->table->event.create(false, &tape->drained[lane])));
  }
  tape->number = 1;
  *lcomm_tape_free_gate(run) = 1;
  return LCOMM_OK;
}

/* What nothing stops was played of an operation that failed; tables of encoders are copied there
 * when the run is made, and nobody knows of one that was never played whether they were. */
bool lcomm_tape_is_in_lanes(const lcomm_run *run) {
  const lcomm_tape *tape = run->tape;
  return tape->numbers && (tape->number == 0 ||
                           __atomic_load_n(lcomm_tape_end(run), __ATOMIC_ACQUIRE) != tape->number);
}

static void drain(const lcomm_run *run) {
  for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
    (void)run->device->table->stream.finish(run->tape->lanes->stream[i]);
  }
}

void lcomm_tape_free(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  if (!tape) {
    return;
  }
  const lcomm_device_table *table = run->device->table;
  if (!run->recording && lcomm_tape_is_in_lanes(run)) {
    drain(run);
  }
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    (void)table->event.destroy(tape->drained[lane]);
  }
  (void)table->event.destroy(tape->staged);
  (void)table->event.destroy(tape->done);
  for (uint32_t i = 0; tape->steps && i < run->plan->schedule.step_count; i++) {
    (void)table->event.destroy(tape->steps[i].event);
  }
  (void)table->memory.pinned_free(tape->numbers);
  (void)table->memory.pinned_free(tape->from);
  free(tape->steps);
  free(tape->slots);
  free(tape->waiting);
  free(tape->works);
  free(tape->is_begun);
  free(run->device->batch);
  if (run->recording) {
    lcomm_recording_free(run->recording);
  }
  free(tape);
  run->device->batch = NULL;
  run->recording = NULL;
  run->tape = NULL;
}
