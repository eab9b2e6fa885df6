/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/simulator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/stripe.h"
#include "tests/support/reference_linker.h"
#include "tests/support/simulator_post.h"

typedef struct sim_slot {
  sim_element *elements; /* NULL while unwritten, or a window into the vector */
  bool written, window;
} sim_slot;

/* A step that can be moved: it is ready, or its message is there. */
typedef struct sim_move {
  int rank;
  uint32_t step;
} sim_move;

typedef struct sim_moves {
  sim_move *list;
  size_t count;
} sim_moves;

typedef struct sim_rank {
  sim_slot *slots;
  uint32_t *waiting;
  char *state; /* per step: see below */
  uint32_t left;
  int far_sends;   /* posted and not met yet */
  uint32_t *turns; /* sends that wait for their turn */
  uint32_t turns_count;
} sim_rank;

enum { STATE_WAITING, STATE_READY, STATE_POSTED, STATE_OVER };

typedef struct sim_state {
  sim_world *world;
  const sim_options *options;
  sim_rank *ranks;
  sim_posts posts;
  sim_moves moves, held; /* of the rank that does nothing yet */
  bool with_held;
  uint64_t random;
  char *why;
  size_t why_size;
  bool failed;
} sim_state;

static uint64_t draw(sim_state *s) {
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  return s->random;
}

static void fail(sim_state *s, int rank, uint32_t step, const char *what) {
  if (!s->failed) {
    snprintf(s->why, s->why_size, "rank %d, step %u: %s", rank, step, what);
  }
  s->failed = true;
}

/* ----------------------------------------------------------------- steps */

static const lcomm_step *step_at(const sim_state *s, int rank, uint32_t step) {
  return &s->world->schedules[rank].steps[step];
}

static sim_element *vector_at(const sim_state *s, int rank, lcomm_span span, uint64_t local) {
  return &s->world->vectors[rank][span.first + lcomm_stripe_global(local, span.parts, span.part)];
}

static double encoded(const sim_state *s, lcomm_stage stage, double value) {
  /* Different grids, so that sums of one are not exact on the next. */
  static const double grid[LCOMM_STAGE_COUNT] = {8, 6, 5, 7};
  return s->options->lossy[stage] ? floor(value * grid[stage] + 0.5) / grid[stage] : value;
}

static sim_slot *readable(sim_state *s, int rank, uint32_t step, uint32_t slot) {
  if (slot >= s->world->schedules[rank].slot_count || !s->ranks[rank].slots[slot].written) {
    fail(s, rank, step, "reads a slot that is not written");
    return NULL;
  }
  return &s->ranks[rank].slots[slot];
}

/* What was in the memory of a slot is gone as soon as the slot may be written. */
static void take_memory(sim_state *s, int rank, uint32_t slot) {
  uint32_t before = s->world->schedules[rank].slots[slot].before;
  if (before != LCOMM_NO_SLOT) {
    s->ranks[rank].slots[before].written = false;
  }
}

static void write_slot(sim_state *s, int rank, uint32_t slot, const sim_element *elements) {
  sim_slot *it = &s->ranks[rank].slots[slot];
  uint64_t count = s->world->schedules[rank].slots[slot].count;
  if (it->window) {
    memmove(it->elements, elements, count * sizeof *elements);
  } else {
    free(it->elements);
    it->elements = calloc(count + 1, sizeof *elements);
    memcpy(it->elements, elements, count * sizeof *elements);
  }
  it->written = true;
}

static void run_encode(sim_state *s, int rank, const lcomm_step *step) {
  if (s->ranks[rank].slots[step->slot].window) {
    s->ranks[rank].slots[step->slot].written = true; /* it has the values already */
    return;
  }
  for (uint32_t o = 0; o < step->slot_count; o++) {
    take_memory(s, rank, step->slot + o);
    const lcomm_slot *slot = &s->world->schedules[rank].slots[step->slot + o];
    lcomm_span span = step->span;
    if (step->slot_count > 1) {
      span.parts = step->slot_count;
      span.part = o;
    }
    sim_element *made = calloc(slot->count + 1, sizeof *made);
    for (uint64_t i = 0; i < slot->count; i++) {
      made[i] = *vector_at(s, rank, span, i);
      made[i].value = encoded(s, slot->stage, made[i].value);
    }
    write_slot(s, rank, step->slot + o, made);
    free(made);
  }
}

