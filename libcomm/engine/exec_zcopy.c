/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads that are read where their sender has them. Only those that mean
 * something whatever they hold: a sender could change them while they are read,
 * so positions of a top-k and compressed streams are received into memory of
 * our own, and checked there.
 */

#include <string.h>

#include "libcomm/engine/exec_internal.h"

bool lcomm_exec_may_zcopy(const lcomm_run *run, uint32_t slot, const lcomm_transport *link) {
  const lcomm_format *format = lcomm_run_format(run, slot);
  return link->table->zero_copy && !run->device && run->slots[slot].prompt &&
         !run->slots[slot].shares_vector && !run->plan->checksum && !format->zstd &&
         !lcomm_format_is_sparse(format);
}

void lcomm_exec_release_zcopy(lcomm_slot_memory *slot) {
  slot->lender->table->zero_copy->release(slot->lender, &slot->loan);
  slot->lender = NULL;
  slot->far = false;
  slot->wire = slot->own_wire;
  slot->payload = slot->own_payload;
}

lcomm_status lcomm_exec_receive_zcopy(lcomm_run *run, uint32_t index) {
  uint32_t place = run->plan->schedule.steps[index].slot;
  lcomm_slot_memory *slot = &run->slots[place];
  const void *view = slot->lender->table->zero_copy->map(slot->lender, &slot->loan);
  if (view) {
    slot->wire = slot->payload = (uint8_t *)(uintptr_t)view; /* only read */
    return LCOMM_OK;
  }
  if (!slot->has_memory) {
    slot->far = true;
    return LCOMM_OK;
  }
  lcomm_status status = lcomm_exec_fetch(run, place, 0, slot->wire_size, slot->own_wire);
  if (status == LCOMM_OK) {
    lcomm_exec_release_zcopy(slot);
  }
  return status;
}

lcomm_status lcomm_exec_get_zcopy(lcomm_run *run, uint32_t place, size_t offset, size_t size,
                                  void *bytes) {
  const lcomm_slot_memory *slot = &run->slots[place];
  const uint8_t *view = slot->lender->table->zero_copy->map(slot->lender, &slot->loan);
  if (!view) {
    return lcomm_exec_fetch(run, place, offset, size, bytes);
  }
  memcpy(bytes, view + offset, size);
  return LCOMM_OK;
}

lcomm_status lcomm_exec_fetch(lcomm_run *run, uint32_t place, size_t offset, size_t size,
                              void *bytes) {
  lcomm_slot_memory *slot = &run->slots[place];
  lcomm_transport *lender = slot->lender;
  if (lender->table->zero_copy->get(lender, &slot->loan, offset, size, bytes) == LCOMM_OK) {
    return LCOMM_OK;
  }
  char who[96];
  return lcomm_fail_peer(
      run->comm, LCOMM_ERR_TRANSPORT, slot->lender_rank,
      "%s #%u: the memory of %s, on this host, cannot be read. %s. Look at its log.",
      lcomm_collective_name(run->plan->collective), run->sequence,
      lcomm_comm_who(run->comm, slot->lender_rank, who, sizeof(who)), lender->table->why(lender));
}

static void one_reader_less(lcomm_slot_memory *slot) {
  if (slot->lender && --slot->readers_left == 0) {
    lcomm_exec_release_zcopy(slot);
  }
}

void lcomm_exec_release(lcomm_run *run, const lcomm_step *step) {
  if (step->kind == LCOMM_STEP_REDUCE) {
    const uint32_t *sources = run->plan->schedule.sources + step->sources;
    for (uint32_t i = 0; i < step->slot_count; i++) {
      if (sources[i] != LCOMM_SOURCE_SELF) {
        one_reader_less(&run->slots[sources[i]]);
      }
    }
  } else if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_DECODE) {
    one_reader_less(&run->slots[step->slot]);
  }
}

void lcomm_exec_give_up(lcomm_run *run) {
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    if (run->slots[i].lender) {
      lcomm_exec_release_zcopy(&run->slots[i]);
    }
  }
}
