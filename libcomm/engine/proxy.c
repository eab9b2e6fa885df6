/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The proxy: the executor's view of an operation whose computations are on a tape (tape.h). It
 * reads and writes numbers in pinned memory and calls nothing of the device. */

#include <string.h>

#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/gates.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"

/* Of payloads that have gates lanes have known it since they were captured. */
static void forget_places(const lcomm_run *run) {
  const lcomm_gates *gates = run->recording ? run->recording->gates : NULL;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    if (!gates || !lcomm_gates_from(gates, i)) {
      run->tape->from[i] = NULL;
    }
  }
}

static void start(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  lcomm_run_device_start(run);
  lcomm_share_begin(run);
  forget_places(run);
  tape->number += !run->recording; /* in a graph it is a constant */
  tape->work_count = 0;
  memset(tape->is_begun, 0, run->plan->schedule.step_count * sizeof *tape->is_begun);
  tape->is_closed = false;
  tape->in_flight = true;
  run->comm->runs.played++;
}

static void end(lcomm_run *run) {
  run->comm->runs.played -= run->tape->in_flight;
  run->comm->runs.device_works -= run->tape->is_closed;
  run->tape->in_flight = run->tape->is_closed = false;
}

void lcomm_tape_forget(lcomm_run *run) {
  end(run);
}

/* ----------------------------------------------------------------- numbers */

static void let_go(const lcomm_run *run, uint32_t step) {
  __atomic_store_n(lcomm_tape_go(run, step), run->tape->number, __ATOMIC_RELEASE);
}

static bool is_there(const lcomm_run *run, const uint32_t *number) {
  return (int32_t)(__atomic_load_n(number, __ATOMIC_ACQUIRE) - run->tape->number) >= 0;
}

/* ------------------------------------------------------------ computations */

static bool is_full(const lcomm_run *run) {
  (void)run;
  return false;
}

/* Where lanes fetch what a computation reads. */
static void place_payloads(const lcomm_run *run, uint32_t index) {
  const uint32_t *slots = NULL;
  uint32_t count =
      lcomm_exec_reads(&run->plan->schedule, &run->plan->schedule.steps[index], &slots);
  for (uint32_t i = 0; i < count; i++) {
    const lcomm_slot_memory *slot = slots[i] == LCOMM_SOURCE_SELF ? NULL : &run->slots[slots[i]];
    if (slot && lcomm_slot_is(slot, LCOMM_SLOT_FETCHED) && !run->tape->from[slots[i]]) {
      bool stays = slot->state == LCOMM_PAYLOAD_ON_PEER_DEVICE;
      run->tape->from[slots[i]] = stays ? run->device->slots[slots[i]].there : slot->payload;
    }
  }
}

static lcomm_status begin_computation(lcomm_run *run, const lcomm_computation *it) {
  lcomm_tape *tape = run->tape;
  place_payloads(run, it->step);
  if (tape->steps[it->step].awaits) {
    let_go(run, it->step);
  }
  tape->is_begun[it->step] = true;
  tape->works[tape->work_count++] = *it;
  run->comm->runs.device_works += tape->steps[it->step].announces;
  return LCOMM_OK;
}

/* Payloads that a lane has made, and brought to the host. */
static void take_payloads(lcomm_run *run, const lcomm_step *step) {
  for (uint32_t i = 0; step->kind == LCOMM_STEP_ENCODE && i < step->slot_count; i++) {
    lcomm_slot_memory *slot = &run->slots[step->slot + i];
    slot->payload_size = slot->capacity;
    if (run->device->share.stays[step->slot + i]) {
      lcomm_payload_exported(slot);
    } else {
      lcomm_payload_made(slot);
    }
  }
}

static lcomm_status pop(lcomm_run *run, lcomm_computation *it, bool *over) {
  lcomm_tape *tape = run->tape;
  *over = false;
  for (uint32_t i = 0; i < tape->work_count && !*over; i++) {
    uint32_t step = tape->works[i].step;
    bool announces = tape->steps[step].announces;
    if (!announces || is_there(run, lcomm_tape_ready(run, step))) {
      *over = true;
      *it = tape->works[i];
      tape->works[i] = tape->works[--tape->work_count];
      run->comm->runs.device_works -= announces;
      take_payloads(run, &run->plan->schedule.steps[step]);
    }
  }
  return LCOMM_OK;
}

/* Does a computation take its time that no lane has to wait with for a message? Lanes do what is
 * in them in program order, and wait for those before them only. */
static bool is_busy(const lcomm_run *run) {
  const lcomm_tape *tape = run->tape;
  lcomm_lane shut = LCOMM_LANE_COUNT; /* the first lane that waits for a message */
  bool busy = tape->is_closed;
  for (uint32_t i = 0; i < run->plan->schedule.step_count && !busy; i++) {
    const lcomm_tape_step *it = &tape->steps[i];
    if (it->awaits && !tape->is_begun[i]) {
      shut = it->lane < shut ? it->lane : shut;
    }
    busy = it->lane < shut && it->announces && tape->is_begun[i] &&
           !is_there(run, lcomm_tape_ready(run, i));
  }
  return busy;
}

/* ------------------------------------------------------------------ the end */

static lcomm_status close_queue(lcomm_run *run) {
  run->tape->is_closed = true;
  run->comm->runs.device_works++;
  return LCOMM_OK;
}

static lcomm_status poll_end(lcomm_run *run, bool *over) {
  *over = is_there(run, lcomm_tape_end(run));
  if (*over) {
    run->not_finite = *run->device->found_here;
    lcomm_share_end(run);
    end(run);
  }
  return LCOMM_OK;
}

/* Lanes wait for nothing any more; what is left in them means nothing. */
static void cancel(lcomm_run *run) {
  lcomm_tape *tape = run->tape;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    let_go(run, i);
  }
  for (uint32_t i = 0; i < tape->work_count; i++) {
    run->comm->runs.device_works -= tape->steps[tape->works[i].step].announces;
  }
  tape->work_count = 0;
  end(run);
}

/* A caller that uses the device has the device's turn, and gives up the communicator's. */
static int enter(const lcomm_run *run) {
  run->tape->given = lcomm_turn_give(run->comm);
  return lcomm_run_device_enter(run);
}

static void leave(const lcomm_run *run, int before) {
  lcomm_run_device_leave(run, before);
  lcomm_turn_take(run->comm, run->tape->given);
}

static int begin_round(const lcomm_run *run) {
  (void)run;
  return lcomm_device_bar();
}

static void end_round(const lcomm_run *run, int before) {
  (void)run;
  lcomm_device_unbar(before);
}

const lcomm_backend_queue lcomm_proxy_queue = {
    .start = start,
    .is_full = is_full,
    .is_busy = is_busy,
    .enter = enter,
    .leave = leave,
    .round_begin = begin_round,
    .round_end = end_round,
    .follow = lcomm_run_device_follow,
    .follow_event = lcomm_run_device_follow_event,
    .compute = begin_computation,
    .pop = pop,
    .close = close_queue,
    .poll_end = poll_end,
    .cancel = cancel,
};
