/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Receives, with a buffer and zero-copy: a message meets the one who asks for it, whichever
 * comes first. One record is made by whoever is first and holds both sides. */

#include <string.h>

#include "libcomm/base/error.h"
#include "libcomm/transport/shm/shm_internal.h"

/* --------------------------------------------------------------- meeting */

/* Keep a short message until it is asked for, or released. */
static bool keep(lcomm_shm *t, lcomm_shm_record *record, const unsigned char *data) {
  unsigned char *place = record->small;
  if (record->size > LCOMM_SHM_SMALL) {
    record->own = lcomm_shm_short_get(t);
    place = record->own ? record->own->bytes : NULL;
  }
  if (!place) {
    return false;
  }
  memcpy(place, data, record->size);
  record->view = place;
  return true;
}

static bool has_right_size(const lcomm_shm_record *record) {
  return record->kind == LCOMM_SHM_ZCOPY ? record->size == record->capacity
                                         : record->size <= record->capacity;
}

/* Both sides are in the record: begin what is left to do. */
static void begin(lcomm_shm *t, lcomm_shm_record *record) {
  if (!has_right_size(record)) {
    record->state = LCOMM_SHM_WRONG_SIZE;
    return;
  }
  if (record->way != LCOMM_SHM_MESSAGE) {
    lcomm_shm_reach_for(t, record);
    return;
  }
  if (record->kind == LCOMM_SHM_RECEIVE && record->size > 0) {
    memcpy(record->bytes, record->view, record->size);
  }
  record->state = LCOMM_SHM_OVER;
}

static void meet(lcomm_shm *t, lcomm_shm_record *record) {
  begin(t, record);
  if (record->state != LCOMM_SHM_STREAMING) { /* then it has only begun to come */
    lcomm_shm_tell(record);
  }
}

/* The first one who waits for this tag, no longer in the list. */
static lcomm_shm_record *take_posted(lcomm_shm_peer *peer, uint32_t tag) {
  lcomm_shm_record *record = peer->posted_count > 0 ? lcomm_shm_list_find(peer->posted, tag) : NULL;
  if (record) {
    lcomm_shm_list_remove(lcomm_shm_bucket(peer->posted, tag), record);
    peer->posted_count--;
  }
  return record;
}

/* A record for a message that nobody waits for. NULL, and the peer given up,
 * when there are too many. */
static lcomm_shm_record *add_unasked(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t tag) {
  lcomm_shm_record *record = peer->unasked_count < LCOMM_SHM_UNASKED_MAX
                                 ? lcomm_shm_record_get(t, peer, LCOMM_SHM_UNASKED)
                                 : NULL;
  if (!record) {
    lcomm_shm_give_up(t, peer,
                      peer->unasked_count < LCOMM_SHM_UNASKED_MAX ? LCOMM_SHM_NO_MEMORY
                                                                  : LCOMM_SHM_FLOODED);
    return NULL;
  }
  record->tag = tag;
  lcomm_shm_list_add(lcomm_shm_bucket(peer->unasked, tag), record);
  peer->unasked_count++;
  return record;
}

/* The record of a message that has arrived: of the one who waits for it, else a new one. NULL: the
 * peer was given up. */
static lcomm_shm_record *match(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t tag, bool *waits) {
  lcomm_shm_record *record = take_posted(peer, tag);
  *waits = record != NULL;
  return record ? record : add_unasked(t, peer, tag);
}

void lcomm_shm_arrive_short(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t tag,
                            const unsigned char *data, size_t size) {
  bool waits = false;
  lcomm_shm_record *record = match(t, peer, tag, &waits);
  if (!record) {
    return;
  }
  record->way = LCOMM_SHM_MESSAGE;
  record->size = size;
  if (record->kind == LCOMM_SHM_RECEIVE) {
    record->view = data; /* copied from the ring right now */
  } else if (!keep(t, record, data)) {
    lcomm_shm_give_up(t, peer, LCOMM_SHM_NO_MEMORY);
    record->state = LCOMM_SHM_STARVED;
    return;
  }
  if (waits) {
    meet(t, record);
  }
}

void lcomm_shm_arrive_long(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t tag, uint32_t way,
                           uint32_t generation, const lcomm_shm_long *there) {
  bool waits = false;
  lcomm_shm_record *record = match(t, peer, tag, &waits);
  if (!record) {
    return;
  }
  record->way = way;
  record->size = there->size;
  record->slot = there->slot;
  record->generation = generation;
  record->there = *there;
  if (waits) {
    meet(t, record);
  }
}

/* --------------------------------------------------------------- the calls */

