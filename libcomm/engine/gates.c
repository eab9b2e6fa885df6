/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Gates: what ranks of a node agree on in their files, and what lanes do. */

#include <stdlib.h>

#include "libcomm/device/device_deferred.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/gates_internal.h"
#include "libcomm/engine/memory_handle.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"
#include "libcomm/transport/shm/shm_file.h"

/* ------------------------------------------------------------------- entries */

static int local(const lcomm_comm *comm, int rank) {
  return comm->topo.local[rank];
}

/* Of this rank's file, and of the other's. */
static lcomm_gate_entry *mine(const lcomm_run *run, const lcomm_gates *gates,
                              const lcomm_step *step) {
  return lcomm_gate_entry_of(&gates->files[gates->mine], local(run->comm, step->peer),
                             step->message);
}

static lcomm_gate_entry *theirs(const lcomm_run *run, const lcomm_gates *gates,
                                const lcomm_step *step) {
  return lcomm_gate_entry_of(&gates->files[local(run->comm, step->peer)], gates->mine,
                             step->message);
}

static uint32_t seen(const uint32_t *number) {
  return __atomic_load_n(number, __ATOMIC_ACQUIRE);
}

static void tell(uint32_t *number, uint32_t value) {
  __atomic_store_n(number, value, __ATOMIC_RELEASE);
}

static bool is_near(const lcomm_run *run, const lcomm_step *step) {
  return lcomm_step_is_message(step) && lcomm_device_may_stay(run->comm, step->peer);
}

static bool is_sent(const lcomm_run *run, const lcomm_step *step) {
  return step->kind == LCOMM_STEP_SEND && is_near(run, step) &&
         lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_EXPORTS);
}

bool lcomm_gates_may_await(const lcomm_run *run, const lcomm_step *step) {
  return step->kind == LCOMM_STEP_RECV && is_near(run, step) &&
         lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_FETCHED);
}

/* ---------------------------------------------------------------------- making */

/* One more than the number of any message with a rank near by. */
static uint32_t count_messages(const lcomm_run *run) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    const lcomm_step *step = &run->plan->schedule.steps[i];
    bool more = is_near(run, step) && step->message >= count;
    count = more ? step->message + 1 : count;
  }
  return count;
}

bool lcomm_gates_make_tables(const lcomm_run *run, lcomm_gates *gates) {
  size_t steps = (size_t)run->plan->schedule.step_count + 1;
  gates->slots = run->plan->schedule.slot_count;
  gates->files = calloc((size_t)gates->ranks, sizeof *gates->files);
  gates->gates = calloc(steps, sizeof *gates->gates);
  gates->are_all = calloc(steps, sizeof *gates->are_all);
  gates->from = calloc((size_t)gates->slots + 1, sizeof *gates->from);
  return gates->files && gates->gates && gates->are_all && gates->from;
}

static bool make_numbers(lcomm_gates *gates) {
  void *memory = NULL;
  if (gates->table->memory.pinned_get(LCOMM_GATES_NUMBERS * sizeof *gates->numbers, &memory) != 0) {
    return false;
  }
  gates->numbers = memory;
  tell(&gates->numbers[LCOMM_GATES_NUMBER], 1);
  tell(&gates->numbers[LCOMM_GATES_ONE], 1);
  tell(&gates->numbers[LCOMM_GATES_PASSED], 0);
  return true;
}

/* ----------------------------------------------------------------- agreement */

static void say_where(const lcomm_run *run, const lcomm_gates *gates) {
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    const lcomm_step *step = &run->plan->schedule.steps[i];
    lcomm_gate_entry *it = is_sent(run, step) ? mine(run, gates, step) : NULL;
    if (it) {
      it->place = (uint64_t)(lcomm_device_payload(run, step->slot) - run->device->memory);
      it->size = run->slots[step->slot].capacity;
    }
  }
}

