/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Playing a tape: all that an operation does on its device goes into the lanes. */

#include "libcomm/engine/device_batch.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/tape_internal.h"

static lcomm_status launched(lcomm_run *run, int error) {
  return lcomm_run_device_check(run, "a computation", error);
}

/* ------------------------------------------------------------------- groups */

/* What was written for a peer must be in its lane before anything that waits for a peer is in
 * another one: lanes may share a queue. */
static lcomm_status turn_to(lcomm_run *run, lcomm_lane lane) {
  if (run->device->stream != lcomm_tape_stream(run, lane)) {
    LCOMM_TRY(lcomm_tape_tell(run));
    lcomm_tape_turn_to(run, lane);
  }
  return LCOMM_OK;
}

/* Lanes before its own have come as far as it needs. */
static lcomm_status follow(lcomm_run *run, const lcomm_tape_step *it) {
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    if (it->follows[lane] != LCOMM_TAPE_NONE) {
      void *event = run->tape->steps[it->follows[lane]].event;
      LCOMM_TRY(lcomm_tape_tell(run)); /* peers may wait for it, and that lane for them */
      LCOMM_TRY(launched(run, run->device->table->stream.wait(run->device->stream, event)));
    }
  }
  return LCOMM_OK;
}

static lcomm_status follow_all(lcomm_run *run, uint32_t index) {
  return follow(run, &run->tape->steps[index]);
}

/* Before the copies of others are launched, all payloads of the group cross. */
static lcomm_status bring(lcomm_run *run, uint32_t index) {
  uint8_t *payload = NULL;
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return step->kind == LCOMM_STEP_DECODE ? run->backend->payloads->read(run, step->slot, &payload)
                                         : LCOMM_OK;
}

static bool is_fetched(const lcomm_run *run, const lcomm_step *step) {
  return step->kind == LCOMM_STEP_DECODE &&
         lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_FETCHED);
}

static lcomm_status compute(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  const lcomm_step *step = &schedule->steps[index];
  LCOMM_TRY(is_fetched(run, step) ? bring(run, index) : LCOMM_OK);
  LCOMM_TRY(lcomm_exec_compute(run, index));
  for (uint32_t i = 0; i < step->next_count; i++) {
    run->steps.waiting[schedule->next[step->next_first + i]]--;
  }
  return LCOMM_OK;
}

/* A sum brings all its payloads at once; a result of top-k is read with what was sent. */
static bool is_batch(const lcomm_run *run, uint32_t first, uint32_t last) {
  const lcomm_step *step = &run->plan->schedule.steps[first];
  return first < last || step->kind == LCOMM_STEP_REDUCE || step->commit != LCOMM_NO_SLOT;
}

static lcomm_status bring_and_compute(lcomm_run *run, uint32_t first, uint32_t last) {
  LCOMM_TRY(lcomm_tape_each(run, first, last, bring));
  return lcomm_tape_each(run, first, last, compute);
}

static lcomm_status compute_batch(lcomm_run *run, uint32_t first, uint32_t last) {
  lcomm_device_batch_open(run);
  lcomm_status status = bring_and_compute(run, first, last);
  return lcomm_first_failure(status, lcomm_device_batch_close(run));
}

static lcomm_status play_group(lcomm_run *run, uint32_t last) {
  const lcomm_tape_step *it = &run->tape->steps[last];
  uint32_t first = lcomm_tape_group_first(&run->plan->schedule, run->tape->steps, last);
  LCOMM_TRY(turn_to(run, it->lane));
  LCOMM_TRY(lcomm_tape_each(run, first, last, follow_all));
  LCOMM_TRY(lcomm_tape_await(run, first, last));
  LCOMM_TRY(is_batch(run, first, last) ? compute_batch(run, first, last) : compute(run, last));
  LCOMM_TRY(it->event
                ? launched(run, run->device->table->event.record(it->event, run->device->stream))
                : LCOMM_OK);
  return lcomm_tape_announce(run, first, last);
}

/* -------------------------------------------------------------------- steps */

/* It will be there when a lane comes to need it. */
static void assume_received(lcomm_slot_memory *slot) {
  lcomm_payload_posted(slot);
  slot->wire_size = slot->wire_capacity;
  slot->payload_size = slot->capacity;
  lcomm_payload_received(slot);
}

