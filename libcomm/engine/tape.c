/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tapes: made with a run, played by calls. */

#include "libcomm/engine/tape.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

/* -------------------------------------------------------------- which plans */

static bool has_sparse(const lcomm_plan *plan) {
  bool any = false;
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    any |= lcomm_format_is_sparse(&plan->stages[i].format);
  }
  return any;
}

static bool has_numbers(lcomm_comm *comm, int ordinal) {
  lcomm_device_facts facts = {0};
  unsigned depth = lcomm_turn_give(comm);
  bool known = lcomm_device_get(NULL)->facts(ordinal, &facts) == 0;
  lcomm_turn_take(comm, depth);
  return known && facts.waits_for_values;
}

/* Not where a payload may stay on devices between ranks: peers' memory is opened when its handle
 * comes. */
static bool fits(lcomm_comm *comm, const lcomm_plan *plan) {
  if (!lcomm_memory_is_on_device(plan->location) || !comm->allows_progress_thread ||
      has_sparse(plan)) {
    return false;
  }
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    if (lcomm_step_is_message(step) && lcomm_device_may_stay(comm, step->peer)) {
      return false;
    }
  }
  return has_numbers(comm, plan->location.device);
}

const lcomm_backend *lcomm_backend_of_calls(lcomm_comm *comm, const lcomm_plan *plan) {
  return fits(comm, plan) ? &lcomm_backend_taped : lcomm_backend_of(plan->location);
}

/* -------------------------------------------------------------------- lanes */

static void *stream_of(const lcomm_run *run, lcomm_lane lane) {
  return run->tape->lanes->stream[lane];
}

/* What is computed from here on is computed in this lane. */
static void go_to(lcomm_run *run, lcomm_lane lane) {
  run->device->stream = stream_of(run, lane);
}

/* What a step that comes later has to do with one that it waits for. */
static void relate(const lcomm_schedule *schedule, lcomm_tape_step *steps, uint32_t index,
                   uint32_t later) {
  lcomm_tape_step *one = &steps[index], *other = &steps[later];
  bool sent = lcomm_step_is_message(&schedule->steps[index]),
       needed = lcomm_step_is_message(&schedule->steps[later]);
  other->awaits |= sent && !needed;
  one->announces |= !sent && needed;
  if (!sent && !needed) {
    other->follows[one->lane] = index; /* in program order, so the last one stays */
  }
}

/* Staging out is in the last lane. False without memory. */
static bool find_lanes(const lcomm_schedule *schedule, lcomm_tape_step *steps) {
  lcomm_lane *lanes = calloc((size_t)schedule->step_count + 1, sizeof *lanes);
  if (!lanes) {
    return false;
  }
  lcomm_schedule_lanes(schedule, lanes);
  lanes[schedule->step_count] = LCOMM_LANE_DECODE;
  for (uint32_t i = 0; i <= schedule->step_count; i++) {
    steps[i].lane = lanes[i];
  }
  free(lanes);
  return true;
}

static void relate_all(const lcomm_schedule *schedule, lcomm_tape_step *steps) {
  for (uint32_t i = 0; i <= schedule->step_count; i++) {
    for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
      steps[i].follows[lane] = LCOMM_TAPE_NONE;
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    for (uint32_t k = 0; k < step->next_count; k++) {
      relate(schedule, steps, i, schedule->next[step->next_first + k]);
    }
    if (!lcomm_step_is_message(step)) { /* staging out comes after all */
      steps[schedule->step_count].follows[steps[i].lane] = i;
    }
  }
}

/* A lane has waited already for what it is to wait for, or that is in the lane itself. */
static void drop_needless(const lcomm_schedule *schedule, lcomm_tape_step *steps) {
  int64_t seen[LCOMM_LANE_COUNT][LCOMM_LANE_COUNT];
  memset(seen, 0xff, sizeof(seen)); /* NONE */
  for (uint32_t i = 0; i <= schedule->step_count; i++) {
    lcomm_tape_step *step = &steps[i];
    for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
      int64_t *last = &seen[step->lane][lane], of = step->follows[lane];
      bool waits = lane != (int)step->lane && of > *last;
      step->follows[lane] = waits ? of : LCOMM_TAPE_NONE;
      if (waits) {
        *last = of;
        steps[of].is_joined = true;
      }
    }
  }
}

/* ------------------------------------------------------------------- making */

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
  run->tape->lanes =
      lcomm_lanes_of(run->comm, run->device->ordinal, LCOMM_SEQUENCE_SPACE_CALLS, &error);
  LCOMM_TRY(run->tape->lanes ? LCOMM_OK : got(run, "stream", error));
  go_to(run, LCOMM_LANE_ENCODE);
  return LCOMM_OK;
}

