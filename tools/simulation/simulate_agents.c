/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What processors do: for messages, for buckets in turn, and for the backward pass. */

#include <stdlib.h>

#include "tools/simulation/simulate_engine_internal.h"

/* What an operating system lets a thread compute before another one has its turn. */
#define SLICE (SIMULATE_SECOND / 1000)

/* ------------------------------------------------------------------ inbox */

static bool push(simulate_inbox *inbox, simulate_chore chore) {
  if (inbox->count == inbox->room) {
    uint32_t room = inbox->room > 0 ? 2 * inbox->room : 64;
    simulate_chore *items = malloc(room * sizeof *items);
    if (!items) {
      return false;
    }
    for (uint32_t i = 0; i < inbox->count; i++) {
      items[i] = inbox->items[(inbox->first + i) % inbox->room];
    }
    free(inbox->items);
    *inbox = (simulate_inbox){items, 0, inbox->count, room};
  }
  inbox->items[(inbox->first + inbox->count++) % inbox->room] = chore;
  return true;
}

static simulate_chore pop(simulate_inbox *inbox) {
  simulate_chore chore = inbox->items[inbox->first];
  inbox->first = (inbox->first + 1) % inbox->room;
  inbox->count--;
  return chore;
}

void simulate_agent_chore(simulate_engine *engine, uint32_t rank, simulate_chore chore) {
  engine->broken |= !push(&engine->ranks[rank].inbox, chore);
  simulate_agent_wake(engine, simulate_agent_communicates(rank));
}

void simulate_agent_queue(simulate_engine *engine, uint32_t rank, uint32_t id) {
  simulate_run *run = engine->ranks[rank].runs[id];
  if (!run->is_queued) {
    run->is_queued = true;
    engine->broken |= !simulate_fifo_push(&engine->ranks[rank].queue, id);
  }
  simulate_agent_wake(engine, simulate_agent_communicates(rank));
}

/* --------------------------------------------------------------- choosing */

static bool begin(simulate_agent *agent, simulate_task_kind task, uint32_t run, uint32_t step,
                  simulate_time work) {
  agent->task = task;
  agent->run = run;
  agent->step = step;
  agent->left = work;
  return true;
}

static bool choose_of_run(simulate_engine *engine, uint32_t rank, uint32_t id,
                          simulate_agent *agent) {
  const simulate_run *run = engine->ranks[rank].runs[id];
  uint32_t step;
  simulate_time work;
  engine->ranks[rank].current = SIMULATE_NONE;
  if (run->phase == SIMULATE_LOADS || run->phase == SIMULATE_STORES) {
    bool loads = run->phase == SIMULATE_LOADS;
    const simulate_pass *pass = loads ? &run->program->stage_in : &run->program->stage_out;
    return begin(agent, SIMULATE_COPY, id, SIMULATE_NONE,
                 simulate_touch_copy(engine, rank, id, pass));
  }
  if (!simulate_run_take(engine, rank, id, &step, &work)) {
    return false;
  }
  bool sends = run->program->steps[step].kind == LCOMM_STEP_SEND;
  engine->ranks[rank].current = sends ? id : SIMULATE_NONE;
  return begin(agent, SIMULATE_STEP, id, step, work);
}

/* Messages first; then a run's messages and one of its computations, then the next run's. */
static bool choose_communication(simulate_engine *engine, uint32_t rank, simulate_agent *agent) {
  simulate_rank *it = &engine->ranks[rank];
  uint32_t id;
  if (it->inbox.count > 0) {
    simulate_chore chore = pop(&it->inbox);
    return begin(agent, chore.task, chore.run, chore.step, chore.work);
  }
  if (it->current != SIMULATE_NONE && it->runs[it->current] &&
      choose_of_run(engine, rank, it->current, agent)) {
    return true;
  }
  it->current = SIMULATE_NONE;
  while (simulate_fifo_pop(&it->queue, &id)) {
    simulate_run *run = it->runs[id];
    if (!run) {
      continue; /* it went on while it was the current one */
    }
    run->is_queued = false;
    if (choose_of_run(engine, rank, id, agent)) {
      if (run->ready.count > 0) {
        simulate_agent_queue(engine, rank, id);
      }
      return true;
    }
  }
  return false;
}

