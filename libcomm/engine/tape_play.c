/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Playing a tape: all that an operation does on its device goes into the lanes. */

#include "libcomm/engine/device_batch.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/gates.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/tape_internal.h"

static lcomm_status launched(lcomm_run *run, int error) {
  return lcomm_run_device_check(run, "a computation", error);
}

/* ----------------------------------------------------------------- numbers */

static lcomm_status tell_gates(lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  lcomm_tape *tape = run->tape;
  uint32_t count = tape->gate_count;
  tape->gate_count = 0;
  return count == 0
             ? LCOMM_OK
             : launched(run, device->table->stream.gates(device->stream, tape->gates, count));
}

/* All that was to be told to the lane in which things are played. */
static lcomm_status tell(lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  lcomm_tape *tape = run->tape;
  uint32_t count = tape->told_count;
  tape->told_count = 0;
  LCOMM_TRY(tell_gates(run));
  return count == 0
             ? LCOMM_OK
             : launched(run, device->table->stream.numbers(device->stream, tape->told, count));
}

/* What was put before is told before. */
static lcomm_status put_gate(lcomm_run *run, lcomm_device_number_task task, uint32_t step) {
  lcomm_tape *tape = run->tape;
  if (tape->told_count > 0 || tape->gate_count == LCOMM_TAPE_NUMBERS) {
    LCOMM_TRY(tell(run));
  }
  tape->gates[tape->gate_count++] = lcomm_gate_task(run->recording->gates, task, step);
  return LCOMM_OK;
}

static lcomm_status put_number(lcomm_run *run, lcomm_device_number_task task, uint32_t *place) {
  lcomm_tape *tape = run->tape;
  if (tape->gate_count > 0 || tape->told_count == LCOMM_TAPE_NUMBERS) {
    LCOMM_TRY(tell(run));
  }
  tape->told[tape->told_count++] =
      (lcomm_device_number){.task = task, .place = place, .number = tape->number};
  return LCOMM_OK;
}

/* What was written for a peer must be in its lane before anything that waits for a peer is in
 * another one: lanes may share a queue. */
static lcomm_status turn_to(lcomm_run *run, lcomm_lane lane) {
  if (run->device->stream != lcomm_tape_stream(run, lane)) {
    LCOMM_TRY(tell(run));
    lcomm_tape_turn_to(run, lane);
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------- groups */

/* Lanes before its own have come as far as it needs. */
static lcomm_status follow(lcomm_run *run, const lcomm_tape_step *it) {
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    if (it->follows[lane] != LCOMM_TAPE_NONE) {
      void *event = run->tape->steps[it->follows[lane]].event;
      LCOMM_TRY(tell(run)); /* peers may wait for it, and that lane for them */
      LCOMM_TRY(launched(run, run->device->table->stream.wait(run->device->stream, event)));
    }
  }
  return LCOMM_OK;
}

/* From first to last, what is no message. */
typedef lcomm_status (*for_member)(lcomm_run *run, uint32_t index);

static lcomm_status each(lcomm_run *run, uint32_t first, uint32_t last, for_member function) {
  lcomm_status status = LCOMM_OK;
  for (uint32_t i = first; i <= last && status == LCOMM_OK; i++) {
    if (!lcomm_step_is_message(&run->plan->schedule.steps[i])) {
      status = function(run, i);
    }
  }
  return status;
}

static lcomm_status follow_all(lcomm_run *run, uint32_t index) {
  return follow(run, &run->tape->steps[index]);
}

static const lcomm_gates *gates_of(const lcomm_run *run) {
  return run->recording ? run->recording->gates : NULL;
}

static bool is_next(const lcomm_schedule *schedule, uint32_t index, uint32_t later) {
  const lcomm_step *step = &schedule->steps[index];
  bool found = false;
  for (uint32_t i = 0; i < step->next_count && !found; i++) {
    found = schedule->next[step->next_first + i] == later;
  }
  return found;
}

/* Those of all messages that a computation waits for. */
static lcomm_status await_gates(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < index; i++) {
    if (lcomm_step_is_message(&schedule->steps[i]) && is_next(schedule, i, index)) {
      LCOMM_TRY(put_gate(run, LCOMM_DEVICE_AWAIT, i));
    }
  }
  return LCOMM_OK;
}

static lcomm_status await(lcomm_run *run, uint32_t index) {
  if (!run->tape->steps[index].awaits) {
    return LCOMM_OK;
  }
  return gates_of(run) && lcomm_gates_are_all(gates_of(run), index)
             ? await_gates(run, index)
             : put_number(run, LCOMM_DEVICE_AWAIT, lcomm_tape_go(run, index));
}

/* Those of messages that it was for, and nothing else. */
static lcomm_status open_gates(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  const lcomm_step *step = &schedule->steps[index];
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t later = schedule->next[step->next_first + i];
    bool is_sent = schedule->steps[later].kind == LCOMM_STEP_SEND;
    LCOMM_TRY(is_sent && lcomm_gate_of(gates_of(run), later)
                  ? put_gate(run, LCOMM_DEVICE_WRITE, later)
                  : LCOMM_OK);
  }
  return LCOMM_OK;
}

static lcomm_status announce(lcomm_run *run, uint32_t index) {
  if (!run->tape->steps[index].announces) {
    return LCOMM_OK;
  }
  LCOMM_TRY(put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_ready(run, index)));
  return gates_of(run) ? open_gates(run, index) : LCOMM_OK;
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

/* A sum brings all its payloads at once. */
static bool is_batch(const lcomm_run *run, uint32_t first, uint32_t last) {
  const lcomm_step *step = &run->plan->schedule.steps[first];
  return first < last ||
         (step->kind == LCOMM_STEP_REDUCE && lcomm_tape_sums_dense(run->plan, step));
}

static lcomm_status bring_and_compute(lcomm_run *run, uint32_t first, uint32_t last) {
  LCOMM_TRY(each(run, first, last, bring));
  return each(run, first, last, compute);
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
  LCOMM_TRY(each(run, first, last, follow_all));
  LCOMM_TRY(each(run, first, last, await));
  LCOMM_TRY(tell(run));
  LCOMM_TRY(is_batch(run, first, last) ? compute_batch(run, first, last) : compute(run, last));
  LCOMM_TRY(it->event
                ? launched(run, run->device->table->event.record(it->event, run->device->stream))
                : LCOMM_OK);
  return each(run, first, last, announce);
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
    LCOMM_TRY(put_number(run, LCOMM_DEVICE_AWAIT, lcomm_tape_free_gate(run)));
    LCOMM_TRY(put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_start(run)));
    LCOMM_TRY(tell(run));
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
  if (!run->recording->has_messages) {
    return LCOMM_OK;
  }
  LCOMM_TRY(put_number(run, LCOMM_DEVICE_AWAIT, lcomm_tape_begun(run)));
  return tell(run);
}

static lcomm_status play(lcomm_run *run) {
  run->tape->told_count = run->tape->gate_count = 0;
  LCOMM_TRY(run->recording ? begin_replay(run) : LCOMM_OK);
  LCOMM_TRY(begin_lanes(run));
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    LCOMM_TRY(play_step(run, i));
  }
  LCOMM_TRY(turn_to(run, LCOMM_LANE_DECODE));
  LCOMM_TRY(follow(run, &run->tape->steps[run->plan->schedule.step_count]));
  LCOMM_TRY(run->recording ? end_lanes(run) : LCOMM_OK);
  LCOMM_TRY(lcomm_exec_stage_out(run));
  LCOMM_TRY(put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_end(run)));
  return tell(run);
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
