/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The slots of a run: how much memory each has, and who reads it. */

#include <stdlib.h>

#include "libcomm/engine/exec_internal.h"

/* A slot's memory: the header ends at a multiple of 64, so that payloads are
 * aligned for any kernel. */
enum { SLOT_ALIGN = 64, HEADER_OFFSET = SLOT_ALIGN - LCOMM_WIRE_HEADER_SIZE };

static size_t aligned(size_t payload_size) {
  return (SLOT_ALIGN + payload_size + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

static bool is_alias(const lcomm_plan *plan, uint32_t slot) {
  return plan->schedule.slots[slot].alias.count > 0;
}

/* Bytes that travel for slot `slot` at most. */
static size_t wire_capacity(const lcomm_run *run, uint32_t slot) {
  const lcomm_format *format = lcomm_run_format(run, slot);
  size_t bound = run->plan->slot_sizes[slot].bound;
  return format->zstd ? lcomm_lossless_bound(format, bound) : bound;
}

/* A payload behind the lossless stage has memory of its own. */
static size_t apart_size(const lcomm_run *run, uint32_t slot) {
  return lcomm_run_format(run, slot)->zstd ? aligned(run->plan->slot_sizes[slot].bound) : 0;
}

/* A zero-copy payload is released when its readers are over. They must not wait for a message
 * of ours to leave: the sender may read that one in the same way, and wait for us to be over.
 * A one-shot exchange of aliases is like that: the sum overwrites what is sent. */
static lcomm_status find_prompt_slots(lcomm_run *run) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  bool *late = calloc((size_t)schedule->step_count + 1, sizeof *late);
  if (!late) {
    return LCOMM_ERR_MEMORY;
  }
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    run->slots[i].traits |= LCOMM_SLOT_PROMPT;
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) { /* in program order */
    const lcomm_step *step = &schedule->steps[i];
    const uint32_t *slots = NULL;
    uint32_t count = late[i] ? lcomm_exec_reads(schedule, step, &slots) : 0;
    for (uint32_t j = 0; j < count; j++) {
      if (slots[j] != LCOMM_SOURCE_SELF) {
        run->slots[slots[j]].traits &= ~(unsigned)LCOMM_SLOT_PROMPT;
      }
    }
    for (uint32_t j = 0; j < step->next_count; j++) {
      late[schedule->next[step->next_first + j]] |= late[i] || step->kind == LCOMM_STEP_SEND;
    }
  }
  free(late);
  return LCOMM_OK;
}

/* Who reads a slot, and how it comes here: slots of exact sums that are received zero-copy
 * need no memory. */
static void look_at_readers(lcomm_run *run) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_RECV) {
      run->slots[step->slot].traits |= LCOMM_SLOT_RECEIVED;
    }
    if (step->kind == LCOMM_STEP_SEND &&
        lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_RECEIVED)) {
      run->slots[step->slot].traits |= LCOMM_SLOT_FORWARDED;
    }
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_DECODE) {
      run->slots[step->slot].traits |= LCOMM_SLOT_MEMORY;
    }
    const uint32_t *slots = NULL;
    uint32_t count = lcomm_exec_reads(schedule, step, &slots);
    for (uint32_t j = 0; j < count; j++) {
      if (slots[j] != LCOMM_SOURCE_SELF) {
        run->slots[slots[j]].readers++;
      }
    }
    bool zcopy = step->kind == LCOMM_STEP_RECV && run->plan->plain &&
                 lcomm_exec_may_zcopy(run, step->slot, lcomm_comm_link(run->comm, step->peer));
    if (step->kind == LCOMM_STEP_ENCODE || (step->kind == LCOMM_STEP_RECV && !zcopy)) {
      for (uint32_t j = 0; j < step->slot_count; j++) {
        run->slots[step->slot + j].traits |= LCOMM_SLOT_MEMORY;
      }
    }
  }
}

/* The longest payload of this message that travels with its header. One that is sent is known: long
 * ones of one size never do. Of those that are received a peer whose call differs may send the
 * longest of all, and is to be named for it. */
static size_t room_of(const lcomm_run *run, const lcomm_step *step) {
  size_t longest = lcomm_exec_short_max(lcomm_comm_link(run->comm, step->peer));
  size_t most = wire_capacity(run, step->slot);
  const lcomm_format *format = lcomm_run_format(run, step->slot);
  if (step->kind == LCOMM_STEP_RECV) {
    return longest;
  }
  if (most <= longest) {
    return most;
  }
  return lcomm_format_is_sparse(format) || format->zstd ? longest : 0;
}

