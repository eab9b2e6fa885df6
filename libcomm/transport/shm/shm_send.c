/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sending. A short message is copied, into the ring if there is room, and is
 * over as soon as it is there. Of a long one only a description travels, by the cheapest way
 * there is:
 *
 *   VIEW    it lies in memory that peers can view, or is first copied to such
 *   READ    the receiver reads it where it is, by a call of the kernel
 *   STREAM  it follows in pieces through the ring when the receiver asks
 *
 * A receiver that cannot go the way it is told asks for the stream, so each
 * way ends well. */

#include <string.h>

#include "libcomm/transport/shm/shm_internal.h"

/* ----------------------------------------------------------------- slots */

/* There is a free slot. */
static void take_slot(lcomm_shm_peer *peer, lcomm_shm_record *record) {
  int word = 0;
  while (~peer->sends.used[word] == 0) {
    word++;
  }
  int bit = __builtin_ctzll(~peer->sends.used[word]);
  peer->sends.used[word] |= UINT64_C(1) << bit;
  peer->sends.used_count++;
  record->slot = (uint16_t)(64 * word + bit);
  record->generation = ++peer->sends.generations[record->slot];
  peer->sends.records[record->slot] = record;
}

void lcomm_shm_end_send(lcomm_shm *t, lcomm_shm_record *record) {
  lcomm_shm_peer *peer = record->peer;
  peer->sends.used[record->slot / 64] &= ~(UINT64_C(1) << record->slot % 64);
  peer->sends.used_count--;
  peer->sends.records[record->slot] = NULL;
  if (record->bounce) {
    lcomm_shm_bounce_put(t, record->bounce);
    record->bounce = NULL;
  }
  record->state = LCOMM_SHM_OVER;
  lcomm_shm_tell(record);
  if (record->detached) {
    lcomm_shm_record_put(t, record);
  }
}

/* -------------------------------------------------------------- the ways */

/* Copy a message to where peers can view it. False when it should not be, or
 * there is no room. */
static bool copy_out(lcomm_shm *t, lcomm_shm_record *record) {
  if (record->size > t->ways.bounce_longest) {
    return false;
  }
  record->bounce = lcomm_shm_bounce_find(t, record->bytes, record->size);
  if (record->bounce) {
    record->bytes = record->bounce->bytes;
    return true;
  }
  record->bounce = lcomm_shm_bounce_get(t, record->size);
  if (!record->bounce) {
    for (int i = 0; i < t->reached_count; i++) {
      lcomm_shm_take_answers(t, t->reached[i]);
    }
    record->bounce = lcomm_shm_bounce_get(t, record->size);
  }
  if (!record->bounce) {
    return false;
  }
  memcpy(record->bounce->bytes, record->bytes, record->size);
  lcomm_shm_bounce_offer(t, record->bounce, record->bytes, record->size);
  record->bytes = record->bounce->bytes;
  return true;
}

static void describe(lcomm_shm *t, lcomm_shm_record *record, lcomm_shm_long *there) {
  lcomm_shm_address at = {0};
  bool seen = lcomm_shm_heap_find(record->bytes, record->size, &at) ||
              (copy_out(t, record) && lcomm_shm_heap_find(record->bytes, record->size, &at));
  memset(there, 0, sizeof *there);
  there->size = record->size;
  there->address = (uintptr_t)record->bytes;
  there->slot = record->slot;
  if (!seen) {
    record->way = t->ways.single_copy && record->peer->reads_us ? LCOMM_SHM_READ : LCOMM_SHM_STREAM;
    return;
  }
  there->offset = at.offset;
  there->region_size = at.region_size;
  there->region_generation = at.generation;
  there->file = at.file;
  there->region = at.region;
  record->way = LCOMM_SHM_MAPPED;
}

/* Publish a message if there is room for it now. */
static bool try_short(lcomm_shm_record *record) {
  lcomm_shm_peer *peer = record->peer;
  unsigned char *data = lcomm_shm_reserve(&peer->out, record->size, LCOMM_SHM_SPARE);
  if (!data) {
    return false;
  }
  if (record->size > 0) {
    memcpy(data, record->bytes, record->size);
  }
  lcomm_shm_publish(&peer->out, LCOMM_SHM_MESSAGE, record->tag, 0, record->size);
  record->state = LCOMM_SHM_OVER;
  return true;
}

static bool try_long(lcomm_shm *t, lcomm_shm_record *record) {
  lcomm_shm_peer *peer = record->peer;
  lcomm_shm_long there;
  if (peer->sends.used_count == LCOMM_SHM_SLOTS) {
    lcomm_shm_take_answers(t, peer);
  }
  unsigned char *data = peer->sends.used_count < LCOMM_SHM_SLOTS
                            ? lcomm_shm_reserve(&peer->out, sizeof(there), LCOMM_SHM_SPARE)
                            : NULL;
  if (!data) {
    return false;
  }
  take_slot(peer, record);
  describe(t, record, &there);
  memcpy(data, &there, sizeof(there));
  record->state = LCOMM_SHM_PUBLISHED;
  lcomm_shm_publish(&peer->out, record->way, record->tag, record->generation, sizeof(there));
  return true;
}

static bool try_send(lcomm_shm *t, lcomm_shm_record *record) {
  bool sent = record->size <= LCOMM_SHM_INLINE ? try_short(record) : try_long(t, record);
  if (sent) {
    lcomm_shm_wake(record->peer);
    lcomm_shm_prepare(&record->peer->out);
  } else if (record->peer->out.broken) {
    lcomm_shm_give_up(t, record->peer, LCOMM_SHM_MALFORMED);
  }
  return sent;
}

