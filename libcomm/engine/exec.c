/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The executor: which step is next. */

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/operation.h"

static void make_ready(lcomm_run *run, uint32_t step) {
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
  run->messages.count = 0;
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
      make_ready(run, i);
    }
  }
}

static void finish_step(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  const lcomm_step *step = &schedule->steps[index];
  run->steps.left--;
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t later = schedule->next[step->next_first + i];
    if (--run->steps.waiting[later] == 0) {
      make_ready(run, later);
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

/* A long message between nodes, one of the few that may be in flight. One that
 * is read where it lies is not over before all sources of a sum are there, so
 * it waits for no turn. */
static bool is_paced(const lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  const lcomm_topo *topo = &run->comm->topo;
  return step->kind == LCOMM_STEP_SEND &&
         run->plan->slot_sizes[step->slot].bound > LCOMM_INLINE_SIZE &&
         !lcomm_comm_link(run->comm, step->peer)->table->zero_copy &&
         topo->node[run->comm->rank] != topo->node[step->peer];
}

static void throttle(lcomm_run *run, uint32_t step) {
  run->steps.throttled[step / 64] |= UINT64_C(1) << (step % 64);
  run->steps.throttled_count++;
}

/* A paced message is over: the first one that was throttled may go. */
static void release_throttled(lcomm_run *run) {
  run->steps.net_sends--;
  for (uint32_t word = 0; run->steps.throttled_count > 0; word++) {
    if (run->steps.throttled[word]) {
      uint32_t step = word * 64 + (uint32_t)__builtin_ctzll(run->steps.throttled[word]);
      run->steps.throttled[word] &= run->steps.throttled[word] - 1;
      run->steps.throttled_count--;
      make_ready(run, step);
      return;
    }
  }
}

bool lcomm_run_over(const lcomm_run *run) {
  return run->phase == LCOMM_RUN_OVER;
}

static lcomm_status post(lcomm_run *run, uint32_t step, bool paced) {
  lcomm_message *message = &run->messages.of_step[step];
  run->steps.net_sends += paced;
  if (run->messages.count == 0) {
    run->messages.since_s = lcomm_clock_s();
  }
  LCOMM_TRY(lcomm_exec_post(run, step, message));
  run->messages.in_flight[run->messages.count++] = step;
  return LCOMM_OK;
}

static lcomm_status end_computation(lcomm_run *run, lcomm_computation *it) {
  bool over = false;
  LCOMM_TRY(lcomm_exec_end_compute(run, it, &over));
  if (!over) { /* as nothing is that does not go through a queue */
    it->is_fetched = true;
    return run->backend->queue->push(run, it);
  }
  finish_step(run, it->step);
  return LCOMM_OK;
}

static lcomm_status compute(lcomm_run *run, uint32_t step) {
  const lcomm_backend_queue *queue = run->backend->queue;
  lcomm_computation it = {.step = step, .begun_s = lcomm_clock_s()};
  if (queue) {
    return queue->compute(run, &it);
  }
  LCOMM_TRY(lcomm_exec_compute(run, step));
  return end_computation(run, &it);
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
    bool paced = is_paced(run, step);
    if (paced && run->steps.net_sends >= LCOMM_NET_SENDS_MAX) {
      throttle(run, step);
      continue;
    }
    LCOMM_TRY(post(run, step, paced));
  }
  return LCOMM_OK;
}

/* A message is over: what waited for it may run. */
static void end_message(lcomm_run *run, uint32_t place) {
  uint32_t step = run->messages.in_flight[place];
  run->messages.in_flight[place] = run->messages.in_flight[--run->messages.count];
  if (run->messages.count == 0) {
    run->stats.wire_s += lcomm_clock_s() - run->messages.since_s;
  }
  if (is_paced(run, step)) {
    release_throttled(run);
  }
  if (run->comm->trace) {
    lcomm_exec_trace_message(run, &run->messages.of_step[step]);
  }
  lcomm_exec_release(run, &run->plan->schedule.steps[step]);
  finish_step(run, step);
}

lcomm_status lcomm_run_poll(lcomm_run *run, bool *moved) {
  for (uint32_t i = 0; i < run->messages.count;) {
    bool over = false;
    LCOMM_TRY(
        lcomm_exec_poll(run, &run->messages.of_step[run->messages.in_flight[i]], moved, &over));
    if (over) {
      *moved = true;
      end_message(run, i);
    } else {
      i++;
    }
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
    LCOMM_TRY(end_computation(run, &it));
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

void lcomm_run_cancel(lcomm_run *run) {
  for (uint32_t i = 0; i < run->messages.count; i++) {
    lcomm_message *message = &run->messages.of_step[run->messages.in_flight[i]];
    if (run->comm->trace) {
      lcomm_exec_trace_message(run, message);
    }
    const lcomm_step *step = &run->plan->schedule.steps[message->step];
    lcomm_transport *link = lcomm_comm_link(run->comm, step->peer);
    lcomm_slot_memory *slot = &run->slots[step->slot];
    run->messages.abandoned |= step->kind == LCOMM_STEP_SEND;
    if (!message->first_over) {
      link->table->cancel(link, lcomm_exec_first(run, message));
    }
    if (message->payload_under_way) {
      if (step->kind == LCOMM_STEP_RECV && lcomm_payload_is_zcopy(slot)) {
        lcomm_payload_cancel(slot);
      } else {
        link->table->cancel(link, &message->payload);
      }
    }
  }
  run->messages.count = 0;
  if (run->backend->queue) {
    run->backend->queue->cancel(run);
  }
  lcomm_exec_release_all(run);
}

static uint32_t add_awaited(lcomm_awaited *list, uint32_t count, uint32_t most, int rank,
                            uint32_t step) {
  for (uint32_t i = 0; i < count; i++) {
    if (list[i].rank == rank) {
      return count;
    }
  }
  if (count < most) {
    list[count++] = (lcomm_awaited){.rank = rank, .step = step};
  }
  return count;
}

uint32_t lcomm_run_awaits(const lcomm_run *run, lcomm_awaited *list, uint32_t most) {
  static const lcomm_step_kind order[] = {LCOMM_STEP_RECV, LCOMM_STEP_SEND};
  uint32_t count = run->flow.held_by >= 0 ? add_awaited(list, 0, most, run->flow.held_by, 0) : 0;
  for (int kind = 0; kind < 2; kind++) {
    for (uint32_t i = 0; i < run->messages.count; i++) {
      const lcomm_step *it = &run->plan->schedule.steps[run->messages.in_flight[i]];
      if (it->kind == order[kind]) {
        count = add_awaited(list, count, most, it->peer, run->messages.in_flight[i]);
      }
    }
  }
  return count;
}