lcomm_status lcomm_tape_make(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  if (!make_tables(run) || !find_lanes(&run->plan->schedule, tape->steps)) {
    return LCOMM_ERR_MEMORY;
  }
  relate_all(&run->plan->schedule, tape->steps);
  drop_needless(&run->plan->schedule, tape->steps);
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
  if (tape->numbers && *lcomm_tape_end(run) != tape->number) {
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

/* ------------------------------------------------------------------ playing */

static lcomm_status launched(lcomm_run *run, int error) {
  return lcomm_run_device_check(run, "a computation", error);
}

static lcomm_status put_number(lcomm_run *run, lcomm_device_number_task task, uint32_t *place) {
  const lcomm_run_device *device = run->device;
  lcomm_device_number it = {.task = task, .place = place, .number = run->tape->number};
  return launched(run, device->table->stream.numbers(device->stream, &it, 1));
}

/* Lanes before its own have come as far as it needs. */
static lcomm_status follow(lcomm_run *run, const lcomm_tape_step *it) {
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    if (it->follows[lane] != LCOMM_TAPE_NONE) {
      void *event = run->tape->steps[it->follows[lane]].event;
      LCOMM_TRY(launched(run, run->device->table->stream.wait(run->device->stream, event)));
    }
  }
  return LCOMM_OK;
}

static lcomm_status play_computation(lcomm_run *run, uint32_t index) {
  const lcomm_tape_step *it = &run->tape->steps[index];
  go_to(run, it->lane);
  LCOMM_TRY(follow(run, it));
  LCOMM_TRY(it->awaits ? put_number(run, LCOMM_DEVICE_AWAIT, lcomm_tape_go(run, index)) : LCOMM_OK);
  LCOMM_TRY(lcomm_exec_compute(run, index));
  LCOMM_TRY(it->announces ? put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_ready(run, index))
                          : LCOMM_OK);
  return it->event ? launched(run, run->device->table->event.record(it->event, run->device->stream))
                   : LCOMM_OK;
}

/* It will be there when a lane comes to need it. */
static void assume_received(lcomm_slot_memory *slot) {
  lcomm_payload_posted(slot);
  slot->wire_size = slot->wire_capacity;
  slot->payload_size = slot->capacity;
  lcomm_payload_received(slot);
}

static lcomm_status play_step(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  const lcomm_step *step = &schedule->steps[index];
  if (step->kind == LCOMM_STEP_RECV) {
    assume_received(&run->slots[step->slot]);
  }
  if (lcomm_step_is_message(step)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(play_computation(run, index));
  for (uint32_t i = 0; i < step->next_count; i++) {
    run->steps.waiting[schedule->next[step->next_first + i]]--;
  }
  return LCOMM_OK;
}

void lcomm_tape_rewind(lcomm_run *run) {
  lcomm_run *copy = &run->tape->copy;
  *copy = *run;
  copy->slots = run->tape->slots;
  copy->steps.waiting = run->tape->waiting;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    lcomm_payload_reset(&copy->slots[i], NULL);
  }
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    copy->steps.waiting[i] = run->plan->schedule.steps[i].waits_for;
  }
}

/* Other lanes begin when the data is staged in. */
static lcomm_status begin_lanes(lcomm_run *run) {
  const lcomm_device_stream *streams = &run->device->table->stream;
  void *staged = run->tape->staged;
  LCOMM_TRY(
      launched(run, run->device->table->event.record(staged, stream_of(run, LCOMM_LANE_ENCODE))));
  LCOMM_TRY(run->tape->uses_sums
                ? launched(run, streams->wait(stream_of(run, LCOMM_LANE_REDUCE), staged))
                : LCOMM_OK);
  return launched(run, streams->wait(stream_of(run, LCOMM_LANE_DECODE), staged));
}

static lcomm_status play(lcomm_run *run) {
  LCOMM_TRY(begin_lanes(run));
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    LCOMM_TRY(play_step(run, i));
  }
  go_to(run, LCOMM_LANE_DECODE);
  LCOMM_TRY(follow(run, &run->tape->steps[run->plan->schedule.step_count]));
  LCOMM_TRY(lcomm_exec_stage_out(run));
  return put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_end(run));
}

lcomm_status lcomm_tape_play(lcomm_run *run) {
  lcomm_status status = play(&run->tape->copy);
  go_to(run, LCOMM_LANE_ENCODE); /* where the next operation is staged in */
  return status;
}

lcomm_status lcomm_tape_join(lcomm_run *run, void *stream) {
  const lcomm_device_table *table = run->device->table;
  LCOMM_TRY(launched(run, table->event.record(run->tape->done, stream_of(run, LCOMM_LANE_DECODE))));
  return launched(run, table->stream.wait(stream, run->tape->done));
}
