/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The loop over events, training steps, and what they came to. */

#include "tools/simulation/simulate_engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/common/tool_timing.h"
#include "tools/simulation/simulate_engine_internal.h"

void simulate_engine_push(simulate_engine *engine, simulate_event_kind kind, simulate_time at,
                          uint32_t rank, uint32_t run, uint32_t step, uint64_t size) {
  simulate_events_push(
      &engine->events,
      (simulate_event){
          .at = at, .kind = kind, .rank = rank, .run = run, .step = step, .size = size});
}

/* ---------------------------------------------------------- training steps */

void simulate_engine_note(simulate_engine *engine, uint32_t rank) {
  simulate_rank *it = &engine->ranks[rank];
  simulate_time passed = engine->now - it->noted;
  it->noted = engine->now;
  if (it->buckets_active > 0) {
    it->communicates += passed;
    it->hidden += simulate_computes(engine, it) ? passed : 0;
  }
}

uint32_t simulate_engine_awaited(const simulate_engine *engine, uint32_t rank) {
  const simulate_rank *it = &engine->ranks[rank];
  uint32_t bucket = it->buckets_begun;
  while (bucket < engine->world->bucket_count &&
         engine->world->buckets[bucket].last_tensor < it->tensor) {
    bucket++;
  }
  return bucket;
}

static bool may_begin(const simulate_engine *engine, const simulate_rank *it, uint32_t id) {
  const simulate_bucket *bucket = &engine->world->buckets[it->buckets_begun];
  bool first_over = bucket->sum != SIMULATE_SUM_SECOND || !it->runs[id - 1];
  return bucket->last_tensor < it->tensor && first_over;
}

void simulate_engine_begin(simulate_engine *engine, uint32_t rank) {
  simulate_rank *it = &engine->ranks[rank];
  uint32_t first = it->training_step * engine->world->bucket_count;
  while (it->buckets_begun < engine->world->bucket_count &&
         may_begin(engine, it, first + it->buckets_begun)) {
    simulate_run_begin(engine, rank, first + it->buckets_begun++);
  }
}

void simulate_engine_step(simulate_engine *engine, uint32_t rank) {
  simulate_rank *it = &engine->ranks[rank];
  simulate_engine_note(engine, rank);
  it->buckets_begun = it->buckets_over = 0;
  it->tensor = 0;
  it->forward_over = false;
  simulate_agent_wake(engine, simulate_agent_computes(rank));
}

void simulate_engine_look(simulate_engine *engine, uint32_t rank) {
  simulate_rank *it = &engine->ranks[rank];
  if (simulate_computes(engine, it) || it->buckets_over < engine->world->bucket_count) {
    return;
  }
  simulate_time *end = &engine->step_ends[it->training_step];
  *end = engine->now > *end ? engine->now : *end;
  simulate_engine_note(engine, rank);
  if (it->training_step == 0 && engine->settings->steps > 1) {
    it->first_communicates = it->communicates;
    it->first_hidden = it->hidden;
  }
  it->training_step++;
  if (it->training_step < (uint32_t)engine->settings->steps) {
    simulate_engine_step(engine, rank);
  } else {
    engine->ranks_over++;
  }
}

/* ------------------------------------------------------------------- loop */

static void handle(simulate_engine *engine, const simulate_event *event) {
  switch ((simulate_event_kind)event->kind) {
  case SIMULATE_ASKS:
    simulate_message_asks(engine, event->rank, event->run, event->step);
    break;
  case SIMULATE_ANSWERED:
    simulate_message_answered(engine, event->rank, event->run, event->step);
    break;
  case SIMULATE_SENT:
    simulate_message_sent(engine, event->rank, event->run, event->step);
    break;
  case SIMULATE_ARRIVES:
    simulate_message_arrives(engine, event);
    break;
  case SIMULATE_RECEIVED:
    simulate_message_received(engine, event->rank, event->run, event->step);
    break;
  case SIMULATE_WORKED:
    simulate_agent_worked(engine, event->rank);
    break;
  }
}

