/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Playing a tape: all that an operation does on its device goes into the lanes. */

#include "libcomm/device/device.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/tape_internal.h"

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
  lcomm_tape_turn_to(run, it->lane);
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
  LCOMM_TRY(launched(
      run, run->device->table->event.record(staged, lcomm_tape_stream(run, LCOMM_LANE_ENCODE))));
  LCOMM_TRY(run->tape->uses_sums
                ? launched(run, streams->wait(lcomm_tape_stream(run, LCOMM_LANE_REDUCE), staged))
                : LCOMM_OK);
  return launched(run, streams->wait(lcomm_tape_stream(run, LCOMM_LANE_DECODE), staged));
}

static lcomm_status play(lcomm_run *run) {
  LCOMM_TRY(begin_lanes(run));
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    LCOMM_TRY(play_step(run, i));
  }
  lcomm_tape_turn_to(run, LCOMM_LANE_DECODE);
  LCOMM_TRY(follow(run, &run->tape->steps[run->plan->schedule.step_count]));
  LCOMM_TRY(lcomm_exec_stage_out(run));
  return put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_end(run));
}

lcomm_status lcomm_tape_play(lcomm_run *run) {
  lcomm_status status = play(&run->tape->copy);
  lcomm_tape_turn_to(run, LCOMM_LANE_ENCODE); /* where the next operation is staged in */
  return status;
}

lcomm_status lcomm_tape_join(lcomm_run *run, void *stream) {
  const lcomm_device_table *table = run->device->table;
  LCOMM_TRY(launched(
      run, table->event.record(run->tape->done, lcomm_tape_stream(run, LCOMM_LANE_DECODE))));
  return launched(run, table->stream.wait(stream, run->tape->done));
}
