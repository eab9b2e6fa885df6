/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PEER_MEMORY_MESSAGES_H
#define LCOMM_ENGINE_PEER_MEMORY_MESSAGES_H

/* The control messages of peer_memory.h: between ranks of one host. */

#include <string.h>

#include "libcomm/engine/operation.h"
#include "libcomm/engine/peer_memory.h"

enum { LCOMM_TAKE_MESSAGES = 8192 }; /* that can be taken: the first ones of a pair of ranks */

typedef struct lcomm_offer_message {
  int32_t kind; /* LCOMM_CONTROL_OFFER */
  int32_t rank;
  uint64_t plan;
  lcomm_device_ipc memory;
} lcomm_offer_message;

typedef struct lcomm_take_message {
  int32_t kind; /* LCOMM_CONTROL_TAKE */
  int32_t rank;
  uint64_t allocation;
  uint8_t messages[LCOMM_TAKE_MESSAGES / 8]; /* a bit for each that is taken; the rest is refused */
} lcomm_take_message;

_Static_assert(sizeof(lcomm_offer_message) <= LCOMM_CONTROL_SIZE &&
                   sizeof(lcomm_take_message) <= LCOMM_CONTROL_SIZE,
               "both fit a control message");

/* Can a peer have sent it to rank `mine` of `ranks`? */
static inline bool lcomm_offer_is_possible(const lcomm_offer_message *offer, int ranks, int mine) {
  return offer->rank >= 0 && offer->rank < ranks && offer->rank != mine && offer->memory.size > 0 &&
         offer->memory.offset == 0 && offer->memory.base + offer->memory.size >= offer->memory.base;
}

static inline bool lcomm_take_has(const lcomm_take_message *take, uint32_t message) {
  return message < LCOMM_TAKE_MESSAGES && take->messages[message / 8] >> message % 8 & 1;
}

static inline void lcomm_take_add(lcomm_take_message *take, uint32_t message) {
  if (message < LCOMM_TAKE_MESSAGES) {
    take->messages[message / 8] |= (uint8_t)(1u << message % 8);
  }
}

/* The two ends of a message of what is taken, of a run at each: all that lanes of a run fetch of a
 * peer, and what its owner learns from it. */
void lcomm_share_take_all(const lcomm_run *run, int peer, lcomm_take_message *take);
void lcomm_share_learn(lcomm_run *run, const lcomm_take_message *take);

#endif