static void run_decode(sim_state *s, int rank, uint32_t index, const lcomm_step *step) {
  sim_slot *slot = readable(s, rank, index, step->slot);
  uint64_t count = lcomm_span_count(step->span);
  if (!slot) {
    return;
  }
  if (count > s->world->schedules[rank].slots[step->slot].count) {
    fail(s, rank, index, "decodes more than the slot holds");
    return;
  }
  for (uint64_t i = 0; i < count && !slot->window; i++) {
    *vector_at(s, rank, step->span, i) = slot->elements[i];
  }
}

static void run_reduce(sim_state *s, int rank, uint32_t index, const lcomm_step *step) {
  uint64_t count = lcomm_span_count(step->span);
  sim_element *sum = calloc(count + 1, sizeof *sum);
  for (uint32_t k = 0; k < step->slot_count && !s->failed; k++) {
    uint32_t source = s->world->schedules[rank].sources[step->sources + k];
    sim_slot *slot = NULL;
    if (source != LCOMM_SOURCE_SELF) {
      slot = readable(s, rank, index, source);
      if (!slot || s->world->schedules[rank].slots[source].count < count) {
        fail(s, rank, index, "sums a slot that is too short");
        break;
      }
    }
    for (uint64_t i = 0; i < count; i++) {
      sim_element part = slot ? slot->elements[i] : *vector_at(s, rank, step->span, i);
      if (s->world->size <= SIM_RANKS_OF_BITS && (sum[i].ranks & part.ranks)) {
        fail(s, rank, index, "counts a rank twice");
        break;
      }
      sum[i].ranks += part.ranks;
      sum[i].value += part.value;
    }
  }
  for (uint64_t i = 0; i < count && !s->failed; i++) {
    *vector_at(s, rank, step->span, i) = sum[i];
  }
  free(sum);
}

/* -------------------------------------------------------------- messages */

static void add_move(sim_state *s, int rank, uint32_t step) {
  bool aside = rank == s->options->held_rank && !s->with_held;
  sim_moves *moves = aside ? &s->held : &s->moves;
  moves->list[moves->count++] = (sim_move){rank, step};
}

static void finish(sim_state *s, int rank, uint32_t index) {
  const lcomm_schedule *schedule = &s->world->schedules[rank];
  const lcomm_step *step = &schedule->steps[index];
  s->ranks[rank].state[index] = STATE_OVER;
  s->ranks[rank].left--;
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t later = schedule->next[step->next_first + i];
    if (--s->ranks[rank].waiting[later] == 0) {
      s->ranks[rank].state[later] = STATE_READY;
      add_move(s, rank, later);
    }
  }
}

static bool is_far(const sim_state *s, int rank, const lcomm_step *step) {
  return s->world->topo.node[rank] != s->world->topo.node[step->peer];
}

/* A SEND that must wait for its turn, as the executor paces long messages. */
static bool must_wait(const sim_state *s, int rank, const lcomm_step *step) {
  return step->kind == LCOMM_STEP_SEND && s->options->far_sends_max > 0 && is_far(s, rank, step) &&
         s->ranks[rank].far_sends >= s->options->far_sends_max;
}

static void count_far(sim_state *s, int rank, const lcomm_step *step) {
  if (is_far(s, rank, step)) {
    s->world->far_elements += s->world->schedules[rank].slots[step->slot].count;
  }
}

/* A message that both sides have posted can be delivered. */
static void meet(sim_state *s, const sim_post *post) {
  if (post->send != SIM_NO_STEP && post->receive != SIM_NO_STEP) {
    add_move(s, post->to, post->receive);
  }
}

