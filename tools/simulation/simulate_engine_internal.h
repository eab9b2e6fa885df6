/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_ENGINE_INTERNAL_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_ENGINE_INTERNAL_H

/* The state of a simulation. simulate_engine.c has the loop over events, simulate_runs.c what
 * happens to a bucket, simulate_agents.c what processors do. */

#include "tools/simulation/simulate_bits.h"
#include "tools/simulation/simulate_engine.h"

enum { SIMULATE_NONE = UINT32_MAX };

typedef enum simulate_event_kind {
  SIMULATE_ASKS,     /* a long message would come: rank, run, step of the receiver */
  SIMULATE_ANSWERED, /* it may come: of the sender */
  SIMULATE_SENT,     /* its last byte has left: likewise */
  SIMULATE_ARRIVES,  /* its first byte is there: of the receiver */
  SIMULATE_RECEIVED, /* its last byte is there: likewise */
  SIMULATE_WORKED    /* an agent, in `rank`, is done with its task */
} simulate_event_kind;

typedef enum simulate_phase {
  SIMULATE_WAITS, /* for its gradients; messages may arrive already */
  SIMULATE_LOADS,
  SIMULATE_STEPS,
  SIMULATE_STORES
} simulate_phase;

/* One bucket in one training step on one rank. */
typedef struct simulate_run {
  const simulate_program *program;
  simulate_phase phase;
  bool is_queued; /* in the rank's queue of runs that have something to compute or to send */
  uint32_t left, net_sends;
  simulate_time begun;
  simulate_bits ready, held;
  /* A bit for each step that is not ready yet: its message is there, or would come. */
  uint64_t *arrived, *asked;
  uint16_t *waits;
} simulate_run;

typedef enum simulate_task_kind {
  SIMULATE_IDLE,
  SIMULATE_SPEND,  /* for bytes that flow */
  SIMULATE_TAKE,   /* a message that has come */
  SIMULATE_ANSWER, /* a long message that would come */
  SIMULATE_GO,     /* the answer: the message leaves */
  SIMULATE_STEP,
  SIMULATE_COPY, /* from the tensors, or back */
  SIMULATE_BACKWARD
} simulate_task_kind;

/* What a processor has to do for messages: one of the tasks from SPEND to GO. */
typedef struct simulate_chore {
  simulate_time work;
  uint32_t run, step;
  simulate_task_kind task;
} simulate_chore;

typedef struct simulate_inbox {
  simulate_chore *items;
  uint32_t first, count, room;
} simulate_inbox;

/* A thread: it does one task at a time. Agent 2 r communicates for rank r, 2 r + 1 computes. */
typedef struct simulate_agent {
  simulate_task_kind task;
  bool queues;   /* for a processor */
  bool is_woken; /* it will look for something to do */
  uint32_t run, step;
  simulate_time begun, work; /* of a slice of the task */
  simulate_time left;        /* after it */
} simulate_agent;

typedef struct simulate_pool {
  int free;
  simulate_fifo waiting; /* agents */
  simulate_cache cache;
} simulate_pool;

/* Of a bucket: its vector, which is its tensors where it is not copied; its residual; what tensors
 * are filled from. */
typedef struct simulate_arrays {
  simulate_array vector, residual, source;
} simulate_arrays;

typedef struct simulate_rank {
  simulate_run **runs;     /* of all training steps: [step * buckets + bucket] */
  simulate_arrays *arrays; /* of each bucket */
  simulate_fifo queue;     /* runs that have something to do */
  uint32_t current;        /* the run whose messages are being sent; NONE */
  simulate_inbox inbox;
  uint32_t training_step, buckets_begun, buckets_over, buckets_active;
  size_t tensor; /* computed next; tensors + 1: all are */
  bool forward_over;
  simulate_time noted, communicates, hidden, busy; /* times so far */
  simulate_time first_communicates, first_hidden;  /* of the first of several training steps */
  uint64_t messages;
  simulate_port ports[LCOMM_LINK_COUNT]; /* inside the node */
} simulate_rank;

typedef struct simulate_engine {
  const simulate_world *world;
  const simulate_workload *workload;
  const simulate_settings *settings;
  simulate_timeline *timeline;
  simulate_events events;
  simulate_time now, compute;
  simulate_rank *ranks;
  simulate_agent *agents;
  simulate_port *cards; /* of node n: [n * settings->cards ..] */
  simulate_pool *pools;
  int pool_count;
  simulate_time *step_ends; /* of each training step, the latest rank */
  uint64_t node_bytes, handled;
  uint32_t ranks_over;
  simulate_fifo woken;     /* agents that may have something to do */
  simulate_fifo finishing; /* steps of one run that are over, before what waits for them is seen */
  bool broken;             /* memory ended */
} simulate_engine;