/* Copies into the tensors of the next bucket; the first part of a step is none. */
static simulate_time fill_work(simulate_engine *engine, uint32_t rank) {
  uint32_t next = simulate_engine_awaited(engine, rank);
  bool fills = engine->ranks[rank].forward_over && next < engine->world->bucket_count;
  return fills ? simulate_touch_fill(engine, rank, next) : 0;
}

/* Until the next bucket may begin. */
static simulate_time backward_work(simulate_engine *engine, uint32_t rank) {
  const simulate_rank *it = &engine->ranks[rank];
  if (simulate_world_serves(engine->world, rank)) {
    return 0;
  }
  if (engine->settings->fills) {
    return fill_work(engine, rank);
  }
  if (!it->forward_over) {
    return engine->workload->forward;
  }
  simulate_time work = 0;
  size_t last = engine->workload->count - 1;
  uint32_t next = simulate_engine_awaited(engine, rank);
  if (next < engine->world->bucket_count) {
    last = engine->world->buckets[next].last_tensor;
  }
  for (size_t i = it->tensor; i <= last; i++) {
    work += engine->workload->tensors[i].backward;
  }
  return work;
}

static bool choose_backward(simulate_engine *engine, uint32_t rank, simulate_agent *agent) {
  if (!simulate_computes(engine, &engine->ranks[rank])) {
    return false;
  }
  return begin(agent, SIMULATE_BACKWARD, SIMULATE_NONE, SIMULATE_NONE, backward_work(engine, rank));
}

/* ------------------------------------------------------------- processors */

static simulate_pool *pool_of(simulate_engine *engine, uint32_t agent) {
  if (engine->pool_count == 0) {
    return NULL;
  }
  return &engine->pools[engine->pool_count > 1 ? engine->world->topo->node[agent / 2] : 0];
}

static bool has_work(const simulate_engine *engine, uint32_t agent) {
  const simulate_rank *it = &engine->ranks[agent / 2];
  return agent % 2 == 1 ? simulate_computes(engine, it) : it->inbox.count + it->queue.count > 0;
}

static bool choose(simulate_engine *engine, uint32_t index) {
  simulate_agent *agent = &engine->agents[index];
  return index % 2 == 1 ? choose_backward(engine, index / 2, agent)
                        : choose_communication(engine, index / 2, agent);
}

/* The next task, or a slice of the one that was interrupted. */
static void start(simulate_engine *engine, uint32_t index) {
  simulate_agent *agent = &engine->agents[index];
  simulate_pool *pool = pool_of(engine, index);
  if (agent->task == SIMULATE_IDLE && !choose(engine, index)) {
    return;
  }
  if (pool) {
    pool->free--;
  }
  agent->begun = engine->now;
  agent->work = pool && agent->left > SLICE ? SLICE : agent->left;
  agent->left -= agent->work;
  simulate_engine_push(engine, SIMULATE_WORKED, engine->now + agent->work, index, 0, 0, 0);
}

void simulate_agent_wake(simulate_engine *engine, uint32_t index) {
  simulate_agent *agent = &engine->agents[index];
  if (agent->task == SIMULATE_IDLE && !agent->queues && !agent->is_woken) {
    agent->is_woken = true;
    engine->broken |= !simulate_fifo_push(&engine->woken, index);
  }
}

static void look(simulate_engine *engine, uint32_t index) {
  simulate_agent *agent = &engine->agents[index];
  simulate_pool *pool = pool_of(engine, index);
  if (agent->task != SIMULATE_IDLE || agent->queues || !has_work(engine, index)) {
    return;
  }
  if (pool && pool->free == 0) {
    agent->queues = true;
    engine->broken |= !simulate_fifo_push(&pool->waiting, index);
    return;
  }
  start(engine, index);
}

