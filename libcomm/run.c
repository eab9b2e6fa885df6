/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The memory of a run: everything it will need is allocated here. */

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/exec_internal.h"

/* A slot's memory: the header ends at a multiple of 64, so that payloads are
 * aligned for any kernel. */
enum { SLOT_ALIGN = 64, HEADER_OFFSET = SLOT_ALIGN - LCOMM_WIRE_HEADER_SIZE };

static size_t slot_size(size_t payload_capacity) {
  size_t inline_room = LCOMM_INLINE_SIZE - LCOMM_WIRE_HEADER_SIZE;
  size_t payload = payload_capacity > inline_room ? payload_capacity : inline_room;
  return (SLOT_ALIGN + payload + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

static bool shares_vector(const lcomm_plan *plan, uint32_t slot) {
  return plan->schedule.slots[slot].alias.count > 0;
}

/* Bytes that travel for slot `slot` at most. */
static size_t wire_capacity(const lcomm_run *run, uint32_t slot) {
  const lcomm_format *format = lcomm_run_format(run, slot);
  size_t bound = run->plan->slot_bounds[slot];
  return format->zstd ? lcomm_lossless_bound(format, bound) : bound;
}

/* A payload behind the lossless stage has memory of its own. */
static size_t apart_size(const lcomm_run *run, uint32_t slot) {
  return lcomm_run_format(run, slot)->zstd ? slot_size(run->plan->slot_bounds[slot]) : 0;
}

/* What was borrowed goes back when its readers are through. They must not wait
 * for a message of ours to leave: the lender may have borrowed that one, and
 * wait for us in the same way. A one-shot exchange of windows into the vector
 * is like that: the sum overwrites what is sent. */
static lcomm_status find_prompt_slots(lcomm_run *run) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  bool *late = calloc((size_t)schedule->step_count + 1, sizeof(*late));
  if (!late) {
    return LCOMM_ERR_MEMORY;
  }
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    run->slots[i].prompt = true;
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) { /* in program order */
    const lcomm_step *step = &schedule->steps[i];
    bool reads_one = step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_DECODE;
    if (late[i] && reads_one) {
      run->slots[step->slot].prompt = false;
    }
    for (uint32_t j = 0; late[i] && step->kind == LCOMM_STEP_REDUCE && j < step->slot_count; j++) {
      uint32_t slot = schedule->sources[step->sources + j];
      if (slot != LCOMM_SOURCE_SELF) {
        run->slots[slot].prompt = false;
      }
    }
    for (uint32_t j = 0; j < step->next_count; j++) {
      late[schedule->next[step->next_first + j]] |= late[i] || step->kind == LCOMM_STEP_SEND;
    }
  }
  free(late);
  return LCOMM_OK;
}

/* Who reads a slot, and how it comes here: slots of exact sums that arrive over
 * a link that lends them need no memory. */
static void look_at_readers(lcomm_run *run) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_DECODE) {
      run->slots[step->slot].readers++;
      run->slots[step->slot].has_memory = true;
    }
    for (uint32_t j = 0; step->kind == LCOMM_STEP_REDUCE && j < step->slot_count; j++) {
      uint32_t slot = schedule->sources[step->sources + j];
      if (slot != LCOMM_SOURCE_SELF) {
        run->slots[slot].readers++;
      }
    }
    bool lent = step->kind == LCOMM_STEP_RECV && run->plan->plain &&
                lcomm_exec_may_borrow(run, step->slot, lcomm_comm_link(run->comm, step->peer));
    if (step->kind == LCOMM_STEP_ENCODE || (step->kind == LCOMM_STEP_RECV && !lent)) {
      for (uint32_t j = 0; j < step->slot_count; j++) {
        run->slots[step->slot + j].has_memory = true;
      }
    }
  }
}

/* Bytes of a slot's own memory behind its header. */
static size_t own_size(const lcomm_run *run, uint32_t slot) {
  return run->slots[slot].has_memory ? wire_capacity(run, slot) : 0;
}

