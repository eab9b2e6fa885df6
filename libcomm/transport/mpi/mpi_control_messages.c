/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Control messages over MPI: one receive is always posted for the next one, from whoever. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/transport/mpi/mpi_internal.h"

enum { CONTROL_TAG = LCOMM_TAG_CONTROL | 2, CONTROLS_MAX = 3, FLUSH_TRIES = 1000 };

/* Places of a peer: CONTROLS_MAX for ordinary control messages, then one for an error, and one for
 * the empty message that says that no other control message follows. */
enum { ERROR_PLACE = CONTROLS_MAX, LAST_PLACE, PLACES };

/* A control message that leaves: idle when its request is MPI_REQUEST_NULL. */
typedef struct lcomm_mpi_outgoing {
  MPI_Request request;
  unsigned char bytes[LCOMM_CONTROL_SIZE];
} outgoing;

static lcomm_status listen_again(lcomm_mpi_transport *t) {
  return lcomm_mpi_check(t,
                         PMPI_Irecv(t->control.received, LCOMM_CONTROL_SIZE, MPI_BYTE,
                                    MPI_ANY_SOURCE, CONTROL_TAG, t->comm, &t->control.listening));
}

/* ----------------------------------------------------------------- sending */

/* Has it left, or was there none? */
static bool is_idle(outgoing *message) {
  int flag = 0;
  PMPI_Test(&message->request, &flag, MPI_STATUS_IGNORE);
  return flag != 0;
}

static outgoing *place_of(lcomm_mpi_transport *t, int peer, int place) {
  return &t->control.sent[(size_t)peer * PLACES + (size_t)place];
}

static void send_from(lcomm_mpi_transport *t, int peer, outgoing *message, int size) {
  PMPI_Isend(message->bytes, size, MPI_BYTE, t->ranks[peer], CONTROL_TAG, t->comm,
             &message->request);
}

/* Into the first place of these that is idle. */
static void send_in(lcomm_mpi_transport *t, int peer, int first, int end, const void *bytes) {
  for (int i = first; i < end && !t->control.parted[peer]; i++) {
    outgoing *place = place_of(t, peer, i);
    if (is_idle(place)) {
      memcpy(place->bytes, bytes, sizeof(place->bytes));
      send_from(t, peer, place, LCOMM_CONTROL_SIZE);
      return;
    }
  }
}

void lcomm_mpi_control_send(lcomm_transport *transport, int peer, const void *message) {
  send_in(lcomm_mpi_of(transport), peer, 0, CONTROLS_MAX, message);
}

void lcomm_mpi_control_send_error(lcomm_transport *transport, int peer, const void *message) {
  send_in(lcomm_mpi_of(transport), peer, ERROR_PLACE, ERROR_PLACE + 1, message);
}

/* --------------------------------------------------------------- receiving */

static void set_gone(lcomm_mpi_transport *t, int mpi_rank) {
  for (int peer = 0; peer < t->size; peer++) {
    t->control.gone[peer] |= t->ranks[peer] == mpi_rank;
  }
}

/* The size of a control message that has arrived, or -1; 0: it was the peer's last. */
static int receive_any(lcomm_mpi_transport *t, void *message) {
  MPI_Status result;
  int flag = 0, size = 0;
  if (t->control.listening == MPI_REQUEST_NULL ||
      PMPI_Test(&t->control.listening, &flag, &result) != MPI_SUCCESS || !flag) {
    return -1;
  }
  PMPI_Get_count(&result, MPI_BYTE, &size);
  memcpy(message, t->control.received, LCOMM_CONTROL_SIZE);
  if (size == 0) {
    set_gone(t, result.MPI_SOURCE);
  }
  listen_again(t);
  return size;
}

bool lcomm_mpi_control_receive(lcomm_transport *transport, void *message) {
  lcomm_mpi_transport *t = lcomm_mpi_of(transport);
  int size = receive_any(t, message);
  while (size == 0) {
    size = receive_any(t, message);
  }
  return size == LCOMM_CONTROL_SIZE;
}

/* ----------------------------------------------------------------- parting */

/* MPI gives the context of a communicator that was freed to the next one, and while it
 * makes that, to the one that it is made from: what arrives late would be taken for a
 * message of those. Control messages of one rank to another arrive in their order, so nothing of a
 * peer is in flight once its last one was heard. */
void lcomm_mpi_control_part(lcomm_transport *transport, int peer) {
  lcomm_mpi_transport *t = lcomm_mpi_of(transport);
  if (!t->control.parted[peer]) {
    t->control.parted[peer] = true;
    send_from(t, peer, place_of(t, peer, LAST_PLACE), 0);
  }
}

int lcomm_mpi_control_unparted(const lcomm_transport *transport) {
  const lcomm_mpi_transport *t = (const lcomm_mpi_transport *)transport;
  for (int peer = 0; peer < t->size; peer++) {
    if (t->control.parted[peer] && !t->control.gone[peer]) {
      return peer;
    }
  }
  return -1;
}

/* --------------------------------------------------------- open and close */

lcomm_status lcomm_mpi_control_open(lcomm_mpi_transport *t) {
  size_t size = (size_t)t->size;
  t->control.listening = MPI_REQUEST_NULL;
  t->control.sent = calloc(size * PLACES, sizeof *t->control.sent);
  t->control.parted = calloc(size, sizeof *t->control.parted);
  t->control.gone = calloc(size, sizeof *t->control.gone);
  if (!t->control.sent || !t->control.parted || !t->control.gone) {
    snprintf(t->base.why, sizeof(t->base.why), "out of memory");
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < size * PLACES; i++) {
    t->control.sent[i].request = MPI_REQUEST_NULL;
  }
  return listen_again(t);
}

bool lcomm_mpi_control_close(lcomm_mpi_transport *t) {
  bool all = true;
  for (int i = 0; i < t->size * PLACES; i++) {
    outgoing *message = &t->control.sent[i];
    bool idle = false;
    for (int tries = 0; !idle && tries < FLUSH_TRIES; tries++) {
      idle = is_idle(message);
    }
    if (!idle) {
      PMPI_Request_free(&message->request);
      all = false;
    }
  }
  if (t->control.listening != MPI_REQUEST_NULL) {
    all &= lcomm_mpi_end_receive(t, &t->control.listening);
  }
  return all;
}

void lcomm_mpi_control_free(lcomm_mpi_transport *t) {
  free(t->control.sent);
  free(t->control.parted);
  free(t->control.gone);
}