void simulate_agents_start(simulate_engine *engine) {
  uint32_t index;
  while (simulate_fifo_pop(&engine->woken, &index)) {
    engine->agents[index].is_woken = false;
    look(engine, index);
  }
}

static void give_up_processor(simulate_engine *engine, uint32_t index) {
  simulate_pool *pool = pool_of(engine, index);
  uint32_t next;
  if (!pool) {
    return;
  }
  pool->free++;
  while (pool->free > 0 && simulate_fifo_pop(&pool->waiting, &next)) {
    engine->agents[next].queues = false;
    start(engine, next);
  }
}

/* A slice is over: those who wait for the processor come first. */
static void interrupt(simulate_engine *engine, uint32_t index) {
  engine->agents[index].queues = true;
  engine->broken |= !simulate_fifo_push(&pool_of(engine, index)->waiting, index);
  give_up_processor(engine, index);
}

/* -------------------------------------------------------------- when over */

static void end_backward(simulate_engine *engine, uint32_t rank) {
  simulate_rank *it = &engine->ranks[rank];
  if (!it->forward_over) {
    it->forward_over = true;
    return;
  }
  simulate_engine_note(engine, rank);
  uint32_t next = simulate_engine_awaited(engine, rank);
  bool all = next == engine->world->bucket_count;
  it->tensor = all ? engine->workload->count : engine->world->buckets[next].last_tensor + 1;
  simulate_engine_begin(engine, rank);
  simulate_engine_look(engine, rank);
}

static void note_work(simulate_engine *engine, uint32_t index, const simulate_agent *agent) {
  if (index % 2 == 0) {
    engine->ranks[index / 2].busy += agent->work;
  }
  if (!engine->timeline) {
    return;
  }
  if (agent->task == SIMULATE_STEP) {
    const simulate_run *run = engine->ranks[index / 2].runs[agent->run];
    const simulate_step *step = &run->program->steps[agent->step];
    if (step->kind != LCOMM_STEP_SEND) {
      simulate_timeline_computation(engine->timeline, index / 2, agent->run, agent->step,
                                    (lcomm_step_kind)step->kind, agent->begun, engine->now);
    }
  } else if (agent->task == SIMULATE_BACKWARD) {
    simulate_timeline_backward(engine->timeline, index / 2, agent->begun, engine->now);
  } else if (agent->task == SIMULATE_COPY) {
    simulate_timeline_copy(engine->timeline, index / 2, agent->run, agent->begun, engine->now);
  }
}

static void end_task(simulate_engine *engine, uint32_t rank, const simulate_agent *done) {
  switch (done->task) {
  case SIMULATE_BACKWARD:
    end_backward(engine, rank);
    break;
  case SIMULATE_COPY:
    simulate_run_copied(engine, rank, done->run);
    break;
  case SIMULATE_STEP:
    simulate_run_worked(engine, rank, done->run, done->step);
    break;
  case SIMULATE_TAKE:
    simulate_message_taken(engine, rank, done->run, done->step);
    break;
  case SIMULATE_ANSWER:
    simulate_message_answer(engine, rank, done->run, done->step);
    break;
  case SIMULATE_GO:
    simulate_message_post(engine, rank, done->run, done->step);
    break;
  case SIMULATE_SPEND:
  case SIMULATE_IDLE:
    break;
  }
}

void simulate_agent_worked(simulate_engine *engine, uint32_t index) {
  simulate_agent *agent = &engine->agents[index];
  simulate_agent done = *agent;
  uint32_t rank = index / 2;
  note_work(engine, index, &done);
  if (agent->left > 0) {
    interrupt(engine, index);
    return;
  }
  agent->task = SIMULATE_IDLE;
  end_task(engine, rank, &done);
  give_up_processor(engine, index);
  simulate_agent_wake(engine, index);
}
