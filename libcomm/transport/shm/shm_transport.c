/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between ranks of one machine: receivers read, decode or sum
 * straight out of the sender's memory. */

#include <stdarg.h>
#include <stdio.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/transport/shm/shm_internal.h"

/* -------------------------------------------------------------- sentences */

lcomm_status lcomm_shm_fail(lcomm_shm *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(t->base.why, sizeof(t->base.why), format, arguments);
  va_end(arguments);
  return LCOMM_ERR_TRANSPORT;
}

lcomm_status lcomm_shm_blame(lcomm_shm *t, const lcomm_shm_peer *peer) {
  switch (peer->fault) {
  case LCOMM_SHM_ENDED:
    return lcomm_shm_fail(t, "process %ld (rank %d) has ended", (long)peer->pid, peer->rank);
  case LCOMM_SHM_CLOSED:
    return lcomm_shm_fail(t, "rank %d (process %ld) has closed its communicator", peer->rank,
                          (long)peer->pid);
  case LCOMM_SHM_MALFORMED:
    return lcomm_shm_fail(t, "rank %d wrote a malformed entry into shared memory", peer->rank);
  case LCOMM_SHM_FLOODED:
    return lcomm_shm_fail(t, "rank %d sent %d messages that nobody has asked for", peer->rank,
                          (int)LCOMM_SHM_UNASKED_MAX);
  default:
    lcomm_shm_fail(t, "no memory for messages from rank %d", peer->rank);
    return LCOMM_ERR_MEMORY;
  }
}

/* ------------------------------------------------------------- transfers */

/* In opaque[1] of a transfer that has failed. */
enum { FAILED = 1 };

static void shm_cancel(lcomm_transport *transport, lcomm_transfer *transfer) {
  lcomm_shm_record *record = lcomm_shm_record_of(transfer);
  lcomm_completion_remove(transfer);
  if (!record) {
    return;
  }
  record->watched = NULL;
  lcomm_shm_bind(transfer, NULL);
  if (record->kind == LCOMM_SHM_SEND) {
    lcomm_shm_cancel_send(lcomm_shm_of(transport), record);
  } else {
    lcomm_shm_cancel_receive(lcomm_shm_of(transport), record);
  }
}

static lcomm_status shm_test(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                             size_t *size) {
  lcomm_shm *t = lcomm_shm_of(transport);
  lcomm_shm_record *record = lcomm_shm_record_of(transfer);
  *over = !record && transfer->opaque[1] != FAILED;
  if (!record) {
    return *over ? LCOMM_OK : LCOMM_ERR_TRANSPORT;
  }
  bool zcopy = record->kind == LCOMM_SHM_ZCOPY;
  lcomm_status status = record->kind == LCOMM_SHM_SEND
                            ? lcomm_shm_test_send(t, record, over)
                            : lcomm_shm_test_receive(t, record, over, size);
  if (status != LCOMM_OK) {
    shm_cancel(transport, transfer);
    transfer->opaque[1] = FAILED;
  } else if (*over) {
    lcomm_completion_remove(transfer);
    lcomm_shm_bind(transfer, zcopy ? record : NULL);
  }
  return status;
}

static void shm_watch(lcomm_transport *transport, lcomm_transfer *transfer, void *owner) {
  lcomm_shm_record *record = lcomm_shm_record_of(transfer);
  (void)transport;
  transfer->owner = owner;
  if (record) {
    record->watched = transfer;
  }
}

static void shm_zcopy_release(lcomm_transport *transport, lcomm_transfer *transfer) {
  shm_cancel(transport, transfer);
}

/* ---------------------------------------------------------------- the rest */

static bool shm_reaches(const lcomm_transport *transport, int peer) {
  return ((const lcomm_shm *)transport)->of[peer] != NULL;
}

static void *shm_memory_get(lcomm_transport *transport, size_t size) {
  (void)transport;
  return lcomm_shm_heap_get(size);
}

static void shm_memory_free(void *memory) {
  (void)lcomm_shm_heap_free(memory);
}

/* Short sends that are over may still wait for room in a ring. */
static bool is_flushed(const lcomm_shm *t) {
  for (int i = 0; i < t->reached_count; i++) {
    if (t->reached[i]->queue.first && t->reached[i]->fault == LCOMM_SHM_FINE) {
      return false;
    }
  }
  return true;
}

static void flush_all(lcomm_shm *t) {
  lcomm_backoff backoff = {.sleep_ns = 20000};
  for (double end_s = lcomm_clock_s() + t->timeout_s; !is_flushed(t) && lcomm_clock_s() < end_s;) {
    lcomm_backoff_step(&backoff);
    lcomm_shm_progress(&t->base);
  }
}

/* May a peer still look at a message of ours? It answers each one that it has looked at; one that
 * has failed, and says so, looks at none. */
static bool is_read(lcomm_shm *t) {
  for (int i = 0; i < t->reached_count; i++) {
    lcomm_shm_peer *peer = t->reached[i];
    lcomm_shm_take_answers(t, peer);
    if (peer->sends.used_count > 0 && lcomm_shm_peer_reads(peer)) {
      return true;
    }
  }
  return false;
}

static bool shm_release(lcomm_transport *transport) {
  lcomm_shm *t = lcomm_shm_of(transport);
  if (is_read(t)) {
    return false;
  }
  lcomm_shm_free(t);
  return true;
}

static bool shm_close(lcomm_transport *transport, bool orderly) {
  lcomm_shm *t = lcomm_shm_of(transport);
  if (orderly) {
    flush_all(t);
  }
  atomic_store_explicit(&t->segment->closed, 1, memory_order_seq_cst);
  for (int i = 0; i < t->reached_count; i++) {
    lcomm_shm_wake(t->reached[i]);
  }
  return shm_release(transport);
}

static void shm_stop_reading(lcomm_transport *transport) {
  atomic_store_explicit(&lcomm_shm_of(transport)->segment->stopped_reading, 1,
                        memory_order_seq_cst);
}

void lcomm_shm_set_ways(lcomm_transport *transport, const lcomm_shm_ways *ways) {
  lcomm_shm_of(transport)->ways = *ways;
}

static const lcomm_transport_zero_copy zero_copy = {
    .receive = lcomm_shm_zcopy_receive,
    .map = lcomm_shm_zcopy_map,
    .get = lcomm_shm_zcopy_get,
    .release = shm_zcopy_release,
};

static const lcomm_transport_wakeup wakeup = {.arm = lcomm_shm_arm, .disarm = lcomm_shm_disarm};

const lcomm_transport_table lcomm_transport_shm = {
    .name = "shm",
    .summary = "memory shared by the processes of one machine",
    .open = lcomm_shm_open,
    .close = shm_close,
    .release = shm_release,
    .stop_reading = shm_stop_reading,
    .reaches = shm_reaches,
    .control = {.send = lcomm_shm_control_send,
                .send_error = lcomm_shm_control_send_error,
                .receive = lcomm_shm_control_receive},
    .send = lcomm_shm_send,
    .receive = lcomm_shm_receive,
    .progress = lcomm_shm_progress,
    .test = shm_test,
    .watch = shm_watch,
    .cancel = shm_cancel,
    .zero_copy = &zero_copy,
    .wakeup = &wakeup,
    .memory_get = shm_memory_get,
    .memory_free = shm_memory_free,
    .peek = lcomm_shm_peek,
    .drop = lcomm_shm_drop,
    .descriptors = lcomm_shm_descriptors,
    .descriptors_most = lcomm_shm_descriptors_most,
};
