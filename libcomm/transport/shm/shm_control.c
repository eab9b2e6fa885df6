/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Control messages. Ordinary ones travel in the ring, and a few wait on either side. An
 * error has a place of its own in the lane, so it needs no room in the ring, no
 * call of the sender after this one, and no reader that keeps up. */

#include <string.h>

#include "libcomm/transport/shm/shm_internal.h"

/* ----------------------------------------------------------- ordinary ones */

static bool send_now(lcomm_shm_peer *peer, const void *message) {
  unsigned char *data = lcomm_shm_reserve(&peer->out, LCOMM_CONTROL_SIZE, 0);
  if (!data) {
    return false;
  }
  memcpy(data, message, LCOMM_CONTROL_SIZE);
  lcomm_shm_publish(&peer->out, LCOMM_SHM_CONTROL, 0, 0, LCOMM_CONTROL_SIZE);
  lcomm_shm_wake(peer);
  return true;
}

void lcomm_shm_control_send(lcomm_transport *transport, int rank, const void *message) {
  lcomm_shm_peer *peer = lcomm_shm_of(transport)->of[rank];
  if (!peer || peer->fault != LCOMM_SHM_FINE || peer->control.waits || send_now(peer, message)) {
    return;
  }
  memcpy(peer->control.waiting, message, LCOMM_CONTROL_SIZE);
  peer->control.waits = true;
}

bool lcomm_shm_control_resend(lcomm_shm_peer *peer) {
  peer->control.waits = !send_now(peer, peer->control.waiting);
  return !peer->control.waits;
}

void lcomm_shm_arrive_control(lcomm_shm_peer *peer, const unsigned char *data) {
  if (peer->control.received_count < LCOMM_SHM_CONTROLS) {
    memcpy(peer->control.received[peer->control.received_count++], data, LCOMM_CONTROL_SIZE);
  }
}

static bool receive_ordinary(lcomm_shm_peer *peer, void *message) {
  if (peer->control.received_count == 0) {
    return false;
  }
  memcpy(message, peer->control.received[0], LCOMM_CONTROL_SIZE);
  peer->control.received_count--;
  memmove(peer->control.received[0], peer->control.received[1],
          peer->control.received_count * (size_t)LCOMM_CONTROL_SIZE);
  return true;
}

/* ------------------------------------------------------------------ errors */

/* A peer that was given up may still be there and wait for us. */
void lcomm_shm_control_send_error(lcomm_transport *transport, int rank, const void *message) {
  lcomm_shm_peer *peer = lcomm_shm_of(transport)->of[rank];
  if (!peer || peer->control.error_sent) {
    return;
  }
  peer->control.error_sent = true;
  memcpy(peer->there->error, message, LCOMM_CONTROL_SIZE);
  atomic_store_explicit(&peer->there->has_error, 1, memory_order_release);
  atomic_fetch_add_explicit(&peer->segment->errors, 1, memory_order_seq_cst);
  lcomm_shm_wake(peer);
}

bool lcomm_shm_has_error(const lcomm_shm *t) {
  return atomic_load_explicit(&t->segment->errors, memory_order_seq_cst) != t->errors_seen;
}

static bool receive_error(lcomm_shm *t, void *message) {
  uint32_t errors = atomic_load_explicit(&t->segment->errors, memory_order_acquire);
  if (errors == t->errors_seen) {
    return false;
  }
  for (int i = 0; i < t->reached_count; i++) {
    lcomm_shm_peer *peer = t->reached[i];
    if (!peer->control.error_received &&
        atomic_load_explicit(&peer->here->has_error, memory_order_acquire) != 0) {
      peer->control.error_received = true;
      memcpy(message, peer->here->error, LCOMM_CONTROL_SIZE);
      return true;
    }
  }
  t->errors_seen = errors;
  return false;
}

/* -------------------------------------------------------------------- both */

bool lcomm_shm_control_receive(lcomm_transport *transport, void *message) {
  lcomm_shm *t = lcomm_shm_of(transport);
  if (receive_error(t, message)) {
    return true;
  }
  for (int i = 0; i < t->reached_count; i++) {
    if (receive_ordinary(t->reached[i], message)) {
      return true;
    }
  }
  return false;
}
