/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAYLOAD_H
#define LCOMM_ENGINE_PAYLOAD_H

/* The payload of a slot: where its bytes are during an operation, and every way in which that
 * changes. The functions of this file alone write `state`, `wire`, `payload` and `zcopy`. */

#include "libcomm/base/assert.h"
#include "libcomm/transport/transport.h"

typedef enum lcomm_payload_state {
  LCOMM_PAYLOAD_EMPTY,     /* nowhere: not made, not received, or released */
  LCOMM_PAYLOAD_POSTED,    /* a receive is posted */
  LCOMM_PAYLOAD_ENCODED,   /* made by a REDUCE in place of its ENCODE, which is still to come */
  LCOMM_PAYLOAD_LOCAL,     /* in memory of the host: the slot's own, or its part of the vector */
  LCOMM_PAYLOAD_ON_DEVICE, /* in memory of the run's device */
  LCOMM_PAYLOAD_ON_BOTH,   /* in memory of the host and of the run's device */
  LCOMM_PAYLOAD_EXPORTED,  /* on the run's device; its memory handle is sent in its place */
  /* Zero-copy receives, which end with a release: */
  LCOMM_PAYLOAD_REQUESTED,     /* a zero-copy receive of the payload is posted */
  LCOMM_PAYLOAD_HANDLE,        /* one of its memory handle is posted, or over */
  LCOMM_PAYLOAD_MAPPED,        /* read in memory of the sender, which is mapped here */
  LCOMM_PAYLOAD_REMOTE,        /* got from memory of the sender, piece by piece */
  LCOMM_PAYLOAD_ON_PEER_DEVICE /* read by kernels in memory of the sender's device */
} lcomm_payload_state;

enum { LCOMM_PAYLOAD_STATE_COUNT = LCOMM_PAYLOAD_ON_PEER_DEVICE + 1 };

/* What a slot is, fixed when the run is made. */
typedef enum lcomm_slot_trait {
  LCOMM_SLOT_ALIAS = 1,      /* its payload is a part of the vector */
  LCOMM_SLOT_MEMORY = 2,     /* it has memory of its own; without, it is always zero-copy */
  LCOMM_SLOT_PROMPT = 4,     /* none of its readers waits for a message of ours to leave */
  LCOMM_SLOT_RECEIVED = 8,   /* it comes by a message */
  LCOMM_SLOT_FORWARDED = 16, /* ... and another message sends it on */
  LCOMM_SLOT_EXPORTS = 32,   /* on a device: its memory handle may be sent */
  LCOMM_SLOT_FETCHED = 64    /* on a device: a lane fetches it, from the host or from a peer */
} lcomm_slot_trait;

/* A zero-copy receive. */
typedef struct lcomm_payload_zcopy {
  lcomm_transport *link;
  int rank; /* the sender */
  lcomm_transfer transfer;
} lcomm_payload_zcopy;

/* What travels is the header and then `wire`: the payload itself, or what the lossless stage
 * made of it. A slot with memory of its own has header and wire in one piece. */
typedef struct lcomm_slot_memory {
  lcomm_payload_state state;
  unsigned traits; /* of lcomm_slot_trait */
  uint8_t *header; /* LCOMM_WIRE_HEADER_SIZE bytes, then room to inline */
  size_t room;     /* behind the header, for a payload that travels with it */
  uint8_t *wire;
  size_t wire_size, wire_capacity;
  uint8_t *payload;
  size_t payload_size, capacity;
  uint8_t *own_wire, *own_payload; /* NULL without memory of its own */
  lcomm_payload_zcopy zcopy;
  uint32_t readers, readers_left; /* steps that read the slot */
} lcomm_slot_memory;

static inline bool lcomm_slot_is(const lcomm_slot_memory *slot, lcomm_slot_trait trait) {
  return slot->traits & trait;
}

/* Is a zero-copy receive in flight, or not released? */
static inline bool lcomm_payload_is_zcopy(const lcomm_slot_memory *slot) {
  return slot->state >= LCOMM_PAYLOAD_REQUESTED;
}

/* Can kernels of the run's device read it? */
bool lcomm_payload_is_on_device(const lcomm_slot_memory *slot);

/* May computations of the host read it at `payload`? */
bool lcomm_payload_is_readable(const lcomm_slot_memory *slot);

/* May it be sent? */
bool lcomm_payload_is_complete(const lcomm_slot_memory *slot);

/* The rule: may a payload change so? */
bool lcomm_payload_may_become(lcomm_payload_state from, lcomm_payload_state to);

/* An operation begins. `alias` is the slot's part of its vector, NULL where it has none. */
void lcomm_payload_reset(lcomm_slot_memory *slot, uint8_t *alias);

/* This rank makes it: a REDUCE in place of its ENCODE; its ENCODE on the host. */
void lcomm_payload_encoded(lcomm_slot_memory *slot);
void lcomm_payload_made(lcomm_slot_memory *slot);

/* It is in memory of the device, too, or there alone; on the host, too. */
void lcomm_payload_on_device(lcomm_slot_memory *slot);
void lcomm_payload_on_host(lcomm_slot_memory *slot);
void lcomm_payload_exported(lcomm_slot_memory *slot);

/* Receives: posted; over, with the payload behind the header, or at `wire`. */
void lcomm_payload_posted(lcomm_slot_memory *slot);
void lcomm_payload_received_inline(lcomm_slot_memory *slot, uint8_t *bytes);
void lcomm_payload_received(lcomm_slot_memory *slot);

/* Post a zero-copy receive of `size` bytes from `rank`: of the payload (REQUESTED) or of its
 * memory handle (HANDLE). TRANSPORT: nothing is posted. */
lcomm_status lcomm_payload_request(lcomm_slot_memory *slot, lcomm_payload_state what,
                                   lcomm_transport *link, int rank, uint32_t tag, size_t size);

/* What was requested is over: `mapped` is where it can be read, NULL: nowhere, it is remote. */
void lcomm_payload_mapped(lcomm_slot_memory *slot, const void *mapped);
void lcomm_payload_on_peer_device(lcomm_slot_memory *slot);

/* Where a payload that was requested is to be copied; `memory` for a slot that has none. */
void lcomm_payload_use_memory(lcomm_slot_memory *slot, uint8_t *memory);

/* End a zero-copy receive: it was copied to memory of the slot; all have read it, or it is
 * given up; it has not come, and never will. */
void lcomm_payload_copied(lcomm_slot_memory *slot);
void lcomm_payload_release(lcomm_slot_memory *slot);
void lcomm_payload_cancel(lcomm_slot_memory *slot);

#endif