bool lcomm_shm_flush(lcomm_shm *t, lcomm_shm_peer *peer) {
  bool moved = false;
  while (peer->queue.first && peer->fault == LCOMM_SHM_FINE) {
    lcomm_shm_record *record = peer->queue.first;
    if (!try_send(t, record)) {
      break;
    }
    moved = t->news = true;
    lcomm_shm_list_remove(&peer->queue, record);
    if (record->state == LCOMM_SHM_OVER) {
      lcomm_shm_tell(record);
    }
    if (record->detached && record->state == LCOMM_SHM_OVER) {
      lcomm_shm_record_put(t, record);
    }
  }
  return moved;
}

/* ------------------------------------------------------------- the calls */

static lcomm_status no_memory(lcomm_shm *t, const lcomm_shm_peer *peer) {
  lcomm_shm_fail(t, "no memory for a message to rank %d", peer->rank);
  return LCOMM_ERR_MEMORY;
}

/* The ring is full: a copy of a short message waits, so that its bytes need not
 * stay. It is over once it is in the ring, because only calls of this rank bring
 * it there: a rank whose operations are over makes none. */
static lcomm_status queue_short(lcomm_shm *t, lcomm_shm_record *record) {
  unsigned char *copy = record->small;
  if (record->size > LCOMM_SHM_SMALL) {
    record->own = lcomm_shm_short_get(t);
    copy = record->own ? record->own->bytes : NULL;
  }
  if (!copy) {
    lcomm_shm_peer *peer = record->peer;
    lcomm_shm_record_put(t, record);
    return no_memory(t, peer);
  }
  if (record->size > 0) {
    memcpy(copy, record->bytes, record->size);
  }
  record->bytes = copy;
  lcomm_shm_list_add(&record->peer->queue, record);
  return LCOMM_OK;
}

static lcomm_status send_slowly(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t tag, const void *bytes,
                                size_t size, lcomm_transfer *transfer) {
  if (size > LCOMM_SHM_LONGEST) {
    return lcomm_shm_fail(t, "a message of %zu bytes is too long", size);
  }
  lcomm_shm_record *record = lcomm_shm_record_get(t, peer, LCOMM_SHM_SEND);
  if (!record) {
    return no_memory(t, peer);
  }
  record->tag = tag;
  record->bytes = (unsigned char *)(uintptr_t)bytes; /* only read */
  record->size = size;
  record->state = LCOMM_SHM_QUEUED;
  bool is_short = size <= LCOMM_SHM_INLINE;
  lcomm_shm_bind(transfer, record);
  if (!peer->queue.first && try_send(t, record)) {
    if (is_short) {
      lcomm_shm_bind(transfer, NULL);
      lcomm_shm_record_put(t, record);
    }
    return LCOMM_OK;
  }
  if (is_short) {
    return queue_short(t, record);
  }
  lcomm_shm_list_add(&peer->queue, record);
  return LCOMM_OK;
}

lcomm_status lcomm_shm_send(lcomm_transport *transport, int rank, uint32_t tag, const void *bytes,
                            size_t size, lcomm_transfer *transfer) {
  lcomm_shm *t = lcomm_shm_of(transport);
  lcomm_shm_peer *peer = t->of[rank];
  lcomm_completion_begin(transport, transfer);
  if (!peer || peer->fault != LCOMM_SHM_FINE) {
    return peer ? lcomm_shm_blame(t, peer)
                : lcomm_shm_fail(t, "shared memory does not reach rank %d", rank);
  }
  unsigned char *data = size <= LCOMM_SHM_INLINE && !peer->queue.first
                            ? lcomm_shm_reserve(&peer->out, size, LCOMM_SHM_SPARE)
                            : NULL;
  if (!data) {
    return send_slowly(t, peer, tag, bytes, size, transfer);
  }
  if (size > 0) {
    memcpy(data, bytes, size);
  }
  lcomm_shm_publish(&peer->out, LCOMM_SHM_MESSAGE, tag, 0, size);
  lcomm_shm_wake(peer);
  lcomm_shm_prepare(&peer->out);
  lcomm_shm_bind(transfer, NULL);
  return LCOMM_OK;
}

lcomm_status lcomm_shm_test_send(lcomm_shm *t, lcomm_shm_record *record, bool *over) {
  lcomm_shm_peer *peer = record->peer;
  if (record->state == LCOMM_SHM_PUBLISHED && lcomm_shm_is_answered(record)) {
    lcomm_shm_end_send(t, record);
  }
  *over = record->state == LCOMM_SHM_OVER;
  if (*over) {
    lcomm_shm_record_put(t, record);
    return LCOMM_OK;
  }
  return peer->fault == LCOMM_SHM_FINE ? LCOMM_OK : lcomm_shm_blame(t, peer);
}

void lcomm_shm_cancel_send(lcomm_shm *t, lcomm_shm_record *record) {
  lcomm_shm_peer *peer = record->peer;
  if (record->state == LCOMM_SHM_QUEUED) {
    lcomm_shm_list_remove(&peer->queue, record);
  }
  if (record->state == LCOMM_SHM_QUEUED || record->state == LCOMM_SHM_OVER) {
    lcomm_shm_record_put(t, record);
    return;
  }
  /* The peer may still look at it: slot and copy are kept until it answers. A
   * stream goes on only where there is a copy. */
  record->detached = true;
  if (record->bounce) {
    record->bounce->source = NULL; /* its bytes may change from now on */
    return;
  }
  if (record->state == LCOMM_SHM_STREAMING) {
    lcomm_shm_list_remove(&peer->streams, record);
  }
  record->state = LCOMM_SHM_PUBLISHED;
  record->bytes = NULL;
}