lcomm_status lcomm_gates_make(lcomm_run *run, lcomm_gates **made, lcomm_gate_card *card) {
  uint32_t messages = count_messages(run);
  const lcomm_topo *topo = &run->comm->topo;
  lcomm_gates *gates = calloc(1, sizeof *gates);
  *made = gates;
  *card = (lcomm_gate_card){.file = -1};
  if (!gates) {
    return LCOMM_ERR_MEMORY;
  }
  gates->table = run->device->table;
  gates->ranks = topo->node_size[topo->node[run->comm->rank]];
  gates->mine = local(run->comm, run->comm->rank);
  gates->file = -1;
  if (!lcomm_gates_make_tables(run, gates)) {
    return LCOMM_ERR_MEMORY;
  }
  if (messages == 0 || !make_numbers(gates)) {
    return LCOMM_OK;
  }
  gates->file = lcomm_gate_file_make(gates, messages);
  if (gates->file < 0) {
    return LCOMM_OK;
  }
  *card = (lcomm_gate_card){.messages = messages, .file = gates->file};
  if (run->device->share.run) {
    card->memory = run->device->share.memory;
    card->memory.offset = 0;
    say_where(run, gates);
  }
  return LCOMM_OK;
}

static void take(const lcomm_run *run, lcomm_gates *gates, const lcomm_step *step) {
  const lcomm_gate_file *file = &gates->files[local(run->comm, step->peer)];
  const lcomm_gate_entry *it = theirs(run, gates, step);
  lcomm_gate_entry *own = mine(run, gates, step);
  const uint8_t *from = it ? lcomm_gate_place(file, it, run->slots[step->slot].capacity) : NULL;
  gates->from[step->slot] = from;
  if (from && own) {
    tell(&own->takes, 1);
  }
}

void lcomm_gates_open(lcomm_run *run, lcomm_gates *gates, const lcomm_gate_card *cards) {
  const lcomm_comm *comm = run->comm;
  for (int rank = 0; rank < comm->size && gates->files[gates->mine].entries; rank++) {
    if (rank != comm->rank) {
      lcomm_gate_file_open(gates, comm, rank, &cards[rank]);
    }
  }
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    if (lcomm_gates_may_await(run, &run->plan->schedule.steps[i])) {
      take(run, gates, &run->plan->schedule.steps[i]);
    }
  }
}

static bool stays(const lcomm_run *run, const lcomm_step *step) {
  return is_sent(run, step) && run->device->share.stays[step->slot];
}

/* A SEND that waits for more than its ENCODE leaves later than the lane comes past it. */
bool lcomm_gates_may_write(const lcomm_run *run, const lcomm_step *step) {
  return stays(run, step) && step->waits_for == 1;
}

/* Nobody opens the file any more. */
void lcomm_gates_commit(lcomm_run *run, lcomm_gates *gates) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  lcomm_shm_file_close(gates->file);
  gates->file = -1;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    const lcomm_gate_entry *it = is_sent(run, step) ? theirs(run, gates, step) : NULL;
    lcomm_share_set_answer(run, i, it && seen(&it->takes) != 0);
  }
  lcomm_share_fix(run);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    lcomm_gate_entry *own = stays(run, step) ? mine(run, gates, step) : NULL;
    lcomm_gate_entry *its = stays(run, step) ? theirs(run, gates, step) : NULL;
    if (own && its) {
      bool has_gate = lcomm_gates_may_write(run, step);
      tell(&own->stays, has_gate ? LCOMM_GATE_HAS_GATE : LCOMM_GATE_STAYS);
      gates->gates[i] = has_gate ? &its->gate : NULL;
    }
  }
}

/* Computations whose messages all have gates, and those that wait for none. */
void lcomm_gates_find_all(const lcomm_schedule *schedule, lcomm_gates *gates) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    gates->are_all[i] = true;
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    bool has_gate = step->kind == LCOMM_STEP_RECV && gates->gates[i];
    for (uint32_t k = 0; k < step->next_count && lcomm_step_is_message(step); k++) {
      gates->are_all[schedule->next[step->next_first + k]] &= has_gate;
    }
  }
}

