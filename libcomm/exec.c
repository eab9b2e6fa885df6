/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The executor: which step is next. */

#include "libcomm/exec.h"

static void make_ready(lcomm_run *run, uint32_t step) {
  run->ready[step / 64] |= UINT64_C(1) << (step % 64);
  run->ready_first = step < run->ready_first ? step : run->ready_first;
}

void lcomm_run_start(lcomm_run *run, float *vector, float factor, uint32_t sequence) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  run->vector = vector;
  run->factor = factor;
  run->sequence = sequence;
  run->left = schedule->step_count;
  run->message_count = 0;
  run->net_sends = run->held_count = 0;
  run->ready_first = schedule->step_count;
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    run->slots[i].encoded = false;
    if (run->slots[i].shares_vector) {
      run->slots[i].payload = (uint8_t *)(vector + schedule->slots[i].alias.first);
      run->slots[i].wire = run->slots[i].payload;
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    run->waiting[i] = schedule->steps[i].waits_for;
    if (run->waiting[i] == 0) {
      make_ready(run, i);
    }
  }
}

static void finish_step(lcomm_run *run, uint32_t index) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  const lcomm_step *step = &schedule->steps[index];
  run->left--;
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t later = schedule->next[step->next_first + i];
    if (--run->waiting[later] == 0) {
      make_ready(run, later);
    }
  }
}

/* The first ready step at or after ready_first; step_count if none. */
static uint32_t next_ready(lcomm_run *run) {
  uint32_t steps = run->plan->schedule.step_count;
  uint32_t word = run->ready_first / 64;
  for (; word <= steps / 64; word++) {
    if (run->ready[word]) {
      run->ready_first = word * 64 + (uint32_t)__builtin_ctzll(run->ready[word]);
      return run->ready_first;
    }
  }
  run->ready_first = steps;
  return steps;
}

static bool is_message(const lcomm_run *run, uint32_t step) {
  lcomm_step_kind kind = run->plan->schedule.steps[step].kind;
  return kind == LCOMM_STEP_SEND || kind == LCOMM_STEP_RECV;
}

/* A long message between nodes, one of the few that may be under way. */
static bool is_paced(const lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return step->kind == LCOMM_STEP_SEND && run->plan->slot_bounds[step->slot] > LCOMM_INLINE_SIZE &&
         lcomm_topo_link(&run->comm->topo, run->comm->rank, step->peer) == LCOMM_LINK_NET;
}

static void hold(lcomm_run *run, uint32_t step) {
  run->held[step / 64] |= UINT64_C(1) << (step % 64);
  run->held_count++;
}

/* A paced message is over: the first one that was held may go. */
static void release_held(lcomm_run *run) {
  run->net_sends--;
  for (uint32_t word = 0; run->held_count > 0; word++) {
    if (run->held[word]) {
      uint32_t step = word * 64 + (uint32_t)__builtin_ctzll(run->held[word]);
      run->held[word] &= run->held[word] - 1;
      run->held_count--;
      make_ready(run, step);
      return;
    }
  }
}

/* Post messages and stop after one computation, so that the wire is looked
 * after between any two of them. */
static lcomm_status start_ready_steps(lcomm_run *run, bool *moved) {
  for (uint32_t step = next_ready(run); step < run->plan->schedule.step_count;
       step = next_ready(run)) {
    run->ready[step / 64] &= ~(UINT64_C(1) << (step % 64));
    *moved = true;
    if (!is_message(run, step)) {
      lcomm_status status = lcomm_exec_compute(run, step);
      if (status == LCOMM_OK) {
        finish_step(run, step);
      }
      return status;
    }
    bool paced = is_paced(run, step);
    if (paced && run->net_sends >= LCOMM_NET_SENDS_MAX) {
      hold(run, step);
      continue;
    }
    run->net_sends += paced;
    lcomm_message *message = &run->messages[run->message_count];
    lcomm_status status = lcomm_exec_post(run, step, message);
    if (status != LCOMM_OK) {
      return status;
    }
    run->message_count++;
  }
  return LCOMM_OK;
}

lcomm_status lcomm_run_progress(lcomm_run *run, bool *moved) {
  for (uint32_t i = 0; i < run->message_count;) {
    bool over = false;
    lcomm_status status = lcomm_exec_poll(run, &run->messages[i], &over);
    if (status != LCOMM_OK) {
      return status;
    }
    if (!over) {
      i++;
      continue;
    }
    *moved = true;
    if (is_paced(run, run->messages[i].step)) {
      release_held(run);
    }
    finish_step(run, run->messages[i].step);
    run->messages[i] = run->messages[--run->message_count];
  }
  return start_ready_steps(run, moved);
}

void lcomm_run_cancel(lcomm_run *run) {
  const lcomm_transport_table *wire = run->comm->transport->table;
  for (uint32_t i = 0; i < run->message_count; i++) {
    lcomm_message *message = &run->messages[i];
    run->abandoned |= run->plan->schedule.steps[message->step].kind == LCOMM_STEP_SEND;
    if (!message->first_over) {
      wire->cancel(run->comm->transport, &message->first);
    }
    if (message->payload_under_way) {
      wire->cancel(run->comm->transport, &message->payload);
    }
  }
  run->message_count = 0;
}

int lcomm_run_awaited(const lcomm_run *run, uint32_t *step, bool *receiving) {
  int peer = -1;
  *receiving = false;
  for (uint32_t i = 0; i < run->message_count; i++) {
    const lcomm_step *it = &run->plan->schedule.steps[run->messages[i].step];
    bool receives = it->kind == LCOMM_STEP_RECV;
    if (peer < 0 || (receives && !*receiving)) {
      peer = it->peer;
      *step = run->messages[i].step;
      *receiving = receives;
    }
  }
  return peer;
}