static bool loop(simulate_engine *engine, char *why) {
  simulate_event event;
  for (int i = 0; i < engine->world->ranks; i++) {
    simulate_engine_step(engine, (uint32_t)i);
  }
  simulate_agents_start(engine);
  while (!engine->broken && !engine->events.broken &&
         simulate_events_pop(&engine->events, &event)) {
    engine->now = event.at;
    engine->handled++;
    if (engine->now >= SIMULATE_TIME_MAX) {
      snprintf(why, SIMULATE_WHY_MAX, "it takes longer than can be counted");
      return false;
    }
    handle(engine, &event);
    simulate_agents_start(engine);
  }
  if (engine->broken || engine->events.broken) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory after %llu events",
             (unsigned long long)engine->handled);
    return false;
  }
  if (engine->ranks_over < (uint32_t)engine->world->ranks) {
    snprintf(why, SIMULATE_WHY_MAX, "%u of %d ranks wait for ever: the schedule is wrong",
             (uint32_t)engine->world->ranks - engine->ranks_over, engine->world->ranks);
    return false;
  }
  return true;
}

/* ----------------------------------------------------------------- memory */

static bool make_ranks(simulate_engine *engine) {
  const simulate_world *world = engine->world;
  size_t ranks = (size_t)world->ranks;
  size_t runs = (size_t)engine->settings->steps * world->bucket_count;
  engine->ranks = calloc(ranks, sizeof *engine->ranks);
  engine->agents = calloc(2 * ranks, sizeof *engine->agents);
  engine->cards =
      calloc((size_t)world->topo->nodes * (size_t)engine->settings->cards, sizeof *engine->cards);
  engine->step_ends = calloc((size_t)engine->settings->steps, sizeof *engine->step_ends);
  bool good = engine->ranks && engine->agents && engine->cards && engine->step_ends;
  for (size_t i = 0; good && i < ranks; i++) {
    engine->ranks[i].current = SIMULATE_NONE;
    engine->ranks[i].runs = calloc(runs, sizeof *engine->ranks[i].runs);
    engine->ranks[i].arrays = calloc(world->bucket_count, sizeof *engine->ranks[i].arrays);
    good = engine->ranks[i].runs && engine->ranks[i].arrays;
  }
  return good;
}

static bool make_pools(simulate_engine *engine) {
  const simulate_settings *settings = engine->settings;
  if (settings->processors == 0) {
    return true;
  }
  engine->pool_count = settings->one_machine ? 1 : engine->world->topo->nodes;
  engine->pools = calloc((size_t)engine->pool_count, sizeof *engine->pools);
  for (int i = 0; engine->pools && i < engine->pool_count; i++) {
    engine->pools[i].free = settings->processors;
    engine->pools[i].cache.size = settings->cache;
  }
  return engine->pools != NULL;
}

static void drop_rank(simulate_engine *engine, simulate_rank *rank) {
  size_t runs = (size_t)engine->settings->steps * engine->world->bucket_count;
  for (size_t i = 0; rank->runs && i < runs; i++) {
    simulate_run_free(rank->runs[i]);
  }
  free(rank->runs);
  free(rank->arrays);
  free(rank->inbox.items);
  simulate_fifo_free(&rank->queue);
}

static void drop(simulate_engine *engine) {
  for (int i = 0; engine->ranks && i < engine->world->ranks; i++) {
    drop_rank(engine, &engine->ranks[i]);
  }
  for (int i = 0; engine->pools && i < engine->pool_count; i++) {
    simulate_fifo_free(&engine->pools[i].waiting);
  }
  free(engine->ranks);
  free(engine->agents);
  free(engine->cards);
  free(engine->step_ends);
  free(engine->pools);
  simulate_events_free(&engine->events);
  simulate_fifo_free(&engine->woken);
  simulate_fifo_free(&engine->finishing);
}