void lcomm_gates_join(lcomm_run *run, lcomm_gates *gates) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (!lcomm_gates_may_await(run, step)) {
      gates->count += gates->gates[i] != NULL;
      continue;
    }
    const lcomm_gate_entry *it = gates->from[step->slot] ? theirs(run, gates, step) : NULL;
    bool has_gate = it && seen(&it->stays) == LCOMM_GATE_HAS_GATE;
    gates->gates[i] = has_gate ? &mine(run, gates, step)->gate : NULL;
    gates->from[step->slot] = has_gate ? gates->from[step->slot] : NULL;
    run->tape->from[step->slot] = gates->from[step->slot];
    gates->count += has_gate;
  }
  lcomm_gates_find_all(schedule, gates);
}

void lcomm_gates_free(lcomm_gates *gates) {
  if (!gates) {
    return;
  }
  for (int rank = 0; gates->files && rank < gates->ranks; rank++) {
    lcomm_gate_file_close(gates, &gates->files[rank]);
  }
  lcomm_shm_file_close(gates->file);
  (void)lcomm_device_freeing(gates->table)->memory.pinned_free(gates->numbers);
  free(gates->files);
  free(gates->gates);
  free(gates->are_all);
  free(gates->from);
  free(gates);
}

/* ------------------------------------------------------- playing and replaying */

uint32_t *lcomm_gate_of(const lcomm_gates *gates, uint32_t step) {
  return gates->gates[step];
}

bool lcomm_gates_are_all(const lcomm_gates *gates, uint32_t step) {
  return gates->are_all[step];
}

lcomm_device_gate lcomm_gate_task(const lcomm_gates *gates, lcomm_device_number_task task,
                                  uint32_t step) {
  return (lcomm_device_gate){.task = task,
                             .place = gates->gates[step],
                             .number = &gates->numbers[LCOMM_GATES_NUMBER],
                             .passed = &gates->numbers[LCOMM_GATES_PASSED]};
}

lcomm_device_gate lcomm_gate_number(const lcomm_gates *gates, uint32_t *place) {
  return (lcomm_device_gate){.task = LCOMM_DEVICE_WRITE,
                             .place = place,
                             .number = &gates->numbers[LCOMM_GATES_ONE],
                             .passed = &gates->numbers[LCOMM_GATES_PASSED]};
}

const uint8_t *lcomm_gates_from(const lcomm_gates *gates, uint32_t slot) {
  return gates->from[slot];
}

const uint8_t *lcomm_gates_at(const lcomm_gates *gates, const lcomm_comm *comm, int peer,
                              const lcomm_device_ipc *memory) {
  const lcomm_gate_file *file = &gates->files[local(comm, peer)];
  bool open = file->memory && lcomm_device_ipc_is_same(&file->ipc, memory);
  return open ? (const uint8_t *)file->memory + memory->offset : NULL;
}

void lcomm_gates_count(lcomm_gates *gates, uint32_t replay) {
  if (gates->numbers) {
    tell(&gates->numbers[LCOMM_GATES_NUMBER], replay);
  }
}

/* Payloads of peers may be gone by then. */
void lcomm_gates_pass(const lcomm_run *run, lcomm_gates *gates) {
  for (uint32_t i = 0; i < gates->slots; i++) {
    if (gates->from[i]) {
      __atomic_store_n(&run->tape->from[i], run->slots[i].own_payload, __ATOMIC_RELEASE);
    }
  }
  if (gates->numbers) {
    tell(&gates->numbers[LCOMM_GATES_PASSED], 1);
  }
}

uint32_t lcomm_gates_all(const lcomm_gates *gates) {
  return gates->count;
}