static lcomm_status ask(lcomm_shm *t, int rank, uint32_t tag, lcomm_shm_kind kind, void *bytes,
                        size_t capacity, lcomm_transfer *transfer) {
  lcomm_shm_peer *peer = t->of[rank];
  lcomm_completion_begin(&t->base, transfer);
  if (!peer) {
    return lcomm_shm_fail(t, "shared memory does not reach rank %d", rank);
  }
  lcomm_shm_record *record =
      peer->unasked_count > 0 ? lcomm_shm_list_find(peer->unasked, tag) : NULL;
  bool is_there = record != NULL;
  if (is_there) {
    peer->peek.unasked = NULL;
    lcomm_shm_list_remove(lcomm_shm_bucket(peer->unasked, tag), record);
    peer->unasked_count--;
  } else {
    record = lcomm_shm_record_get(t, peer, kind);
  }
  if (!record) {
    lcomm_shm_fail(t, "no memory for a message from rank %d", rank);
    return LCOMM_ERR_MEMORY;
  }
  record->kind = kind;
  record->tag = tag;
  record->bytes = bytes;
  record->capacity = capacity;
  lcomm_shm_bind(transfer, record);
  if (is_there && record->state != LCOMM_SHM_STARVED) {
    meet(t, record);
  } else if (!is_there) {
    record->state = LCOMM_SHM_POSTED;
    lcomm_shm_list_add(lcomm_shm_bucket(peer->posted, tag), record);
    peer->posted_count++;
  }
  return LCOMM_OK;
}

lcomm_status lcomm_shm_receive(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                               size_t capacity, lcomm_transfer *transfer) {
  return ask(lcomm_shm_of(transport), peer, tag, LCOMM_SHM_RECEIVE, bytes, capacity, transfer);
}

lcomm_status lcomm_shm_zcopy_receive(lcomm_transport *transport, int peer, uint32_t tag,
                                     size_t size, lcomm_transfer *transfer) {
  return ask(lcomm_shm_of(transport), peer, tag, LCOMM_SHM_ZCOPY, NULL, size, transfer);
}

static lcomm_status wrong_size(lcomm_shm *t, const lcomm_shm_record *record) {
  return lcomm_shm_fail(t, "rank %d sent %zu bytes where %s%zu were expected", record->peer->rank,
                        record->size, record->kind == LCOMM_SHM_ZCOPY ? "" : "at most ",
                        record->capacity);
}

lcomm_status lcomm_shm_test_receive(lcomm_shm *t, lcomm_shm_record *record, bool *over,
                                    size_t *size) {
  *over = false;
  if (record->state == LCOMM_SHM_COPYING) {
    LCOMM_TRY(lcomm_shm_copy_some(t, record));
  }
  switch (record->state) {
  case LCOMM_SHM_OVER:
    break;
  case LCOMM_SHM_WRONG_SIZE:
    return wrong_size(t, record);
  case LCOMM_SHM_STARVED:
    lcomm_shm_fail(t, "no memory for %zu bytes from rank %d", record->size, record->peer->rank);
    return LCOMM_ERR_MEMORY;
  case LCOMM_SHM_COPYING: /* the next share when it is looked at again */
    lcomm_shm_tell(record);
    return LCOMM_OK;
  default:
    return record->peer->fault == LCOMM_SHM_FINE ? LCOMM_OK : lcomm_shm_blame(t, record->peer);
  }
  *over = true;
  if (size) {
    *size = record->size;
  }
  if (record->kind == LCOMM_SHM_RECEIVE) {
    lcomm_shm_release(t, record);
  }
  return LCOMM_OK;
}

void lcomm_shm_release(lcomm_shm *t, lcomm_shm_record *record) {
  if (record->mapping) {
    lcomm_shm_unmap(t, record->mapping);
  }
  /* A stream is over for the sender when its last piece has left, and its slot
   * may serve another message. */
  bool streamed = record->way == LCOMM_SHM_STREAM && record->state == LCOMM_SHM_OVER;
  if (record->way != LCOMM_SHM_MESSAGE && !streamed) {
    lcomm_shm_answer(record, LCOMM_SHM_ANSWER_DONE);
  }
  lcomm_shm_record_put(t, record);
}

void lcomm_shm_cancel_receive(lcomm_shm *t, lcomm_shm_record *record) {
  lcomm_shm_peer *peer = record->peer;
  switch (record->state) {
  case LCOMM_SHM_POSTED:
    lcomm_shm_list_remove(lcomm_shm_bucket(peer->posted, record->tag), record);
    peer->posted_count--;
    lcomm_shm_record_put(t, record);
    return;
  case LCOMM_SHM_STREAMING:
    record->detached = true; /* the pieces that still come are dropped */
    return;
  default:
    lcomm_shm_release(t, record);
  }
}