/* ----------------------------------------------------------------- result */

static double step_seconds(const simulate_engine *engine) {
  static double seconds[SIMULATE_STEPS_MAX];
  size_t steps = (size_t)engine->settings->steps;
  for (size_t i = 0; i < steps; i++) {
    simulate_time before = i > 0 ? engine->step_ends[i - 1] : 0;
    seconds[i] = simulate_seconds(engine->step_ends[i] - before);
  }
  return steps == 1 ? seconds[0] : tool_median(seconds + 1, steps - 1);
}

static void sum_cards(const simulate_engine *engine, simulate_result *result) {
  int nodes = engine->world->symmetric ? 1 : engine->world->topo->nodes;
  double steps = engine->settings->steps;
  for (int i = 0; i < nodes * engine->settings->cards; i++) {
    const simulate_port *card = &engine->cards[i];
    int rank = lcomm_topo_rank(engine->world->topo, i / engine->settings->cards, 0);
    double rate = simulate_joint(engine, (uint32_t)rank, LCOMM_LINK_NET)->bytes_per_s;
    double bytes = (double)card->sent_bytes / steps, messages = (double)card->messages / steps;
    result->card_bytes = bytes > result->card_bytes ? bytes : result->card_bytes;
    result->card_messages = messages > result->card_messages ? messages : result->card_messages;
    result->wire_s = bytes / rate > result->wire_s ? bytes / rate : result->wire_s;
  }
  result->node_bytes = (double)engine->node_bytes / steps / nodes;
}

static uint64_t memory_of(const simulate_world *world, uint32_t rank) {
  uint64_t size = 0;
  for (uint32_t i = 0; i < world->bucket_count; i++) {
    size += simulate_world_program(world, i, rank)->memory_size;
  }
  return size;
}

static void sum_ranks(const simulate_engine *engine, simulate_result *result) {
  const simulate_rank *first = &engine->ranks[simulate_world_first(engine->world)];
  double steps = engine->settings->steps, all = simulate_seconds(engine->now);
  for (int i = 0; i < engine->world->ranks; i++) {
    double messages = (double)engine->ranks[i].messages / steps;
    uint64_t memory = memory_of(engine->world, (uint32_t)i);
    result->rank_messages = messages > result->rank_messages ? messages : result->rank_messages;
    result->memory_bytes = memory > result->memory_bytes ? memory : result->memory_bytes;
  }
  double counted = engine->settings->steps > 1 ? steps - 1 : 1;
  simulate_time communicates = first->communicates - first->first_communicates;
  simulate_time hidden = first->hidden - first->first_hidden;
  result->communication_s = simulate_seconds(communicates) / counted;
  result->hidden = communicates > 0 ? (double)hidden / (double)communicates : 1;
  result->busy = all > 0 ? simulate_seconds(first->busy) / all : 0;
}

static void sum_up(const simulate_engine *engine, simulate_result *result) {
  *result = (simulate_result){.step_s = step_seconds(engine),
                              .compute_s = simulate_seconds(engine->compute),
                              .events = engine->handled,
                              .simulated_ranks = engine->world->ranks};
  sum_cards(engine, result);
  sum_ranks(engine, result);
}

bool simulate_engine_run(const simulate_world *world, const simulate_workload *workload,
                         const simulate_settings *settings, simulate_timeline *timeline,
                         simulate_result *result, char *why) {
  simulate_engine engine = {.world = world,
                            .workload = workload,
                            .settings = settings,
                            .timeline = timeline,
                            .compute = simulate_workload_compute(workload)};
  bool good = make_ranks(&engine) && make_pools(&engine);
  if (!good) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for %d ranks", world->ranks);
  }
  good = good && loop(&engine, why);
  if (good) {
    sum_up(&engine, result);
  }
  drop(&engine);
  return good;
}
