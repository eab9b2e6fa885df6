/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What happens to a bucket: its steps become ready, messages leave and arrive. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/exec.h"
#include "tools/simulation/simulate_engine_internal.h"

/* ------------------------------------------------------------------ memory */

static simulate_run *make_run(const simulate_program *program) {
  uint32_t count = program->step_count;
  size_t sets = simulate_bits_words(count), flags = simulate_bits_low(count);
  simulate_run *run = calloc(1, sizeof *run + (2 * sets + 2 * flags) * sizeof(uint64_t) +
                                    ((size_t)count + 1) * sizeof *run->waits);
  if (!run) {
    return NULL;
  }
  uint64_t *words = (uint64_t *)(void *)(run + 1);
  run->program = program;
  run->left = count;
  run->ready = simulate_bits_at(words, count);
  run->held = simulate_bits_at(words + sets, count);
  run->arrived = words + 2 * sets;
  run->asked = run->arrived + flags;
  run->waits = (uint16_t *)(void *)(run->asked + flags);
  for (uint32_t i = 0; i < count; i++) {
    run->waits[i] = program->steps[i].waits_for;
  }
  return run;
}

simulate_run *simulate_run_of(simulate_engine *engine, uint32_t rank, uint32_t id) {
  simulate_run **run = &engine->ranks[rank].runs[id];
  if (!*run) {
    *run = make_run(simulate_world_program(engine->world, simulate_bucket_of(engine, id), rank));
    engine->broken |= !*run;
  }
  return *run;
}

void simulate_run_free(simulate_run *run) {
  free(run);
}

/* -------------------------------------------------------------------- end */

static void end_run(simulate_engine *engine, uint32_t rank, uint32_t id) {
  simulate_rank *it = &engine->ranks[rank];
  if (engine->timeline) {
    simulate_timeline_operation(engine->timeline, rank, id, it->runs[id]->program->data_size,
                                it->runs[id]->begun, engine->now);
  }
  simulate_engine_note(engine, rank);
  it->buckets_over++;
  it->buckets_active--;
  simulate_run_free(it->runs[id]);
  it->runs[id] = NULL;
  simulate_engine_begin(engine, rank);
  simulate_engine_look(engine, rank);
}

static void look_for_end(simulate_engine *engine, uint32_t rank, uint32_t id) {
  simulate_run *run = engine->ranks[rank].runs[id];
  if (run->phase != SIMULATE_STEPS || run->left > 0) {
    return;
  }
  if (run->program->stage_out.memory == 0) {
    end_run(engine, rank, id);
    return;
  }
  run->phase = SIMULATE_STORES;
  simulate_agent_queue(engine, rank, id);
}

/* ------------------------------------------------------------------ steps */

static const simulate_link *link_of(const simulate_engine *engine, const simulate_step *step) {
  return &engine->settings->links[step->link];
}

/* The time of a processor before a message leaves. */
static simulate_time posting(const simulate_engine *engine, const simulate_step *step) {
  return simulate_handling_of(link_of(engine, step), step->work).first;
}

/* Longer messages wait until the receiver has answered, between two of its computations. */
static void leave(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index) {
  const simulate_step *step = &engine->ranks[rank].runs[id]->program->steps[index];
  const simulate_link *link = link_of(engine, step);
  bool asks = link->rendezvous_size > 0 && step->work > link->rendezvous_size;
  if (asks && link->latency > 0) {
    simulate_engine_push(engine, SIMULATE_ASKS, engine->now + link->latency, step->partner, id,
                         step->partner_step, 0);
    return;
  }
  simulate_message_post(engine, rank, id, index);
}

/* A message may go, or is one too many. */
static bool may_go(simulate_run *run, uint32_t index) {
  if (!run->program->steps[index].is_paced) {
    return true;
  }
  if (run->net_sends >= LCOMM_NET_SENDS_MAX) {
    simulate_bits_add(&run->held, index);
    return false;
  }
  run->net_sends++;
  return true;
}

static bool take_flag(uint64_t *flags, uint32_t index) {
  uint64_t bit = UINT64_C(1) << (index % 64);
  bool was = flags[index / 64] & bit;
  flags[index / 64] &= ~bit;
  return was;
}

static void finish_later(simulate_engine *engine, uint32_t index) {
  engine->broken |= !simulate_fifo_push(&engine->finishing, index);
}

