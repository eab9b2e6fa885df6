/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/payload.h"

/* ---------------------------------------------------------------- the rule */

#define TO(state) (1u << LCOMM_PAYLOAD_##state)

static const unsigned successors[LCOMM_PAYLOAD_STATE_COUNT] = {
    [LCOMM_PAYLOAD_EMPTY] = TO(POSTED) | TO(ENCODED) | TO(LOCAL) | TO(ON_DEVICE) | TO(EXPORTED),
    [LCOMM_PAYLOAD_POSTED] = TO(LOCAL) | TO(REQUESTED) | TO(HANDLE),
    [LCOMM_PAYLOAD_ENCODED] = TO(LOCAL) | TO(ON_DEVICE),
    [LCOMM_PAYLOAD_LOCAL] = TO(ON_BOTH),
    [LCOMM_PAYLOAD_ON_DEVICE] = TO(ON_BOTH),
    [LCOMM_PAYLOAD_REQUESTED] = TO(MAPPED) | TO(REMOTE) | TO(EMPTY),
    [LCOMM_PAYLOAD_HANDLE] = TO(ON_PEER_DEVICE) | TO(LOCAL) | TO(EMPTY),
    [LCOMM_PAYLOAD_MAPPED] = TO(EMPTY),
    [LCOMM_PAYLOAD_REMOTE] = TO(LOCAL) | TO(EMPTY),
    [LCOMM_PAYLOAD_ON_PEER_DEVICE] = TO(EMPTY),
};

bool lcomm_payload_may_become(lcomm_payload_state from, lcomm_payload_state to) {
  return successors[from] >> to & 1;
}

static void become(lcomm_slot_memory *slot, lcomm_payload_state to) {
  LCOMM_ASSERT(lcomm_payload_may_become(slot->state, to));
  slot->state = to;
}

/* --------------------------------------------------------------- questions */

static bool is_one_of(const lcomm_slot_memory *slot, unsigned states) {
  return states >> slot->state & 1;
}

bool lcomm_payload_is_on_device(const lcomm_slot_memory *slot) {
  return is_one_of(slot, TO(ON_DEVICE) | TO(ON_BOTH) | TO(EXPORTED) | TO(ON_PEER_DEVICE));
}

bool lcomm_payload_is_readable(const lcomm_slot_memory *slot) {
  return is_one_of(slot, TO(LOCAL) | TO(ON_BOTH) | TO(MAPPED));
}

bool lcomm_payload_is_complete(const lcomm_slot_memory *slot) {
  return lcomm_payload_is_readable(slot) || slot->state == LCOMM_PAYLOAD_EXPORTED;
}

/* ------------------------------------------------------------- transitions */

void lcomm_payload_reset(lcomm_slot_memory *slot, uint8_t *alias) {
  LCOMM_ASSERT(!lcomm_payload_is_zcopy(slot)); /* the operation before released it */
  LCOMM_ASSERT(!alias == !lcomm_slot_is(slot, LCOMM_SLOT_ALIAS));
  slot->state = LCOMM_PAYLOAD_EMPTY;
  slot->readers_left = slot->readers;
  slot->wire = alias ? alias : slot->own_wire;
  slot->payload = alias ? alias : slot->own_payload;
}

void lcomm_payload_encoded(lcomm_slot_memory *slot) {
  become(slot, LCOMM_PAYLOAD_ENCODED);
}

void lcomm_payload_made(lcomm_slot_memory *slot) {
  become(slot, LCOMM_PAYLOAD_LOCAL);
}

void lcomm_payload_on_device(lcomm_slot_memory *slot) {
  bool both = slot->state == LCOMM_PAYLOAD_LOCAL;
  become(slot, both ? LCOMM_PAYLOAD_ON_BOTH : LCOMM_PAYLOAD_ON_DEVICE);
}

void lcomm_payload_on_host(lcomm_slot_memory *slot) {
  bool both = slot->state == LCOMM_PAYLOAD_ON_DEVICE;
  become(slot, both ? LCOMM_PAYLOAD_ON_BOTH : LCOMM_PAYLOAD_LOCAL);
}

void lcomm_payload_exported(lcomm_slot_memory *slot) {
  LCOMM_ASSERT(lcomm_slot_is(slot, LCOMM_SLOT_EXPORTS));
  become(slot, LCOMM_PAYLOAD_EXPORTED);
}

void lcomm_payload_posted(lcomm_slot_memory *slot) {
  LCOMM_ASSERT(lcomm_slot_is(slot, LCOMM_SLOT_RECEIVED));
  become(slot, LCOMM_PAYLOAD_POSTED);
}

void lcomm_payload_received_inline(lcomm_slot_memory *slot, uint8_t *bytes) {
  slot->wire = slot->payload = bytes;
  become(slot, LCOMM_PAYLOAD_LOCAL);
}

void lcomm_payload_received(lcomm_slot_memory *slot) {
  LCOMM_ASSERT(slot->wire || slot->wire_size == 0);
  become(slot, LCOMM_PAYLOAD_LOCAL);
}

lcomm_status lcomm_payload_request(lcomm_slot_memory *slot, lcomm_payload_state what,
                                   lcomm_transport *link, int rank, uint32_t tag, size_t size) {
  LCOMM_ASSERT(what == LCOMM_PAYLOAD_REQUESTED || what == LCOMM_PAYLOAD_HANDLE);
  lcomm_status status =
      link->table->zero_copy->receive(link, rank, tag, size, &slot->zcopy.transfer);
  if (status == LCOMM_OK) {
    slot->zcopy.link = link;
    slot->zcopy.rank = rank;
    become(slot, what);
  }
  return status;
}

void lcomm_payload_mapped(lcomm_slot_memory *slot, const void *mapped) {
  if (mapped) {
    slot->wire = slot->payload = (uint8_t *)(uintptr_t)mapped; /* only read */
  }
  become(slot, mapped ? LCOMM_PAYLOAD_MAPPED : LCOMM_PAYLOAD_REMOTE);
}

void lcomm_payload_on_peer_device(lcomm_slot_memory *slot) {
  become(slot, LCOMM_PAYLOAD_ON_PEER_DEVICE);
}

void lcomm_payload_use_memory(lcomm_slot_memory *slot, uint8_t *memory) {
  LCOMM_ASSERT(slot->state == LCOMM_PAYLOAD_HANDLE && !slot->wire && memory);
  slot->wire = slot->payload = slot->own_wire = slot->own_payload = memory;
}

static void end_transfer(lcomm_slot_memory *slot) {
  LCOMM_ASSERT(lcomm_payload_is_zcopy(slot));
  slot->zcopy.link->table->zero_copy->release(slot->zcopy.link, &slot->zcopy.transfer);
}

void lcomm_payload_copied(lcomm_slot_memory *slot) {
  end_transfer(slot);
  become(slot, LCOMM_PAYLOAD_LOCAL);
}

void lcomm_payload_release(lcomm_slot_memory *slot) {
  end_transfer(slot);
  slot->wire = slot->own_wire;
  slot->payload = slot->own_payload;
  become(slot, LCOMM_PAYLOAD_EMPTY);
}

void lcomm_payload_cancel(lcomm_slot_memory *slot) {
  slot->zcopy.link->table->cancel(slot->zcopy.link, &slot->zcopy.transfer);
  become(slot, LCOMM_PAYLOAD_EMPTY);
}