/* Room for the longest payload that may come or go with its header. */
static void make_room(lcomm_run *run) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (lcomm_step_is_message(step)) {
      size_t room = room_of(run, step), *of = &run->slots[step->slot].room;
      *of = room > *of ? room : *of;
    }
  }
}

/* Of a slot and those that take its memory after it: the first. Those of devices have their own. */
static uint32_t place_of(const lcomm_run *run, uint32_t slot) {
  return run->backend->is_host ? run->plan->schedule.slots[slot].place : slot;
}

/* Bytes of a slot with its header. */
static size_t slot_size(const lcomm_run *run, uint32_t slot) {
  size_t own = lcomm_slot_is(&run->slots[slot], LCOMM_SLOT_MEMORY) ? wire_capacity(run, slot) : 0;
  size_t room = run->slots[slot].room;
  return aligned(own > room ? own : room);
}

/* All runs use the same tiles, each for the time of one computation. */
static bool make_tiles(lcomm_comm *comm, size_t count) {
  if (count <= comm->runs.tile_count) {
    return true;
  }
  uint8_t *more = aligned_alloc(SLOT_ALIGN, count * LCOMM_GET_SIZE);
  if (!more) {
    return false;
  }
  free(comm->runs.tiles);
  comm->runs.tiles = more;
  comm->runs.tile_count = count;
  return true;
}

/* What all slots in the place of each need: sizes has one entry for each slot. */
static size_t size_places(const lcomm_run *run, size_t *sizes) {
  size_t total = 0;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    size_t own = slot_size(run, i) + apart_size(run, i), *size = &sizes[place_of(run, i)];
    total += own > *size ? own - *size : 0;
    *size = own > *size ? own : *size;
  }
  return total;
}

static lcomm_status make_arena(lcomm_run *run, size_t *sizes) {
  size_t total = SLOT_ALIGN + size_places(run, sizes), tiles = 0, most = 0;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    size_t slots = run->plan->schedule.steps[i].slot_count;
    most = slots > most ? slots : most;
  }
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    bool remote = !(run->slots[i].traits & (LCOMM_SLOT_MEMORY | LCOMM_SLOT_ALIAS));
    tiles = remote && run->plan->slot_sizes[i].bound > run->slots[i].room ? most : tiles;
  }
  run->memory.arena = run->backend->slots_memory(run, total);
  return run->memory.arena && make_tiles(run->comm, tiles) ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static void place_slot(lcomm_run *run, uint32_t index, uint8_t *begin) {
  lcomm_slot_memory *slot = &run->slots[index];
  slot->capacity = run->plan->slot_sizes[index].bound;
  slot->header = begin + HEADER_OFFSET;
  slot->wire_capacity = wire_capacity(run, index);
  bool own = lcomm_slot_is(slot, LCOMM_SLOT_MEMORY);
  slot->own_wire = slot->own_payload = own ? begin + SLOT_ALIGN : NULL;
  if (apart_size(run, index) > 0) {
    slot->own_payload = begin + slot_size(run, index);
  }
  slot->payload = slot->own_payload; /* encoders look at it when they are made */
}

static void place_slots(lcomm_run *run, const size_t *sizes) {
  uint8_t *end = run->memory.arena;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    uint32_t place = place_of(run, i); /* <= i */
    place_slot(run, i, place == i ? end : run->slots[place].header - HEADER_OFFSET);
    end += place == i ? sizes[i] : 0;
  }
}

lcomm_status lcomm_run_make_slots(lcomm_run *run) {
  const lcomm_plan *plan = run->plan;
  run->slots = calloc((size_t)plan->schedule.slot_count + 1, sizeof *run->slots);
  if (!run->slots) {
    return LCOMM_ERR_MEMORY;
  }
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    run->slots[i].traits = run->backend->is_host && is_alias(plan, i) ? LCOMM_SLOT_ALIAS : 0;
  }
  if (find_prompt_slots(run) != LCOMM_OK) {
    return LCOMM_ERR_MEMORY;
  }
  look_at_readers(run);
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    if (lcomm_slot_is(&run->slots[i], LCOMM_SLOT_ALIAS)) {
      run->slots[i].traits &= ~(unsigned)LCOMM_SLOT_MEMORY;
    }
  }
  make_room(run);
  size_t *sizes = calloc((size_t)plan->schedule.slot_count + 1, sizeof *sizes);
  lcomm_status status = sizes ? make_arena(run, sizes) : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    place_slots(run, sizes);
  }
  free(sizes);
  return status;
}
