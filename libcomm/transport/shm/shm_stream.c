/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Streams: long messages that travel in pieces through the ring, which any two
 * ranks can do. The receiver asks once it has a place for them, so nothing
 * piles up for which nobody has asked. Pieces leave half of the ring to other
 * messages. */

#include <string.h>

#include "libcomm/transport/shm/shm_internal.h"

enum { OFFSET_SIZE = sizeof(uint64_t), LEAVE = LCOMM_SHM_RING / 2 };
_Static_assert((int)OFFSET_SIZE + (int)LCOMM_SHM_PIECE_SIZE <= (int)LCOMM_SHM_INLINE,
               "a piece fits into an entry");

/* --------------------------------------------------------------- sending */

static bool wants_stream(const lcomm_shm_record *record) {
  uint64_t answer =
      atomic_load_explicit(&record->peer->here->answers[record->slot], memory_order_acquire);
  /* Without bytes it was cancelled, and there is nothing left to send. */
  return record->state == LCOMM_SHM_PUBLISHED && record->bytes &&
         answer == ((uint64_t)record->generation << 2 | LCOMM_SHM_ANSWER_STREAM);
}

bool lcomm_shm_begin_stream(lcomm_shm_record *record) {
  if (!wants_stream(record)) {
    return false;
  }
  record->state = LCOMM_SHM_STREAMING;
  lcomm_shm_list_add(&record->peer->streams, record);
  return true;
}

/* One piece of a stream, if there is room. */
static bool send_piece(lcomm_shm_peer *peer, lcomm_shm_record *record) {
  uint64_t offset = record->done;
  size_t left = record->size - record->done;
  size_t size = left < LCOMM_SHM_PIECE_SIZE ? left : LCOMM_SHM_PIECE_SIZE;
  unsigned char *data = lcomm_shm_reserve(&peer->out, OFFSET_SIZE + size, LEAVE);
  if (!data) {
    return false;
  }
  memcpy(data, &offset, OFFSET_SIZE);
  memcpy(data + OFFSET_SIZE, record->bytes + record->done, size);
  record->done += size;
  lcomm_shm_publish(&peer->out, LCOMM_SHM_PIECE, record->slot, record->generation,
                    OFFSET_SIZE + size);
  lcomm_shm_wake(peer);
  return true;
}

bool lcomm_shm_pump(lcomm_shm *t, lcomm_shm_peer *peer) {
  bool moved = false;
  while (peer->streams.first) {
    lcomm_shm_record *record = peer->streams.first;
    if (!send_piece(peer, record)) {
      break;
    }
    moved = true;
    if (record->done == record->size) {
      /* All of it is in the ring: there is no answer to wait for. */
      lcomm_shm_list_remove(&peer->streams, record);
      lcomm_shm_end_send(t, record);
      t->news = true;
    }
  }
  if (peer->out.broken) {
    lcomm_shm_give_up(t, peer, LCOMM_SHM_MALFORMED);
  }
  return moved;
}

/* ------------------------------------------------------------- receiving */

/* Where the pieces go: the caller's memory, or a buffer of our own. */
static bool find_place(lcomm_shm *t, lcomm_shm_record *record) {
  if (record->kind == LCOMM_SHM_RECEIVE) {
    return true;
  }
  record->own = lcomm_shm_gather_get(t, record->size);
  if (!record->own) {
    return false;
  }
  record->bytes = record->own->bytes;
  record->view = record->own->bytes;
  return true;
}

void lcomm_shm_ask(lcomm_shm *t, lcomm_shm_record *record) {
  lcomm_shm_peer *peer = record->peer;
  if (peer->incoming[record->slot]) {
    lcomm_shm_give_up(t, peer, LCOMM_SHM_MALFORMED);
    record->state = LCOMM_SHM_LOST;
    return;
  }
  if (!find_place(t, record)) {
    record->state = LCOMM_SHM_STARVED;
    return;
  }
  record->state = LCOMM_SHM_STREAMING;
  record->done = 0;
  peer->incoming[record->slot] = record;
  lcomm_shm_answer(record, LCOMM_SHM_ANSWER_STREAM);
}

void lcomm_shm_arrive_piece(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t slot, uint32_t generation,
                            const unsigned char *data, size_t size) {
  uint64_t offset = 0;
  lcomm_shm_record *record = slot < LCOMM_SHM_SLOTS ? peer->incoming[slot] : NULL;
  if (!record || size <= OFFSET_SIZE || record->generation != generation) {
    lcomm_shm_give_up(t, peer, LCOMM_SHM_MALFORMED);
    return;
  }
  memcpy(&offset, data, OFFSET_SIZE);
  size -= OFFSET_SIZE;
  if (offset != record->done || size > record->size - record->done) {
    lcomm_shm_give_up(t, peer, LCOMM_SHM_MALFORMED);
    return;
  }
  if (!record->detached) {
    memcpy(record->bytes + record->done, data + OFFSET_SIZE, size);
  }
  record->done += size;
  if (record->done < record->size) {
    return;
  }
  peer->incoming[slot] = NULL;
  record->state = LCOMM_SHM_OVER;
  lcomm_shm_tell(record);
  if (record->detached) {
    lcomm_shm_record_put(t, record);
  }
}
