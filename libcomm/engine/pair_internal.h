/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAIR_INTERNAL_H
#define LCOMM_ENGINE_PAIR_INTERNAL_H

/* What the files of pair.h share. */

#include "libcomm/device/device.h"
#include "libcomm/engine/pair.h"
#include "libcomm/engine/pair_header.h"

/* Numbers in pinned memory, which only grow. */
typedef struct lcomm_pair_numbers {
  uint32_t there; /* how much is in the block: written by the device of a sender, or for that of a
                   * receiver */
  uint32_t begun; /* a receiver's stream has come to the message */
  uint32_t left;  /* it has taken all of it */
} lcomm_pair_numbers;

/* Pinned memory for one message. */
typedef struct lcomm_pair_block {
  struct lcomm_pair_block *next;
  lcomm_pair_numbers *numbers; /* at the beginning of its memory */
  uint8_t *bytes;
  size_t room;
  uint32_t base;     /* of the numbers of its next message */
  uint32_t end;      /* `left` when its last message is out of it */
  void *came, *done; /* events: a stream of the program has come to it; the device is through */
} lcomm_pair_block;

typedef enum lcomm_pair_phase {
  LCOMM_PAIR_WAITS,  /* for its turn, or data */
  LCOMM_PAIR_HEADER, /* the header is on its way */
  LCOMM_PAIR_PIECES
} lcomm_pair_phase;

typedef struct lcomm_pair_message {
  struct lcomm_pair_message *next;
  bool is_send;
  int peer;
  lcomm_pair_header what;
  uint64_t size; /* bytes */
  size_t piece_size;
  uint32_t pieces, piece;  /* all, and those that are over */
  lcomm_pair_block *block; /* NULL without data */
  uint32_t base;
  bool counts_device; /* in comm->runs.device_works */
  lcomm_pair_phase phase;
  bool header_posted, request_posted, piece_posted; /* in flight */
  lcomm_transfer header_transfer, request_transfer, piece_transfer;
  uint32_t request;
  double waits_s; /* since when for the peer; 0: it does not */
  uint8_t bytes[LCOMM_PAIR_SHORT_MAX];
} lcomm_pair_message;

typedef struct lcomm_pair_queue {
  lcomm_pair_message *first, *last;
  uint32_t next; /* number of the next message */
} lcomm_pair_queue;

struct lcomm_pairs {
  lcomm_pair_queue *out, *in; /* per peer */
  int ordinal;                /* of the device; LCOMM_DEVICE_NONE: no data so far */
  void *sending, *receiving;  /* streams */
  lcomm_pair_block *idle, *draining;
  lcomm_pair_message *spare;
  unsigned in_flight;
  bool is_idle; /* in_flight == 0, for waits */
};

/* pair_staging.c: pinned memory for the data of a message, and what its device does. SYSTEM with
 * the thread's sentence. */
lcomm_status lcomm_pair_stage(lcomm_comm *comm, lcomm_pair_message *message, int ordinal);
lcomm_status lcomm_pair_play(lcomm_comm *comm, const lcomm_pair_message *message,
                             const lcomm_pair_call *call);
/* The message is over: its memory may serve another one. */
void lcomm_pair_unstage(lcomm_comm *comm, lcomm_pair_message *message);
void lcomm_pairs_free_staging(lcomm_comm *comm);

/* Bytes of a piece, and where they are. */
static inline size_t lcomm_pair_piece(const lcomm_pair_message *it, uint32_t piece, uint8_t **at) {
  uint64_t first = (uint64_t)piece * it->piece_size, left = it->size - first;
  *at = it->block->bytes + first;
  return left < it->piece_size ? (size_t)left : it->piece_size;
}

/* Has a number come so far? */
static inline bool lcomm_pair_reached(const uint32_t *number, uint32_t least) {
  return (int32_t)(__atomic_load_n(number, __ATOMIC_ACQUIRE) - least) >= 0;
}

/* Are so many pieces in the block of a message that is sent? So many are in that of one that is
 * received. */
static inline bool lcomm_pair_has(const lcomm_pair_message *it, uint32_t pieces) {
  return pieces == 0 || lcomm_pair_reached(&it->block->numbers->there, it->base + pieces);
}

static inline void lcomm_pair_gives(const lcomm_pair_message *it, uint32_t pieces) {
  if (pieces > 0) {
    __atomic_store_n(&it->block->numbers->there, it->base + pieces, __ATOMIC_RELEASE);
  }
}

#endif
