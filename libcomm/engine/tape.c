/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tapes: made with a run, freed with it. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/device/device.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/tape_internal.h"

static lcomm_status got(const lcomm_run *run, const char *what, int error) {
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
  if (!tape->steps || !tape->slots || !tape->waiting || !tape->works || !tape->is_begun) {
    return false;
  }
  memcpy(tape->slots, run->slots, (slots - 1) * sizeof *tape->slots);
  return true;
}

static lcomm_status make_events(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  const lcomm_device_table *table = run->device->table;
  LCOMM_TRY(got(run, "event", table->event.create(false, &tape->staged)));
  LCOMM_TRY(got(run, "event", table->event.create(false, &tape->done)));
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    tape->uses_sums |= !lcomm_step_is_message(&run->plan->schedule.steps[i]) &&
                       tape->steps[i].lane == LCOMM_LANE_REDUCE;
    if (tape->steps[i].is_joined) {
      LCOMM_TRY(got(run, "event", table->event.create(false, &tape->steps[i].event)));
    }
  }
  return LCOMM_OK;
}

static lcomm_status make_numbers(lcomm_run *run) {
  size_t size = (2 * (size_t)run->plan->schedule.step_count + 1) * sizeof(uint32_t);
  LCOMM_TRY(got(run, "pinned memory",
                run->device->table->memory.pinned_get(size, (void **)&run->tape->numbers)));
  memset(run->tape->numbers, 0, size);
  return LCOMM_OK;
}

lcomm_status lcomm_tape_open(lcomm_run *run) {
  int error = 0;
  run->tape = calloc(1, sizeof *run->tape);
  if (!run->tape) {
    return LCOMM_ERR_MEMORY;
  }
  run->tape->lanes = lcomm_lanes_of(run->comm, run->device->ordinal, run->space, &error);
  LCOMM_TRY(run->tape->lanes ? LCOMM_OK : got(run, "stream", error));
  lcomm_tape_turn_to(run, LCOMM_LANE_ENCODE);
  return LCOMM_OK;
}

lcomm_status lcomm_tape_make(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  if (!make_tables(run) || !lcomm_tape_relate(&run->plan->schedule, tape->steps)) {
    return LCOMM_ERR_MEMORY;
  }
  LCOMM_TRY(make_numbers(run));
  return make_events(run);
}

/* What was played of an operation that failed is still in the lanes, which nothing stops. */
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
  if (tape->numbers && __atomic_load_n(lcomm_tape_end(run), __ATOMIC_ACQUIRE) != tape->number) {
    drain(run);
  }
  (void)table->event.destroy(tape->staged);
  (void)table->event.destroy(tape->done);
  for (uint32_t i = 0; tape->steps && i < run->plan->schedule.step_count; i++) {
    (void)table->event.destroy(tape->steps[i].event);
  }
  (void)table->memory.pinned_free(tape->numbers);
  free(tape->steps);
  free(tape->slots);
  free(tape->waiting);
  free(tape->works);
  free(tape->is_begun);
  free(tape);
  run->tape = NULL;
}
