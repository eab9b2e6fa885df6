/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/simulator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/stripe.h"
#include "tests/support/reference_linker.h"

typedef struct sim_slot {
  sim_element *elements; /* NULL while unwritten, or a window into the vector */
  bool written, window;
} sim_slot;

typedef struct sim_rank {
  sim_slot *slots;
  uint32_t *waiting;
  char *state; /* per step: see below */
  uint32_t left;
  int far_sends; /* posted and not met yet */
} sim_rank;

enum { STATE_WAITING, STATE_READY, STATE_POSTED, STATE_OVER };

typedef struct sim_mail { /* an eager message that was sent */
  int from, to;
  uint32_t message;
  uint64_t count;
  sim_element *elements;
  struct sim_mail *next;
} sim_mail;

typedef struct sim_state {
  sim_world *world;
  const sim_options *options;
  sim_rank *ranks;
  sim_mail *mail;
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
      if (sum[i].ranks & part.ranks) {
        fail(s, rank, index, "counts a rank twice");
        break;
      }
      sum[i].ranks |= part.ranks;
      sum[i].value += part.value;
    }
  }
  for (uint64_t i = 0; i < count && !s->failed; i++) {
    *vector_at(s, rank, step->span, i) = sum[i];
  }
  free(sum);
}

/* -------------------------------------------------------------- messages */

static void finish(sim_state *s, int rank, uint32_t index) {
  const lcomm_schedule *schedule = &s->world->schedules[rank];
  const lcomm_step *step = &schedule->steps[index];
  s->ranks[rank].state[index] = STATE_OVER;
  s->ranks[rank].left--;
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t later = schedule->next[step->next_first + i];
    if (--s->ranks[rank].waiting[later] == 0) {
      s->ranks[rank].state[later] = STATE_READY;
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

static void post_send(sim_state *s, int rank, uint32_t index, const lcomm_step *step) {
  sim_slot *slot = readable(s, rank, index, step->slot);
  if (!slot) {
    return;
  }
  count_far(s, rank, step);
  if (s->options->rendezvous) {
    s->ranks[rank].state[index] = STATE_POSTED;
    s->ranks[rank].far_sends += is_far(s, rank, step);
    return;
  }
  sim_mail *mail = calloc(1, sizeof *mail);
  mail->from = rank;
  mail->to = step->peer;
  mail->message = step->message;
  mail->count = s->world->schedules[rank].slots[step->slot].count;
  mail->elements = calloc(mail->count + 1, sizeof(sim_element));
  memcpy(mail->elements, slot->elements, mail->count * sizeof(sim_element));
  mail->next = s->mail;
  s->mail = mail;
  finish(s, rank, index);
}

static bool deliver(sim_state *s, int rank, uint32_t index, const sim_element *elements,
                    uint64_t count) {
  const lcomm_step *step = step_at(s, rank, index);
  if (count != s->world->schedules[rank].slots[step->slot].count) {
    fail(s, rank, index, "receives a message of another size");
    return false;
  }
  write_slot(s, rank, step->slot, elements);
  finish(s, rank, index);
  return true;
}

static bool receive_mail(sim_state *s, int rank, uint32_t index, const lcomm_step *step) {
  for (sim_mail **link = &s->mail; *link; link = &(*link)->next) {
    sim_mail *mail = *link;
    if (mail->to == rank && mail->from == step->peer && mail->message == step->message) {
      *link = mail->next;
      bool good = deliver(s, rank, index, mail->elements, mail->count);
      free(mail->elements);
      free(mail);
      return good;
    }
  }
  return false;
}

static bool meet_sender(sim_state *s, int rank, uint32_t index, const lcomm_step *step) {
  const lcomm_schedule *sender = &s->world->schedules[step->peer];
  for (uint32_t i = 0; i < sender->step_count; i++) {
    const lcomm_step *send = &sender->steps[i];
    if (s->ranks[step->peer].state[i] == STATE_POSTED && send->kind == LCOMM_STEP_SEND &&
        send->peer == rank && send->message == step->message) {
      bool good = deliver(s, rank, index, s->ranks[step->peer].slots[send->slot].elements,
                          sender->slots[send->slot].count);
      s->ranks[step->peer].far_sends -= is_far(s, step->peer, send);
      finish(s, step->peer, i);
      return good;
    }
  }
  return false;
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
    take_memory(s, rank, step->slot);
    s->ranks[rank].state[index] = STATE_POSTED;
    return;
  }
  finish(s, rank, index);
}

/* Try to move one step of one rank, looking from a random place on. */
static bool move_rank(sim_state *s, int rank) {
  uint32_t steps = s->world->schedules[rank].step_count;
  uint32_t from = steps ? (uint32_t)(draw(s) % steps) : 0;
  for (uint32_t k = 0; k < steps; k++) {
    uint32_t index = (from + k) % steps;
    char state = s->ranks[rank].state[index];
    const lcomm_step *step = step_at(s, rank, index);
    if (state == STATE_READY && !must_wait(s, rank, step)) {
      start_step(s, rank, index);
      return true;
    }
    if (state == STATE_POSTED && step->kind == LCOMM_STEP_RECV &&
        (s->options->rendezvous ? meet_sender(s, rank, index, step)
                                : receive_mail(s, rank, index, step))) {
      return true;
    }
  }
  return false;
}

static bool move_any(sim_state *s, bool with_held) {
  int size = s->world->size;
  int from = (int)(draw(s) % (uint64_t)size);
  for (int k = 0; k < size; k++) {
    int rank = (from + k) % size;
    if ((rank != s->options->held_rank || with_held) && move_rank(s, rank)) {
      return true;
    }
  }
  return false;
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
  } else if (!reference_links_alike(schedule, copies)) {
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
  }
}

static void prepare(sim_state *s) {
  s->ranks = calloc((size_t)s->world->size, sizeof *s->ranks);
  for (int rank = 0; rank < s->world->size; rank++) {
    link_rank(s, rank);
    prepare_rank(s, rank);
  }
}

static void clean_up(sim_state *s) {
  while (s->mail) {
    sim_mail *next = s->mail->next;
    free(s->mail->elements);
    free(s->mail);
    s->mail = next;
  }
  for (int rank = 0; rank < s->world->size; rank++) {
    for (uint32_t i = 0; i < s->world->schedules[rank].slot_count; i++) {
      if (!s->ranks[rank].slots[i].window) {
        free(s->ranks[rank].slots[i].elements);
      }
    }
    free(s->ranks[rank].slots);
    free(s->ranks[rank].waiting);
    free(s->ranks[rank].state);
  }
  free(s->ranks);
}

int sim_run(sim_world *world, const sim_options *options, char *why, size_t size) {
  sim_state s = {.world = world,
                 .options = options,
                 .random = options->seed * UINT64_C(0x9e3779b97f4a7c15) + 1,
                 .why = why,
                 .why_size = size};
  world->far_elements = 0;
  prepare(&s);
  while (!s.failed && move_any(&s, false)) {
  }
  world->over_before_held = options->held_rank >= 0 ? ranks_over(&s) : 0;
  while (!s.failed && move_any(&s, true)) {
  }
  for (int rank = 0; rank < world->size && !s.failed; rank++) {
    for (uint32_t i = 0; i < world->schedules[rank].step_count; i++) {
      if (s.ranks[rank].state[i] != STATE_OVER) {
        fail(&s, rank, i, "deadlock, the step never ran");
        break;
      }
    }
  }
  if (!s.failed && s.mail) {
    fail(&s, s.mail->from, 0, "a message was never received");
  }
  clean_up(&s);
  return s.failed ? -1 : 0;
}