/* A group is played where its last step is: messages between are there already. */
static lcomm_status play_step(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  if (step->kind == LCOMM_STEP_RECV) {
    assume_received(&run->slots[step->slot]);
  }
  bool is_last = !lcomm_step_is_message(step) && run->tape->steps[index].last == index;
  return is_last ? play_group(run, index) : LCOMM_OK;
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

/* Other lanes begin when the data is staged in. Those that wait for something in the first one
 * do. */
static lcomm_status begin_lanes(lcomm_run *run) {
  const lcomm_device_table *table = run->device->table;
  const lcomm_tape *tape = run->tape;
  bool is_recorded = false;
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    if (!tape->waits_for_staging[lane]) {
      continue;
    }
    void *first = lcomm_tape_stream(run, LCOMM_LANE_ENCODE);
    LCOMM_TRY(is_recorded ? LCOMM_OK : launched(run, table->event.record(tape->staged, first)));
    is_recorded = true;
    LCOMM_TRY(
        launched(run, table->stream.wait(lcomm_tape_stream(run, (lcomm_lane)lane), tape->staged)));
  }
  return LCOMM_OK;
}

/* --------------------------------------------------------------- recordings */

/* A replay begins when the proxy is through with the one before, and tells it so. */
static lcomm_status begin_replay(lcomm_run *run) {
  const lcomm_recording *recording = run->recording;
  if (recording->has_messages) {
    LCOMM_TRY(lcomm_tape_put_number(run, LCOMM_DEVICE_AWAIT, lcomm_tape_free_gate(run)));
    LCOMM_TRY(lcomm_tape_put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_start(run)));
    LCOMM_TRY(lcomm_tape_tell(run));
  }
  return recording->seed
             ? launched(run, run->device->table->copy(recording->device_seed, recording->seed,
                                                      sizeof *recording->seed, run->device->stream))
             : LCOMM_OK;
}

static bool is_used(const lcomm_run *run, lcomm_lane lane) {
  bool used = false;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    used |=
        !lcomm_step_is_message(&run->plan->schedule.steps[i]) && run->tape->steps[i].lane == lane;
  }
  return used || lane == LCOMM_LANE_ENCODE || run->tape->waits_for_staging[lane];
}

/* Nothing is left in other lanes when the replay is over, and all are in the same graph. The result
 * is counted anew by each replay, once the proxy has begun it. */
static lcomm_status end_lanes(lcomm_run *run) {
  const lcomm_device_table *table = run->device->table;
  for (int lane = 0; lane < LCOMM_LANE_DECODE; lane++) {
    if (is_used(run, (lcomm_lane)lane)) {
      LCOMM_TRY(turn_to(run, (lcomm_lane)lane));
      LCOMM_TRY(launched(run, table->event.record(run->tape->drained[lane], run->device->stream)));
    }
  }
  LCOMM_TRY(turn_to(run, LCOMM_LANE_DECODE));
  for (int lane = 0; lane < LCOMM_LANE_DECODE; lane++) {
    if (is_used(run, (lcomm_lane)lane)) {
      LCOMM_TRY(launched(run, table->stream.wait(run->device->stream, run->tape->drained[lane])));
    }
  }
  LCOMM_TRY(lcomm_tape_await_begun(run));
  return lcomm_tape_tell(run);
}

static lcomm_status play(lcomm_run *run) {
  run->tape->told_count = run->tape->gate_count = 0;
  run->tape->is_urgent = run->tape->awaits_begun = false;
  LCOMM_TRY(run->recording ? begin_replay(run) : LCOMM_OK);
  LCOMM_TRY(begin_lanes(run));
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    LCOMM_TRY(play_step(run, i));
  }
  LCOMM_TRY(turn_to(run, LCOMM_LANE_DECODE));
  LCOMM_TRY(run->recording ? end_lanes(run)
                           : follow(run, &run->tape->steps[run->plan->schedule.step_count]));
  LCOMM_TRY(lcomm_exec_stage_out(run));
  LCOMM_TRY(lcomm_tape_put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_end(run)));
  return lcomm_tape_tell(run);
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

lcomm_status lcomm_tape_chain(lcomm_run *run) {
  return lcomm_tape_join(run, lcomm_tape_stream(run, LCOMM_LANE_ENCODE));
}