static lcomm_status make_arena(lcomm_run *run) {
  size_t total = SLOT_ALIGN, tiles = 0, most = 0;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    total += slot_size(own_size(run, i)) + apart_size(run, i);
  }
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    size_t slots = run->plan->schedule.steps[i].slot_count;
    most = slots > most ? slots : most;
  }
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    bool lent = !run->slots[i].has_memory && !run->slots[i].shares_vector;
    tiles = lent && !lcomm_exec_is_short(run->plan->slot_bounds[i]) ? most : tiles;
  }
  run->arena = lcomm_links_memory_get(&run->comm->links, total);
  run->tiles = tiles > 0 ? aligned_alloc(SLOT_ALIGN, tiles * LCOMM_FETCH_SIZE) : NULL;
  return run->arena && (run->tiles || tiles == 0) ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static lcomm_status make_slots(lcomm_run *run) {
  const lcomm_plan *plan = run->plan;
  run->slots = calloc((size_t)plan->schedule.slot_count + 1, sizeof(*run->slots));
  if (!run->slots) {
    return LCOMM_ERR_MEMORY;
  }
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    run->slots[i].shares_vector = shares_vector(plan, i);
  }
  if (find_prompt_slots(run) != LCOMM_OK) {
    return LCOMM_ERR_MEMORY;
  }
  look_at_readers(run);
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    run->slots[i].has_memory &= !run->slots[i].shares_vector;
  }
  if (make_arena(run) != LCOMM_OK) {
    return LCOMM_ERR_MEMORY;
  }
  uint8_t *place = run->arena;
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    lcomm_slot_memory *slot = &run->slots[i];
    slot->capacity = plan->slot_bounds[i];
    slot->header = place + HEADER_OFFSET;
    slot->wire_capacity = wire_capacity(run, i);
    slot->own_wire = slot->own_payload = slot->has_memory ? place + SLOT_ALIGN : NULL;
    place += slot_size(own_size(run, i));
    if (apart_size(run, i) > 0) {
      slot->own_payload = place;
      place += apart_size(run, i);
    }
    slot->payload = slot->own_payload; /* encoders look at it when they are made */
  }
  return LCOMM_OK;
}

/* One context for all slots of a stage; they are packed one after another. */
static lcomm_status make_lossless(lcomm_run *run) {
  size_t largest[LCOMM_STAGE_COUNT] = {0};
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    lcomm_stage stage = run->plan->schedule.slots[i].stage;
    size_t bound = run->plan->slot_bounds[i];
    largest[stage] = bound > largest[stage] ? bound : largest[stage];
  }
  lcomm_status status = LCOMM_OK;
  for (int i = 0; status == LCOMM_OK && i < LCOMM_STAGE_COUNT; i++) {
    const lcomm_format *format = &run->plan->stages[i].format;
    if (format->zstd) {
      status = lcomm_lossless_create(format, largest[i], &run->lossless[i]);
    }
  }
  return status;
}

static lcomm_status make_encoder(lcomm_run *run, uint32_t index,
                                 const lcomm_segment_scratch *scratch) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  if (step->kind != LCOMM_STEP_ENCODE) {
    return LCOMM_OK;
  }
  lcomm_stage stage = run->plan->schedule.slots[step->slot].stage;
  if (!lcomm_format_is_sparse(&run->plan->stages[stage].format)) {
    return LCOMM_OK;
  }
  lcomm_topk_shape shape;
  lcomm_plan_topk_shape(run->plan, stage, step->span, step->slot_count, scratch, &shape);
  lcomm_status status = lcomm_topk_create(&shape, &run->encoders[index]);
  for (uint32_t i = 0; status == LCOMM_OK && i < step->slot_count; i++) {
    if (lcomm_topk_output_bound(run->encoders[index], i) > run->slots[step->slot + i].capacity) {
      status = LCOMM_ERR_INTERNAL;
    }
  }
  return status;
}

static lcomm_status make_encoders(lcomm_run *run) {
  uint32_t steps = run->plan->schedule.step_count;
  run->encoders = calloc((size_t)steps + 1, sizeof(*run->encoders));
  lcomm_segment_scratch scratch;
  if (!run->encoders || lcomm_plan_scratch_make(run->plan, &scratch) != LCOMM_OK) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_status status = LCOMM_OK;
  for (uint32_t i = 0; status == LCOMM_OK && i < steps; i++) {
    status = make_encoder(run, i, &scratch);
  }
  lcomm_plan_scratch_free(&scratch);
  return status;
}

static bool get_memory(lcomm_run *run, size_t size, uint8_t **memory) {
  *memory = size > 0 ? lcomm_links_memory_get(&run->comm->links, size) : NULL;
  return *memory || size == 0;
}

static lcomm_status make_own_memory(lcomm_run *run) {
  return get_memory(run, lcomm_plan_vector_size(run->plan), &run->own_vector) &&
                 get_memory(run, lcomm_plan_input_size(run->plan), &run->own_input)
             ? LCOMM_OK
             : LCOMM_ERR_MEMORY;
}

static lcomm_status make_scratch(lcomm_run *run) {
  size_t most = 1;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    size_t slots = run->plan->schedule.steps[i].slot_count;
    most = slots > most ? slots : most;
  }
  run->encode_payloads = calloc(most, sizeof(*run->encode_payloads));
  run->encode_sizes = calloc(most, sizeof(*run->encode_sizes));
  run->reduce_sources = calloc(most, sizeof(*run->reduce_sources));
  run->reduce_summands = calloc(most, sizeof(*run->reduce_summands));
  return run->encode_payloads && run->encode_sizes && run->reduce_sources && run->reduce_summands
             ? LCOMM_OK
             : LCOMM_ERR_MEMORY;
}

