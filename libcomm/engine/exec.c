/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The executor: which step is next. */

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/operation.h"

void lcomm_exec_make_ready(lcomm_run *run, uint32_t step) {
  run->steps.ready[step / 64] |= UINT64_C(1) << (step % 64);
  run->steps.ready_first = step < run->steps.ready_first ? step : run->steps.ready_first;
}

/* An alias is a part of this operation's vector. */
static void place_slot(lcomm_run *run, uint32_t index) {
  lcomm_slot_memory *slot = &run->slots[index];
  bool alias = lcomm_slot_is(slot, LCOMM_SLOT_ALIAS);
  lcomm_payload_reset(slot, alias ? lcomm_run_at(run, run->plan->schedule.slots[index].alias.first)
                                  : NULL);
}

void lcomm_run_start(lcomm_run *run, const lcomm_operation_data *data, uint32_t sequence) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  run->data = *data;
  run->factor = lcomm_exec_factor(run->comm, data->op, data->after);
  run->sequence = sequence;
  lcomm_run_key(run, data);
  memset(&run->stats, 0, sizeof(run->stats));
  run->not_finite = 0;
  run->phase = LCOMM_RUN_STEPS;
  run->steps.left = schedule->step_count;
  run->messages.count = run->messages.due_count = 0;
  run->steps.net_sends = run->steps.throttled_count = 0;
  run->steps.ready_first = schedule->step_count;
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    place_slot(run, i);
  }
  if (run->backend->queue) {
    run->backend->queue->start(run);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    run->steps.waiting[i] = schedule->steps[i].waits_for;
    if (run->steps.waiting[i] == 0) {
      lcomm_exec_make_ready(run, i);
    }
  }
}

void lcomm_exec_finish_step(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  const lcomm_step *step = &schedule->steps[index];
  run->steps.left--;
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t later = schedule->next[step->next_first + i];
    if (--run->steps.waiting[later] == 0) {
      lcomm_exec_make_ready(run, later);
    }
  }
}

/* The first ready step at or after ready_first; step_count if none. */
static uint32_t next_ready(lcomm_run *run) {
  uint32_t steps = run->plan->schedule.step_count;
  uint32_t word = run->steps.ready_first / 64;
  for (; word <= steps / 64; word++) {
    if (run->steps.ready[word]) {
      run->steps.ready_first = word * 64 + (uint32_t)__builtin_ctzll(run->steps.ready[word]);
      return run->steps.ready_first;
    }
  }
  run->steps.ready_first = steps;
  return steps;
}

static bool is_message(const lcomm_run *run, uint32_t step) {
  return lcomm_step_is_message(&run->plan->schedule.steps[step]);
}

bool lcomm_run_over(const lcomm_run *run) {
  return run->phase == LCOMM_RUN_OVER;
}

static void end_computation(lcomm_run *run, const lcomm_computation *it) {
  lcomm_exec_end_compute(run, it);
  lcomm_exec_finish_step(run, it->step);
}

static lcomm_status compute(lcomm_run *run, uint32_t step) {
  const lcomm_backend_queue *queue = run->backend->queue;
  lcomm_computation it = {.step = step, .begun_s = lcomm_clock_s()};
  if (queue) {
    return queue->compute(run, &it);
  }
  LCOMM_TRY(lcomm_exec_compute(run, step));
  end_computation(run, &it);
  return LCOMM_OK;
}

/* Post messages and stop after one computation, so that the wire is looked
 * after between any two of them. */
static lcomm_status start_ready_steps(lcomm_run *run, bool *moved) {
  const lcomm_backend_queue *queue = run->backend->queue;
  for (uint32_t step = next_ready(run); step < run->plan->schedule.step_count;
       step = next_ready(run)) {
    if (queue && !is_message(run, step) && queue->is_full(run)) {
      return LCOMM_OK;
    }
    run->steps.ready[step / 64] &= ~(UINT64_C(1) << (step % 64));
    *moved = true;
    if (!is_message(run, step)) {
      return compute(run, step);
    }
    LCOMM_TRY(lcomm_exec_start_message(run, step));
  }
  return LCOMM_OK;
}

/* Computations of the queue that are over. */
static lcomm_status poll_queue(lcomm_run *run, bool *moved) {
  const lcomm_backend_queue *queue = run->backend->queue;
  lcomm_computation it;
  bool over = false;
  LCOMM_TRY(queue->pop(run, &it, &over));
  while (over) {
    *moved = true;
    end_computation(run, &it);
    LCOMM_TRY(queue->pop(run, &it, &over));
  }
  return LCOMM_OK;
}

/* A computation does not take its time here: all that are ready are put into the queue, and those
 * that follow one that is over at once. */
static lcomm_status progress_queue(lcomm_run *run, bool *moved) {
  bool here = true;
  while (here) {
    here = false;
    LCOMM_TRY(poll_queue(run, &here));
    LCOMM_TRY(start_ready_steps(run, &here));
    *moved |= here;
  }
  return LCOMM_OK;
}

/* All steps are over: bring the result to where it is wanted, and see whether it is there. */
static lcomm_status stage_out(lcomm_run *run, bool *moved) {
  const lcomm_backend_queue *queue = run->backend->queue;
  bool over = true;
  if (run->phase == LCOMM_RUN_STEPS) {
    LCOMM_TRY(queue ? queue->close(run) : lcomm_exec_stage_out(run));
    run->phase = LCOMM_RUN_ENDING;
    *moved = true;
  }
  LCOMM_TRY(queue ? queue->poll_end(run, &over) : LCOMM_OK);
  if (over) {
    run->phase = LCOMM_RUN_OVER;
    *moved = true;
  }
  return LCOMM_OK;
}

static lcomm_status progress(lcomm_run *run, bool *moved) {
  LCOMM_TRY(run->backend->queue ? progress_queue(run, moved) : start_ready_steps(run, moved));
  return run->steps.left == 0 ? stage_out(run, moved) : LCOMM_OK;
}

lcomm_status lcomm_run_progress(lcomm_run *run, bool *moved) {
  const lcomm_backend_queue *queue = run->backend->queue;
  LCOMM_TRY(lcomm_run_poll(run, moved));
  int before = queue ? queue->round_begin(run) : 0;
  uint32_t environment = lcomm_fp_enter();
  lcomm_status status = progress(run, moved);
  lcomm_fp_leave(environment);
  if (queue) {
    queue->round_end(run, before);
  }
  return status;
}
