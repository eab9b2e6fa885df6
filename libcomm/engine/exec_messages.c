/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The messages of a run that are in flight: posted, looked at when they are due, over.
 *
 * A transport names the messages that are worth a look (transport/completion.h), so looks grow
 * with messages, and not with messages times rounds. Each message is looked at once after it was
 * posted; those of a transport that names none, in every round. */

#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/operation.h"
#include "libcomm/transport/completion.h"

/* ------------------------------------------------------------------ posting */

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
      lcomm_exec_make_ready(run, step);
      return;
    }
  }
}

static void make_due(lcomm_message *message) {
  lcomm_run_messages *messages = &message->run->messages;
  if (!message->due) {
    message->due = true;
    messages->due[messages->due_count++] = message->step;
  }
}

static lcomm_status post(lcomm_run *run, uint32_t step, bool paced) {
  lcomm_message *message = &run->messages.of_step[step];
  run->steps.net_sends += paced;
  if (run->messages.count == 0) {
    run->messages.since_s = lcomm_clock_s();
  }
  LCOMM_TRY(lcomm_exec_post(run, step, message));
  message->place = run->messages.count;
  run->messages.in_flight[run->messages.count++] = step;
  message->due = false;
  make_due(message);
  return LCOMM_OK;
}

lcomm_status lcomm_exec_start_message(lcomm_run *run, uint32_t step) {
  bool paced = is_paced(run, step);
  if (paced && run->steps.net_sends >= LCOMM_NET_SENDS_MAX) {
    throttle(run, step);
    return LCOMM_OK;
  }
  return post(run, step, paced);
}

/* ------------------------------------------------------------------ looking */

/* A message is over: what waited for it may run. */
static void end_message(lcomm_run *run, uint32_t step) {
  lcomm_run_messages *messages = &run->messages;
  uint32_t place = messages->of_step[step].place, last = messages->in_flight[--messages->count];
  messages->in_flight[place] = last;
  messages->of_step[last].place = place;
  if (messages->count == 0) {
    run->stats.wire_s += lcomm_clock_s() - messages->since_s;
  }
  if (is_paced(run, step)) {
    release_throttled(run);
  }
  if (run->comm->observers.trace) {
    lcomm_exec_trace_message(run, &messages->of_step[step]);
  }
  lcomm_exec_release(run, &run->plan->schedule.steps[step]);
  lcomm_exec_finish_step(run, step);
}

/* Will its transport say when it is worth the next look? */
static bool is_watched(const lcomm_run *run, uint32_t step) {
  return lcomm_comm_link(run->comm, run->plan->schedule.steps[step].peer)->table->watch;
}

lcomm_status lcomm_run_poll(lcomm_run *run, bool *moved) {
  lcomm_run_messages *messages = &run->messages;
  uint32_t left = 0;
  for (uint32_t i = 0; i < messages->due_count; i++) {
    bool over = false;
    uint32_t step = messages->due[i];
    lcomm_message *message = &messages->of_step[step];
    LCOMM_TRY(lcomm_exec_poll(run, message, moved, &over));
    message->due = !over && !is_watched(run, step);
    if (message->due) {
      messages->due[left++] = step;
    }
    if (over) {
      *moved = true;
      end_message(run, step);
    }
  }
  messages->due_count = left;
  return LCOMM_OK;
}

void lcomm_run_make_all_due(lcomm_run *run) {
  for (uint32_t i = 0; i < run->messages.count; i++) {
    make_due(&run->messages.of_step[run->messages.in_flight[i]]);
  }
}

void lcomm_messages_make_due(lcomm_comm *comm) {
  uint32_t alarms = 0;
  for (int i = 0; i < comm->links.count; i++) {
    lcomm_transport *transport = comm->links.open[i];
    alarms += transport->alarms;
    for (lcomm_message *it = lcomm_completion_pop(transport); it;
         it = lcomm_completion_pop(transport)) {
      make_due(it);
    }
  }
  if (alarms == comm->waiting.alarms_seen) {
    return;
  }
  comm->waiting.alarms_seen = alarms;
  for (lcomm_operation *it = comm->operations.first; it; it = it->next) {
    lcomm_run_make_all_due(it->run);
  }
}

/* ------------------------------------------------------------ what is left */

void lcomm_run_cancel(lcomm_run *run) {
  for (uint32_t i = 0; i < run->messages.count; i++) {
    lcomm_message *message = &run->messages.of_step[run->messages.in_flight[i]];
    if (run->comm->observers.trace) {
      lcomm_exec_trace_message(run, message);
    }
    const lcomm_step *step = &run->plan->schedule.steps[message->step];
    lcomm_transport *link = lcomm_comm_link(run->comm, step->peer);
    lcomm_slot_memory *slot = &run->slots[step->slot];
    run->messages.abandoned |= step->kind == LCOMM_STEP_SEND || !run->device;
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
  run->messages.count = run->messages.due_count = 0;
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