/* ---- simulate_runs.c: `id` counts runs over all training steps */

/* The run, made when it is first heard of; NULL: no memory. */
simulate_run *simulate_run_of(simulate_engine *engine, uint32_t rank, uint32_t id);
void simulate_run_free(simulate_run *run);

/* The gradients are there. */
void simulate_run_begin(simulate_engine *engine, uint32_t rank, uint32_t id);

/* What the communicating agent of a rank does next for a run: a step, its time in *work. false:
 * nothing, or it was over at once. */
bool simulate_run_take(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t *step,
                       simulate_time *work);

/* An agent is done with a step, or with a copy. */
void simulate_run_worked(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step);
void simulate_run_copied(simulate_engine *engine, uint32_t rank, uint32_t id);

/* Events of messages. */
void simulate_message_asks(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step);
void simulate_message_answer(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step);
void simulate_message_answered(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step);
void simulate_message_post(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step);
void simulate_message_sent(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step);
void simulate_message_arrives(simulate_engine *engine, const simulate_event *event);
void simulate_message_received(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step);
void simulate_message_taken(simulate_engine *engine, uint32_t rank, uint32_t id, uint32_t step);

/* ---- simulate_agents.c */

/* The agent may have something to do: it looks when the event is over. */
void simulate_agent_wake(simulate_engine *engine, uint32_t agent);
void simulate_agents_start(simulate_engine *engine);
void simulate_agent_worked(simulate_engine *engine, uint32_t agent);
void simulate_agent_chore(simulate_engine *engine, uint32_t rank, simulate_chore chore);
/* Runs with something to do are taken in turn. */
void simulate_agent_queue(simulate_engine *engine, uint32_t rank, uint32_t id);

/* ---- simulate_touch.c: how long computations take, by where their arrays are. NULL cache: all in
 * memory */

/* The cache of the processors of an agent's rank; NULL: none. */
simulate_cache *simulate_cache_of(simulate_engine *engine, uint32_t rank);

simulate_time simulate_touch_step(simulate_engine *engine, uint32_t rank, uint32_t id,
                                  const simulate_step *step);
simulate_time simulate_touch_copy(simulate_engine *engine, uint32_t rank, uint32_t id,
                                  const simulate_pass *pass);
/* Gradients of a bucket are filled from a copy, or made by a backward pass. */
simulate_time simulate_touch_fill(simulate_engine *engine, uint32_t rank, uint32_t bucket);
void simulate_touch_made(simulate_engine *engine, uint32_t rank, uint32_t bucket);

static inline uint32_t simulate_agent_communicates(uint32_t rank) {
  return 2 * rank;
}

static inline uint32_t simulate_agent_computes(uint32_t rank) {
  return 2 * rank + 1;
}

/* ---- simulate_engine.c */

void simulate_engine_push(simulate_engine *engine, simulate_event_kind kind, simulate_time at,
                          uint32_t rank, uint32_t run, uint32_t step, uint64_t size);

/* The bucket whose gradients are computed next: the first one, from those that have not begun on,
 * that waits for some; bucket_count: none does. */
uint32_t simulate_engine_awaited(const simulate_engine *engine, uint32_t rank);

/* Begin, in their order, all buckets of a rank whose gradients are there; a second sum, and what is
 * behind it, not before the first one is over. */
void simulate_engine_begin(simulate_engine *engine, uint32_t rank);

/* Begin the next training step of a rank. */
void simulate_engine_step(simulate_engine *engine, uint32_t rank);

/* Before the number of active buckets of a rank, or whether it computes, changes. */
void simulate_engine_note(simulate_engine *engine, uint32_t rank);

/* Is the training step of a rank over? Then the next one begins. */
void simulate_engine_look(simulate_engine *engine, uint32_t rank);

static inline bool simulate_computes(const simulate_engine *engine, const simulate_rank *rank) {
  return rank->tensor < engine->workload->count || !rank->forward_over;
}

/* What a rank is joined to others by. */
static inline const simulate_link *simulate_joint(const simulate_engine *engine, uint32_t rank,
                                                  uint32_t link) {
  const simulate_settings *settings = engine->settings;
  bool is_served = link == LCOMM_LINK_NET && settings->served.bytes_per_s > 0 &&
                   simulate_world_serves(engine->world, rank);
  return is_served ? &settings->served : &settings->links[link];
}

/* The bucket whose arrays a bucket works on: the second of two sums has those of the first. */
static inline uint32_t simulate_arrays_of(const simulate_engine *engine, uint32_t bucket) {
  return bucket - (engine->world->buckets[bucket].sum == SIMULATE_SUM_SECOND);
}

static inline uint32_t simulate_bucket_of(const simulate_engine *engine, uint32_t id) {
  return id % engine->world->bucket_count;
}

#endif