/* The sender of a long message hears that it may come. */
static void answer(simulate_engine *engine, const simulate_step *step, uint32_t id) {
  simulate_engine_push(engine, SIMULATE_ANSWERED, engine->now + link_of(engine, step)->latency,
                       step->partner, id, step->partner_step, 0);
}

/* What takes no time is over at once, what takes a processor waits for it. */
static void make_ready(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index) {
  simulate_run *run = engine->ranks[rank].runs[id];
  const simulate_step *step = &run->program->steps[index];
  if (step->kind == LCOMM_STEP_RECV) {
    if (take_flag(run->arrived, index)) {
      finish_later(engine, index);
    } else if (take_flag(run->asked, index)) {
      answer(engine, step, id);
    }
    return;
  }
  if (step->kind == LCOMM_STEP_SEND && posting(engine, step) == 0) {
    if (may_go(run, index)) {
      leave(engine, rank, id, index);
    }
    return;
  }
  if (step->kind != LCOMM_STEP_SEND && step->work == 0) {
    finish_later(engine, index);
    return;
  }
  simulate_bits_add(&run->ready, index);
  simulate_agent_queue(engine, rank, id);
}

/* Steps that are over, and those that are over at once because of them. */
static void finish_all(simulate_engine *engine, uint32_t rank, uint32_t id) {
  simulate_run *run = engine->ranks[rank].runs[id];
  uint32_t index;
  while (simulate_fifo_pop(&engine->finishing, &index)) {
    const simulate_step *step = &run->program->steps[index];
    run->left--;
    for (uint32_t i = 0; i < step->next_count; i++) {
      uint32_t later = run->program->next[step->next_first + i];
      if (--run->waits[later] == 0) {
        make_ready(engine, rank, id, later);
      }
    }
  }
  look_for_end(engine, rank, id);
}

static void finish(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index) {
  finish_later(engine, index);
  finish_all(engine, rank, id);
}

static void begin_steps(simulate_engine *engine, uint32_t rank, uint32_t id) {
  simulate_run *run = engine->ranks[rank].runs[id];
  run->phase = SIMULATE_STEPS;
  for (uint32_t i = 0; i < run->program->step_count; i++) {
    if (run->program->steps[i].waits_for == 0) {
      make_ready(engine, rank, id, i);
    }
  }
  finish_all(engine, rank, id);
}

void simulate_run_begin(simulate_engine *engine, uint32_t rank, uint32_t id) {
  simulate_run *run = simulate_run_of(engine, rank, id);
  if (!run) {
    return;
  }
  simulate_engine_note(engine, rank);
  engine->ranks[rank].buckets_active++;
  run->begun = engine->now;
  run->phase = SIMULATE_LOADS;
  if (run->program->stage_in.memory == 0) {
    begin_steps(engine, rank, id);
  } else {
    simulate_agent_queue(engine, rank, id);
  }
}

bool simulate_run_take(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t *step,
                       simulate_time *work) {
  simulate_run *run = engine->ranks[rank].runs[id];
  while (run->ready.count > 0) {
    uint32_t index = simulate_bits_take(&run->ready);
    const simulate_step *it = &run->program->steps[index];
    if (it->kind != LCOMM_STEP_SEND || may_go(run, index)) {
      *step = index;
      *work = it->kind == LCOMM_STEP_SEND ? posting(engine, it)
                                          : simulate_touch_step(engine, rank, id, it);
      return true;
    }
  }
  return false;
}

void simulate_run_worked(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step) {
  const simulate_run *run = engine->ranks[rank].runs[id];
  if (run->program->steps[step].kind == LCOMM_STEP_SEND) {
    leave(engine, rank, id, step);
  } else {
    finish(engine, rank, id, step);
  }
}

void simulate_run_copied(simulate_engine *engine, uint32_t rank, uint32_t id) {
  if (engine->ranks[rank].runs[id]->phase == SIMULATE_LOADS) {
    begin_steps(engine, rank, id);
  } else {
    end_run(engine, rank, id);
  }
}

/* --------------------------------------------------------------- messages */

/* Inside a node each rank has a port of each class, between nodes it shares a card. */
static simulate_port *port_of(simulate_engine *engine, uint32_t rank, uint32_t link) {
  const lcomm_topo *topo = engine->world->topo;
  int cards = engine->settings->cards;
  return link == LCOMM_LINK_NET
             ? &engine->cards[topo->node[rank] * cards + topo->local[rank] % cards]
             : &engine->ranks[rank].ports[link];
}

