/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Numbers and gates of a tape: what groups of computations wait for and announce, in few calls. */

#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/gates.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/tape_internal.h"

static lcomm_status launched(lcomm_run *run, int error) {
  return lcomm_run_device_check(run, "a computation", error);
}

static lcomm_status tell_gates(lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  lcomm_tape *tape = run->tape;
  uint32_t count = tape->gate_count;
  tape->gate_count = 0;
  return count == 0
             ? LCOMM_OK
             : launched(run, device->table->stream.gates(device->stream, tape->gates, count));
}

lcomm_status lcomm_tape_tell(lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  lcomm_tape *tape = run->tape;
  uint32_t count = tape->told_count;
  tape->told_count = 0;
  tape->is_urgent = false;
  LCOMM_TRY(tell_gates(run));
  return count == 0
             ? LCOMM_OK
             : launched(run, device->table->stream.numbers(device->stream, tape->told, count));
}

/* What was put before is told before. */
static lcomm_status put_gate(lcomm_run *run, lcomm_device_number_task task, uint32_t step) {
  lcomm_tape *tape = run->tape;
  if (tape->told_count > 0 || tape->gate_count == LCOMM_TAPE_NUMBERS) {
    LCOMM_TRY(lcomm_tape_tell(run));
  }
  tape->gates[tape->gate_count++] = lcomm_gate_task(run->recording->gates, task, step);
  tape->is_urgent = true;
  return LCOMM_OK;
}

/* Behind gates a number is written as they are, in one call with them. */
static lcomm_status write_behind_gates(lcomm_run *run, uint32_t *place) {
  lcomm_tape *tape = run->tape;
  if (tape->gate_count == LCOMM_TAPE_NUMBERS) {
    LCOMM_TRY(lcomm_tape_tell(run));
  }
  tape->gates[tape->gate_count++] = lcomm_gate_number(run->recording->gates, place);
  return LCOMM_OK;
}

lcomm_status lcomm_tape_put_number(lcomm_run *run, lcomm_device_number_task task, uint32_t *place) {
  lcomm_tape *tape = run->tape;
  if (tape->gate_count > 0 && task == LCOMM_DEVICE_WRITE) {
    return write_behind_gates(run, place);
  }
  if (tape->gate_count > 0 || tape->told_count == LCOMM_TAPE_NUMBERS) {
    LCOMM_TRY(lcomm_tape_tell(run));
  }
  tape->told[tape->told_count++] =
      (lcomm_device_number){.task = task, .place = place, .number = tape->number};
  return LCOMM_OK;
}

lcomm_status lcomm_tape_each(lcomm_run *run, uint32_t first, uint32_t last,
                             lcomm_tape_member function) {
  lcomm_status status = LCOMM_OK;
  for (uint32_t i = first; i <= last && status == LCOMM_OK; i++) {
    if (!lcomm_step_is_message(&run->plan->schedule.steps[i])) {
      status = function(run, i);
    }
  }
  return status;
}

static const lcomm_gates *gates_of(const lcomm_run *run) {
  return run->recording ? run->recording->gates : NULL;
}

/* ------------------------------------------------------------------ awaiting */

static bool is_next(const lcomm_schedule *schedule, uint32_t index, uint32_t later) {
  const lcomm_step *step = &schedule->steps[index];
  bool found = false;
  for (uint32_t i = 0; i < step->next_count && !found; i++) {
    found = schedule->next[step->next_first + i] == later;
  }
  return found;
}

static bool awaits_gates(const lcomm_run *run, uint32_t index) {
  return gates_of(run) && lcomm_gates_are_all(gates_of(run), index);
}

/* Those of all messages that a computation waits for. */
static lcomm_status await_gates(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  bool awaits = run->tape->steps[index].awaits && awaits_gates(run, index);
  for (uint32_t i = 0; i < index && awaits; i++) {
    if (lcomm_step_is_message(&schedule->steps[i]) && is_next(schedule, i, index)) {
      LCOMM_TRY(put_gate(run, LCOMM_DEVICE_AWAIT, i));
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_tape_await_begun(lcomm_run *run) {
  const lcomm_recording *recording = run->recording;
  if (!recording || !recording->has_messages || run->tape->awaits_begun) {
    return LCOMM_OK;
  }
  run->tape->awaits_begun = true;
  return lcomm_tape_put_number(run, LCOMM_DEVICE_AWAIT, lcomm_tape_begun(run));
}

/* What the proxy writes it writes when it has begun a replay: the last lane, which is to know that,
 * hears it with the first of these. */
static lcomm_status await_go(lcomm_run *run, uint32_t index) {
  const lcomm_tape_step *it = &run->tape->steps[index];
  if (!it->awaits || awaits_gates(run, index)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(it->lane == LCOMM_LANE_DECODE ? lcomm_tape_await_begun(run) : LCOMM_OK);
  LCOMM_TRY(lcomm_tape_put_number(run, LCOMM_DEVICE_AWAIT, lcomm_tape_go(run, index)));
  run->tape->is_urgent = true;
  return LCOMM_OK;
}

/* A computation that waits for nothing delays nobody who only wants to know that something was
 * read. */
lcomm_status lcomm_tape_await(lcomm_run *run, uint32_t first, uint32_t last) {
  LCOMM_TRY(lcomm_tape_each(run, first, last, await_go));
  LCOMM_TRY(lcomm_tape_each(run, first, last, await_gates));
  return run->tape->is_urgent ? lcomm_tape_tell(run) : LCOMM_OK;
}

/* ---------------------------------------------------------------- announcing */

/* Those of messages that it was for, and nothing else. */
static lcomm_status open_gates(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  const lcomm_step *step = &schedule->steps[index];
  for (uint32_t i = 0; i < step->next_count && gates_of(run); i++) {
    uint32_t later = schedule->next[step->next_first + i];
    bool is_sent = schedule->steps[later].kind == LCOMM_STEP_SEND;
    LCOMM_TRY(is_sent && lcomm_gate_of(gates_of(run), later)
                  ? put_gate(run, LCOMM_DEVICE_WRITE, later)
                  : LCOMM_OK);
  }
  return LCOMM_OK;
}

static lcomm_status write_ready(lcomm_run *run, uint32_t index) {
  const lcomm_tape_step *it = &run->tape->steps[index];
  if (!it->announces) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_tape_put_number(run, LCOMM_DEVICE_WRITE, lcomm_tape_ready(run, index)));
  run->tape->is_urgent |= !it->only_read;
  return LCOMM_OK;
}

/* Lanes of peers wait for gates. */
lcomm_status lcomm_tape_announce(lcomm_run *run, uint32_t first, uint32_t last) {
  LCOMM_TRY(lcomm_tape_each(run, first, last, open_gates));
  return lcomm_tape_each(run, first, last, write_ready);
}
