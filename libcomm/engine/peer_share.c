/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory of runs for peers: offered, taken; what stays on its device. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/peer_memory.h"
#include "libcomm/engine/peer_memory_messages.h"
#include "libcomm/engine/run_device.h"

enum { OFFERS_EVERY = 64 }; /* operations: in case that an answer was lost */

static bool is_exported(const lcomm_run *run, const lcomm_step *step) {
  return step->kind == LCOMM_STEP_SEND &&
         lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_EXPORTS);
}

/* ------------------------------------------------------------------ life */

lcomm_status lcomm_share_make(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  lcomm_run_share *share = &device->share;
  share->answers = calloc((size_t)run->plan->schedule.step_count + 1, sizeof *share->answers);
  share->stays = calloc((size_t)run->plan->schedule.slot_count + 1, sizeof *share->stays);
  share->offered = calloc((size_t)run->comm->size, sizeof *share->offered);
  if (!share->answers || !share->stays || !share->offered) {
    return LCOMM_ERR_MEMORY;
  }
  bool any = device->handle_memory != NULL;
  bool shared = any && device->table->ipc.get(device->memory, &share->memory) == 0;
  share->run = shared ? run : NULL;
  return LCOMM_OK;
}

void lcomm_share_list(lcomm_run *run) {
  lcomm_run_share *share = &run->device->share;
  if (share->run) {
    share->next = run->comm->runs.shares;
    run->comm->runs.shares = share;
  }
}

void lcomm_share_free(lcomm_run *run) {
  lcomm_run_share *share = &run->device->share;
  for (lcomm_run_share **link = &run->comm->runs.shares; *link; link = &(*link)->next) {
    if (*link == share) {
      *link = share->next;
      break;
    }
  }
  free(share->answers);
  free(share->stays);
  free(share->offered);
  *share = (lcomm_run_share){0};
}

/* ------------------------------------------------------------------ owner */

/* A payload stays where it is if all to whom it is sent read it there: it has one header. */
void lcomm_share_fix(lcomm_run *run) {
  lcomm_run_share *share = &run->device->share;
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->slot_count; i++) {
    share->stays[i] = lcomm_slot_is(&run->slots[i], LCOMM_SLOT_EXPORTS);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    if (is_exported(run, &schedule->steps[i])) {
      share->stays[schedule->steps[i].slot] &= share->answers[i] == LCOMM_SHARE_TAKEN;
    }
  }
}

/* To each peer that has not answered, once. */
static void offer(const lcomm_run *run, lcomm_run_share *share) {
  share->offers++;
  const lcomm_schedule *schedule = &run->plan->schedule;
  lcomm_offer_message message = {.kind = LCOMM_CONTROL_OFFER,
                                 .rank = run->comm->rank,
                                 .plan = run->plan->hash,
                                 .memory = share->memory};
  message.memory.offset = 0;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (is_exported(run, step) && share->answers[i] == LCOMM_SHARE_UNANSWERED &&
        share->offered[step->peer] != share->offers) {
      share->offered[step->peer] = share->offers;
      lcomm_control_send(run->comm, step->peer, &message, sizeof(message));
    }
  }
}

static bool is_time_to_offer(const lcomm_run_share *share) {
  return share->begun <= LCOMM_OPENING_OPERATIONS || share->begun % OFFERS_EVERY == 0;
}

static lcomm_run_share *find_share(const lcomm_comm *comm, uint64_t allocation) {
  lcomm_run_share *it = comm->runs.shares;
  while (it && it->memory.allocation != allocation) {
    it = it->next;
  }
  return it;
}

void lcomm_share_learn(lcomm_run *run, const lcomm_take_message *take) {
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    const lcomm_step *step = &run->plan->schedule.steps[i];
    if (is_exported(run, step) && step->peer == take->rank) {
      lcomm_share_set_answer(run, i, lcomm_take_has(take, step->message));
    }
  }
}

void lcomm_peer_memory_taken(lcomm_comm *comm, const void *bytes) {
  lcomm_take_message take;
  memcpy(&take, bytes, sizeof(take));
  lcomm_run_share *share = find_share(comm, take.allocation);
  if (share) {
    lcomm_share_learn(share->run, &take);
  }
}

/* ----------------------------------------------------------------- reader */

void lcomm_share_take_all(const lcomm_run *run, int peer, lcomm_take_message *take) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_RECV && step->peer == peer &&
        lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_FETCHED)) {
      lcomm_take_add(take, step->message);
    }
  }
}

/* What could not be opened is refused. */
static void take(const lcomm_run *run, const lcomm_peer_memory *memory) {
  lcomm_take_message message = {
      .kind = LCOMM_CONTROL_TAKE, .rank = run->comm->rank, .allocation = memory->memory.allocation};
  if (memory->base) {
    lcomm_share_take_all(run, memory->peer, &message);
  }
  lcomm_control_send(run->comm, memory->peer, &message, sizeof(message));
}

void lcomm_share_set_answer(lcomm_run *run, uint32_t step, bool taken) {
  run->device->share.answers[step] = taken ? LCOMM_SHARE_TAKEN : LCOMM_SHARE_REFUSED;
}

void lcomm_share_end(lcomm_run *run) {
  lcomm_run_share *share = &run->device->share;
  if (share->run && !run->recording && share->begun <= LCOMM_OPENING_OPERATIONS) {
    offer(run, share);
  }
}

void lcomm_share_begin(lcomm_run *run) {
  lcomm_run_share *share = &run->device->share;
  lcomm_share_fix(run);
  if (run->recording) {
    return; /* ranks have agreed before */
  }
  share->begun++;
  if (share->run && is_time_to_offer(share)) {
    offer(run, share);
  }
  for (lcomm_peer_memory *it = run->comm->runs.peer_memory; it; it = it->next) {
    if (it->is_asked && it->is_decided && it->plan == run->plan->hash &&
        it->ordinal == run->device->ordinal) {
      it->is_asked = false;
      take(run, it);
    }
  }
}
