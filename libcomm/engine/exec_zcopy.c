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
  return link->table->zero_copy && run->backend->is_host &&
         lcomm_slot_is(&run->slots[slot], LCOMM_SLOT_PROMPT) &&
         !lcomm_slot_is(&run->slots[slot], LCOMM_SLOT_ALIAS) && !run->plan->checksum &&
         !format->zstd && !lcomm_format_is_sparse(format);
}

static const void *map(lcomm_slot_memory *slot) {
  return slot->zcopy.link->table->zero_copy->map(slot->zcopy.link, &slot->zcopy.transfer);
}

lcomm_status lcomm_exec_receive_zcopy(lcomm_run *run, uint32_t index) {
  uint32_t place = run->plan->schedule.steps[index].slot;
  lcomm_slot_memory *slot = &run->slots[place];
  lcomm_payload_mapped(slot, map(slot));
  if (slot->state == LCOMM_PAYLOAD_MAPPED || !lcomm_slot_is(slot, LCOMM_SLOT_MEMORY)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_exec_get(run, place, 0, slot->wire_size, slot->own_wire));
  lcomm_payload_copied(slot);
  return LCOMM_OK;
}

lcomm_status lcomm_exec_copy_zcopy(lcomm_run *run, uint32_t place, size_t offset, size_t size,
                                   void *bytes) {
  const uint8_t *mapped = map(&run->slots[place]);
  if (!mapped) {
    return lcomm_exec_get(run, place, offset, size, bytes);
  }
  memcpy(bytes, mapped + offset, size);
  return LCOMM_OK;
}

lcomm_status lcomm_exec_get(lcomm_run *run, uint32_t place, size_t offset, size_t size,
                            void *bytes) {
  const lcomm_payload_zcopy *zcopy = &run->slots[place].zcopy;
  lcomm_transport *link = zcopy->link;
  if (link->table->zero_copy->get(link, &zcopy->transfer, offset, size, bytes) == LCOMM_OK) {
    return LCOMM_OK;
  }
  char who[96];
  return lcomm_fail_peer(
      run->comm, LCOMM_ERR_TRANSPORT, zcopy->rank,
      "%s #%u: the memory of %s, on this host, cannot be read. %s. Look at its log.",
      lcomm_collective_name(run->plan->collective), run->sequence,
      lcomm_comm_who(run->comm, zcopy->rank, who, sizeof(who)), link->why);
}

static void one_reader_less(lcomm_slot_memory *slot) {
  if (lcomm_payload_is_zcopy(slot) && --slot->readers_left == 0) {
    lcomm_payload_release(slot);
  }
}

void lcomm_exec_release(lcomm_run *run, const lcomm_step *step) {
  const uint32_t *slots = NULL;
  uint32_t count = lcomm_exec_reads(&run->plan->schedule, step, &slots);
  for (uint32_t i = 0; i < count; i++) {
    if (slots[i] != LCOMM_SOURCE_SELF) {
      one_reader_less(&run->slots[slots[i]]);
    }
  }
}

void lcomm_exec_release_all(lcomm_run *run) {
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    if (lcomm_payload_is_zcopy(&run->slots[i])) {
      lcomm_payload_release(&run->slots[i]);
    }
  }
}
