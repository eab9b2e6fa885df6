/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Where the bytes of a long message come from, and copying them. */

#include <errno.h>
#include <string.h>

#include "libcomm/transport/shm/shm_internal.h"

void lcomm_shm_reach_for(lcomm_shm *t, lcomm_shm_record *record) {
  lcomm_shm_peer *peer = record->peer;
  if (record->way == LCOMM_SHM_MAPPED) {
    record->mapping = t->ways.views ? lcomm_shm_map(t, peer, &record->there) : NULL;
    if (record->mapping) {
      record->view = record->mapping->base + record->there.offset;
    } else {
      record->way = peer->may_read && t->ways.single_copy ? LCOMM_SHM_READ : LCOMM_SHM_STREAM;
    }
  }
  if (record->way == LCOMM_SHM_STREAM) {
    lcomm_shm_ask(t, record);
    return;
  }
  record->state = record->kind == LCOMM_SHM_ZCOPY ? LCOMM_SHM_OVER : LCOMM_SHM_COPYING;
}

/* Read part of a message. The peer is looked at once per message, after its end. */
static int read_part(const lcomm_shm_record *record, size_t offset, void *bytes, size_t size) {
  int error = lcomm_shm_read(record->peer, record->there.address + offset, bytes, size);
  bool ends = offset + size == record->size;
  return error == 0 && ends && !lcomm_shm_is_alive(record->peer) ? ESRCH : error;
}

/* The kernel would not read the peer's memory. */
static lcomm_status blame_read(lcomm_shm *t, lcomm_shm_peer *peer, int error) {
  if (error == ESRCH) {
    lcomm_shm_give_up(t, peer, LCOMM_SHM_ENDED);
    return lcomm_shm_blame(t, peer);
  }
  return lcomm_shm_fail(t, "the memory of process %ld (rank %d) cannot be read: %s",
                        (long)peer->pid, peer->rank, strerror(error));
}

lcomm_status lcomm_shm_copy_some(lcomm_shm *t, lcomm_shm_record *record) {
  size_t left = record->size - record->done;
  size_t size = left < LCOMM_SHM_COPY ? left : LCOMM_SHM_COPY;
  int error = 0;
  if (record->view) {
    memcpy(record->bytes + record->done, record->view + record->done, size);
  } else {
    error = read_part(record, record->done, record->bytes + record->done, size);
  }
  if (error == EPERM) {
    /* Somebody has forbidden it since we tried: let the sender do it. */
    record->peer->may_read = false;
    record->way = LCOMM_SHM_STREAM;
    lcomm_shm_ask(t, record);
    return LCOMM_OK;
  }
  if (error != 0) {
    return blame_read(t, record->peer, error);
  }
  record->done += size;
  t->news = true;
  if (record->done == record->size) {
    record->state = LCOMM_SHM_OVER;
  }
  return LCOMM_OK;
}

const void *lcomm_shm_zcopy_map(lcomm_transport *transport, const lcomm_transfer *transfer) {
  (void)transport;
  const lcomm_shm_record *record = lcomm_shm_record_of(transfer);
  return record ? record->view : NULL;
}

lcomm_status lcomm_shm_zcopy_get(lcomm_transport *transport, const lcomm_transfer *transfer,
                                 size_t offset, size_t size, void *bytes) {
  lcomm_shm *t = lcomm_shm_of(transport);
  lcomm_shm_record *record = lcomm_shm_record_of(transfer);
  if (!record || record->kind != LCOMM_SHM_ZCOPY || record->state != LCOMM_SHM_OVER ||
      offset > record->size || size > record->size - offset) {
    return lcomm_shm_fail(t, "there are no %zu bytes at %zu of a zero-copy message", size, offset);
  }
  if (record->view) {
    if (size > 0) {
      memcpy(bytes, record->view + offset, size);
    }
    return LCOMM_OK;
  }
  int error = read_part(record, offset, bytes, size);
  return error == 0 ? LCOMM_OK : blame_read(t, record->peer, error);
}