static void post_send(sim_state *s, int rank, uint32_t index, const lcomm_step *step) {
  sim_slot *slot = readable(s, rank, index, step->slot);
  sim_post *post = sim_posts_find(&s->posts, rank, step->peer, step->message);
  if (!slot) {
    return;
  }
  count_far(s, rank, step);
  post->send = index;
  post->count = s->world->schedules[rank].slots[step->slot].count;
  meet(s, post);
  if (s->options->rendezvous) {
    s->ranks[rank].state[index] = STATE_POSTED;
    s->ranks[rank].far_sends += is_far(s, rank, step);
    return;
  }
  post->mail = calloc(post->count + 1, sizeof(sim_element));
  memcpy(post->mail, slot->elements, post->count * sizeof(sim_element));
  finish(s, rank, index);
}

static void post_receive(sim_state *s, int rank, uint32_t index, const lcomm_step *step) {
  sim_post *post = sim_posts_find(&s->posts, step->peer, rank, step->message);
  take_memory(s, rank, step->slot);
  s->ranks[rank].state[index] = STATE_POSTED;
  post->receive = index;
  meet(s, post);
}

/* A message of the sender is over: those that waited for their turn may go. */
static void end_send(sim_state *s, int rank, uint32_t index) {
  sim_rank *it = &s->ranks[rank];
  it->far_sends -= is_far(s, rank, step_at(s, rank, index));
  while (it->turns_count > 0) {
    add_move(s, rank, it->turns[--it->turns_count]);
  }
  finish(s, rank, index);
}

/* Both sides are there. */
static void deliver(sim_state *s, int rank, uint32_t index, const lcomm_step *step) {
  sim_post *post = sim_posts_find(&s->posts, step->peer, rank, step->message);
  const sim_element *elements = post->mail;
  if (post->count != s->world->schedules[rank].slots[step->slot].count) {
    fail(s, rank, index, "receives a message of another size");
    return;
  }
  if (s->options->rendezvous) {
    elements = s->ranks[post->from].slots[step_at(s, post->from, post->send)->slot].elements;
  }
  write_slot(s, rank, step->slot, elements);
  post->over = true;
  free(post->mail);
  post->mail = NULL;
  finish(s, rank, index);
  if (s->options->rendezvous) {
    end_send(s, post->from, post->send);
  }
}

/* ------------------------------------------------------------------ loop */

static void start_step(sim_state *s, int rank, uint32_t index) {
  const lcomm_step *step = step_at(s, rank, index);
  switch (step->kind) {
  case LCOMM_STEP_ENCODE:
    run_encode(s, rank, step);
    break;
  case LCOMM_STEP_DECODE:
    run_decode(s, rank, index, step);
    break;
  case LCOMM_STEP_REDUCE:
    run_reduce(s, rank, index, step);
    break;
  case LCOMM_STEP_SEND:
    post_send(s, rank, index, step);
    return;
  case LCOMM_STEP_RECV:
    post_receive(s, rank, index, step);
    return;
  }
  finish(s, rank, index);
}

static void move_step(sim_state *s, sim_move move) {
  sim_rank *rank = &s->ranks[move.rank];
  const lcomm_step *step = step_at(s, move.rank, move.step);
  if (rank->state[move.step] == STATE_POSTED) {
    deliver(s, move.rank, move.step, step);
  } else if (must_wait(s, move.rank, step)) {
    rank->turns[rank->turns_count++] = move.step;
  } else {
    start_step(s, move.rank, move.step);
  }
}

/* Move steps that are drawn, until none can be moved. */
static void move_all(sim_state *s) {
  while (!s->failed && s->moves.count > 0) {
    size_t drawn = draw(s) % s->moves.count;
    sim_move move = s->moves.list[drawn];
    s->moves.list[drawn] = s->moves.list[--s->moves.count];
    move_step(s, move);
  }
}

static void release_held(sim_state *s) {
  s->with_held = true;
  for (size_t i = 0; i < s->held.count; i++) {
    s->moves.list[s->moves.count++] = s->held.list[i];
  }
}

static int ranks_over(const sim_state *s) {
  int over = 0;
  for (int rank = 0; rank < s->world->size; rank++) {
    over += s->ranks[rank].left == 0;
  }
  return over;
}

/* As if the linker had not found dependency `tie`. */
static void lose_tie(lcomm_schedule *schedule, uint32_t tie) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    lcomm_step *step = &schedule->steps[i];
    if (tie - step->next_first < step->next_count) {
      uint32_t *last = &schedule->next[step->next_first + --step->next_count];
      schedule->steps[schedule->next[tie]].waits_for--;
      schedule->next[tie] = *last;
      return;
    }
  }
}