static lcomm_status make_progress_state(lcomm_run *run) {
  size_t steps = run->plan->schedule.step_count;
  run->waiting = calloc(steps + 1, sizeof(*run->waiting));
  run->ready = calloc(steps / 64 + 1, sizeof(*run->ready));
  run->held = calloc(steps / 64 + 1, sizeof(*run->held));
  run->messages = calloc(steps + 1, sizeof(*run->messages));
  run->under_way = calloc(steps + 1, sizeof(*run->under_way));
  return run->waiting && run->ready && run->held && run->messages && run->under_way
             ? LCOMM_OK
             : LCOMM_ERR_MEMORY;
}

void lcomm_run_key(lcomm_run *run, lcomm_op op, double before, double after) {
  struct {
    uint64_t hash, op;
    double before, after;
  } key = {run->plan->hash, (uint64_t)op, before, after};
  uint32_t history = run->comm->history[run->plan->lasting];
  if (run->key != 0 && run->op == op && memcmp(&run->before, &before, sizeof(before)) == 0 &&
      memcmp(&run->after, &after, sizeof(after)) == 0) {
    run->parameters = run->key ^ history;
    return;
  }
  run->key = (uint32_t)XXH3_64bits(&key, sizeof(key)) | 1;
  run->parameters = run->key ^ history;
  run->op = op;
  run->before = before;
  run->after = after;
}

/* One rank's plan is enough to see what all do. */
static void log_plan(const lcomm_run *run) {
  char text[2048];
  if (run->comm->rank == 0) {
    lcomm_plan_describe(run->plan, &run->comm->topo, text, sizeof(text));
    lcomm_log_info(text);
  }
}

lcomm_status lcomm_run_create(lcomm_comm *comm, lcomm_plan *plan, lcomm_run **run) {
  lcomm_run *made = calloc(1, sizeof(*made));
  if (!made) {
    lcomm_plan_destroy(plan);
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "out of memory for an operation");
  }
  made->plan = plan;
  made->comm = comm;
  lcomm_status status = make_slots(made);
  status = status == LCOMM_OK ? make_encoders(made) : status;
  status = status == LCOMM_OK ? make_lossless(made) : status;
  status = status == LCOMM_OK ? make_scratch(made) : status;
  status = status == LCOMM_OK ? make_own_memory(made) : status;
  status = status == LCOMM_OK ? make_progress_state(made) : status;
  if (status != LCOMM_OK) {
    lcomm_error_thread(status, "no memory for the buffers of %s of %llu elements",
                       lcomm_collective_name(plan->collective), (unsigned long long)plan->count);
    lcomm_run_destroy(made); /* and the plan with it */
    return status;
  }
  made->quick = lcomm_quick_fits(made);
  made->quick_sent = made->quick ? calloc((size_t)comm->size, sizeof(*made->quick_sent)) : NULL;
  made->quick = made->quick_sent != NULL;
  log_plan(made);
  *run = made;
  return LCOMM_OK;
}

/* Runs whose sends were still under way when they were given up. MPI may
 * still read their slots, so they stay, reachable, to the end of the process. */
static lcomm_run *_Atomic abandoned_runs;

static void keep_abandoned(lcomm_run *run) {
  run->next = atomic_load(&abandoned_runs);
  while (!atomic_compare_exchange_weak(&abandoned_runs, &run->next, run)) {
  }
}

void lcomm_run_destroy(lcomm_run *run) {
  if (!run) {
    return;
  }
  if (run->abandoned) {
    keep_abandoned(run);
    return;
  }
  for (uint32_t i = 0; run->encoders && i < run->plan->schedule.step_count; i++) {
    lcomm_topk_destroy(run->encoders[i]);
  }
  free(run->encoders);
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    lcomm_lossless_destroy(run->lossless[i]);
  }
  lcomm_links *links = &run->comm->links;
  lcomm_links_memory_free(links, run->arena);
  lcomm_links_memory_free(links, run->own_vector);
  lcomm_links_memory_free(links, run->own_input);
  free(run->slots);
  free(run->tiles);
  free(run->encode_payloads);
  free(run->encode_sizes);
  free(run->reduce_sources);
  free(run->reduce_summands);
  free(run->waiting);
  free(run->ready);
  free(run->held);
  free(run->messages);
  free(run->under_way);
  free(run->quick_sent);
  lcomm_plan_destroy((lcomm_plan *)run->plan);
  free(run);
}