static void spend(simulate_engine *engine, uint32_t rank, simulate_time work) {
  if (work > 0) {
    simulate_agent_chore(engine, rank,
                         (simulate_chore){work, SIMULATE_NONE, SIMULATE_NONE, SIMULATE_SPEND});
  }
}

/* A message about a message. */
static void handle_control(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index,
                           simulate_task_kind task) {
  const simulate_step *step = &engine->ranks[rank].runs[id]->program->steps[index];
  simulate_time work = simulate_handling_of(link_of(engine, step), 0).first;
  simulate_agent_chore(engine, rank, (simulate_chore){work, id, index, task});
}

void simulate_message_asks(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index) {
  if (simulate_run_of(engine, rank, id)) {
    handle_control(engine, rank, id, index, SIMULATE_ANSWER);
  }
}

/* Memory for what is received has to be there: the step is ready. */
void simulate_message_answer(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index) {
  simulate_run *run = engine->ranks[rank].runs[id];
  if (run->phase == SIMULATE_STEPS && run->waits[index] == 0) {
    answer(engine, &run->program->steps[index], id);
  } else {
    run->asked[index / 64] |= UINT64_C(1) << (index % 64);
  }
}

void simulate_message_answered(simulate_engine *engine, uint32_t rank, uint32_t id,
                               uint32_t index) {
  handle_control(engine, rank, id, index, SIMULATE_GO);
}

void simulate_message_post(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index) {
  const simulate_step *step = &engine->ranks[rank].runs[id]->program->steps[index];
  const simulate_link *link = link_of(engine, step);
  simulate_departure departure =
      simulate_port_send(port_of(engine, rank, step->link),
                         simulate_joint(engine, rank, step->link), step->work, engine->now);
  engine->ranks[rank].messages++;
  engine->node_bytes += step->link == LCOMM_LINK_NET ? step->work : 0;
  simulate_engine_push(engine, SIMULATE_SENT, departure.last, rank, id, index, step->work);
  simulate_engine_push(engine, SIMULATE_ARRIVES, departure.first + link->latency, step->partner, id,
                       step->partner_step, step->work);
  if (engine->timeline) {
    simulate_timeline_message(engine->timeline, rank, id, index, step, engine->now, departure.last);
  }
  spend(engine, rank, simulate_handling_of(link, step->work).rest);
}

void simulate_message_sent(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index) {
  simulate_run *run = engine->ranks[rank].runs[id];
  if (run->program->steps[index].is_paced) {
    run->net_sends--;
    if (run->held.count > 0) {
      make_ready(engine, rank, id, simulate_bits_take(&run->held));
    }
  }
  finish(engine, rank, id, index);
}

void simulate_message_arrives(simulate_engine *engine, const simulate_event *event) {
  simulate_run *run = simulate_run_of(engine, event->rank, event->run);
  if (!run) {
    return;
  }
  const simulate_step *step = &run->program->steps[event->step];
  const simulate_link *link = link_of(engine, step);
  simulate_time last = simulate_port_receive(port_of(engine, event->rank, step->link),
                                             simulate_joint(engine, event->rank, step->link),
                                             event->size, engine->now);
  if (engine->timeline) {
    simulate_timeline_message(engine->timeline, event->rank, event->run, event->step, step,
                              engine->now, last);
  }
  simulate_engine_push(engine, SIMULATE_RECEIVED, last, event->rank, event->run, event->step,
                       event->size);
  spend(engine, event->rank, simulate_handling_of(link, event->size).rest);
}

void simulate_message_received(simulate_engine *engine, uint32_t rank, uint32_t id,
                               uint32_t index) {
  const simulate_step *step = &engine->ranks[rank].runs[id]->program->steps[index];
  simulate_time work = posting(engine, step);
  if (work > 0) {
    simulate_agent_chore(engine, rank, (simulate_chore){work, id, index, SIMULATE_TAKE});
  } else {
    simulate_message_taken(engine, rank, id, index);
  }
}

void simulate_message_taken(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t index) {
  simulate_run *run = engine->ranks[rank].runs[id];
  if (run->phase == SIMULATE_STEPS && run->waits[index] == 0) {
    finish(engine, rank, id, index);
  } else {
    run->arrived[index / 64] |= UINT64_C(1) << (index % 64);
  }
}