static void link_rank(sim_state *s, int rank) {
  lcomm_schedule *schedule = &s->world->schedules[rank];
  bool copies[LCOMM_STAGE_COUNT];
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    copies[i] = !s->options->lossy[i];
  }
  if (lcomm_schedule_link(schedule, copies) != LCOMM_OK) {
    fail(s, rank, 0, "cannot be linked");
  } else if (s->world->size <= SIM_RANKS_OF_BITS && !reference_links_alike(schedule, copies)) {
    fail(s, rank, 0, "is linked unlike the reference");
  }
  if (rank == 0 && s->options->lost_tie > 0) {
    lose_tie(schedule, s->options->lost_tie - 1);
  }
}

static void prepare_rank(sim_state *s, int rank) {
  const lcomm_schedule *schedule = &s->world->schedules[rank];
  sim_rank *it = &s->ranks[rank];
  it->slots = calloc((size_t)schedule->slot_count + 1, sizeof *it->slots);
  it->waiting = calloc((size_t)schedule->step_count + 1, sizeof *it->waiting);
  it->state = calloc((size_t)schedule->step_count + 1, 1);
  it->turns = calloc((size_t)schedule->step_count + 1, sizeof *it->turns);
  it->left = schedule->step_count;
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    it->slots[i].window = schedule->slots[i].alias.count > 0;
    if (it->slots[i].window) {
      it->slots[i].elements = s->world->vectors[rank] + schedule->slots[i].alias.first;
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    it->waiting[i] = schedule->steps[i].waits_for;
    it->state[i] = it->waiting[i] == 0 ? STATE_READY : STATE_WAITING;
    if (it->waiting[i] == 0) {
      add_move(s, rank, i);
    }
  }
}

static void prepare(sim_state *s) {
  size_t steps = 1;
  s->ranks = calloc((size_t)s->world->size, sizeof *s->ranks);
  for (int rank = 0; rank < s->world->size; rank++) {
    link_rank(s, rank);
    steps += s->world->schedules[rank].step_count;
  }
  s->moves.list = calloc(steps, sizeof *s->moves.list);
  s->held.list = calloc(steps, sizeof *s->held.list);
  sim_posts_make(&s->posts, s->world);
  for (int rank = 0; rank < s->world->size; rank++) {
    prepare_rank(s, rank);
  }
}

static void clean_up(sim_state *s) {
  for (int rank = 0; rank < s->world->size; rank++) {
    for (uint32_t i = 0; i < s->world->schedules[rank].slot_count; i++) {
      if (!s->ranks[rank].slots[i].window) {
        free(s->ranks[rank].slots[i].elements);
      }
    }
    free(s->ranks[rank].slots);
    free(s->ranks[rank].waiting);
    free(s->ranks[rank].turns);
    free(s->ranks[rank].state);
  }
  free(s->ranks);
  free(s->moves.list);
  free(s->held.list);
  sim_posts_free(&s->posts);
}

int sim_run(sim_world *world, const sim_options *options, char *why, size_t size) {
  sim_state s = {.world = world,
                 .options = options,
                 .random = options->seed * UINT64_C(0x9e3779b97f4a7c15) + 1,
                 .why = why,
                 .why_size = size};
  world->far_elements = 0;
  prepare(&s);
  move_all(&s);
  world->over_before_held = options->held_rank >= 0 ? ranks_over(&s) : 0;
  release_held(&s);
  move_all(&s);
  for (int rank = 0; rank < world->size && !s.failed; rank++) {
    for (uint32_t i = 0; i < world->schedules[rank].step_count; i++) {
      if (s.ranks[rank].state[i] != STATE_OVER) {
        fail(&s, rank, i, "deadlock, the step never ran");
        break;
      }
    }
  }
  const sim_post *lost = s.failed ? NULL : sim_posts_lost(&s.posts);
  if (lost) {
    fail(&s, lost->from, lost->send, "the message was never received");
  }
  clean_up(&s);
  return s.failed ? -1 : 0;
}
