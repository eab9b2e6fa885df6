/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Endpoints: those that are made while the transport is opened, and those that are made with the
 * first message to or from a peer. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/descriptors.h"
#include "libcomm/transport/ucx/ucx_fork.h"
#include "libcomm/transport/ucx/ucx_internal.h"
#include "libcomm/transport/ucx/ucx_sockets.h"

/* Among so few ranks all links are made at once: they cost little, what is wrong with one is said
 * when the communicator is made, and no port stays open. */
enum { AT_ONCE_MAX = 32 };

/* File descriptors that one more link leaves to the program: its peers may connect, too. */
enum { SPARE = 16, OF_A_LINK = 2 };

int lcomm_ucx_at_once_max = AT_ONCE_MAX;

/* ------------------------------------------------------------------- which */

static bool is_power_of_two(int number) {
  return number > 0 && (number & (number - 1)) == 0;
}

bool lcomm_ucx_is_linked_at_once(int rank, int peer, int size) {
  int distance = peer > rank ? peer - rank : rank - peer;
  bool near = is_power_of_two(distance) || is_power_of_two(size - distance);
  return distance != 0 && (size <= lcomm_ucx_at_once_max || near);
}

int lcomm_ucx_count_at_once(int rank, int size, const bool *linked) {
  int count = 0;
  for (int peer = 0; peer < size; peer++) {
    bool needed = !linked || !linked[peer];
    count += needed && lcomm_ucx_is_linked_at_once(rank, peer, size);
  }
  return count;
}

/* ------------------------------------------------------------------ making */

static void endpoint_failed(void *argument, ucp_ep_h endpoint, ucs_status_t status) {
  lcomm_ucx_peer *peer = argument;
  (void)endpoint;
  if (peer->failed == UCS_OK) {
    peer->failed = status;
  }
  ++*peer->alarms;
}

void lcomm_ucx_connect(lcomm_ucx_transport *t, int rank, const void *address) {
  lcomm_ucx_peer *peer = &t->peers[rank];
  ucp_ep_params_t params = {
      .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                    UCP_EP_PARAM_FIELD_ERR_HANDLER,
      .address = address,
      .err_mode = UCP_ERR_HANDLING_MODE_PEER,
      .err_handler = {.cb = endpoint_failed, .arg = peer},
  };
  ucs_status_t status = lcomm_ucx.ucp_ep_create(t->place.worker, &params, &peer->endpoint);
  if (status != UCS_OK) {
    peer->endpoint = NULL;
    peer->failed = status;
  }
}

bool lcomm_ucx_connect_later(lcomm_ucx_transport *t, int rank, const void *address, size_t size) {
  lcomm_ucx_peer *peer = &t->peers[rank];
  peer->address = malloc(size);
  if (peer->address) {
    memcpy(peer->address, address, size);
  }
  return peer->address != NULL;
}

static lcomm_status refuse_for_descriptors(lcomm_ucx_transport *t, int rank, int left) {
  char what[160];
  snprintf(what, sizeof(what),
           "no connection can be made: this process can open %d more file descriptors (its limit "
           "is %d); start it with a higher `ulimit -n`",
           left, lcomm_descriptors_limit());
  return lcomm_ucx_blame(t, rank, what);
}

/* UCX ends the process where it finds no file descriptor. */
lcomm_status lcomm_ucx_link_now(lcomm_ucx_transport *t, int rank) {
  lcomm_ucx_peer *peer = &t->peers[rank];
  if (peer->endpoint || !peer->address) {
    return LCOMM_OK;
  }
  int left = lcomm_descriptors_free();
  if (left < OF_A_LINK + SPARE) {
    return refuse_for_descriptors(t, rank, left);
  }
  lcomm_ucx_connect(t, rank, peer->address);
  free(peer->address);
  peer->address = NULL;
  t->unproven++;
  return LCOMM_OK;
}

void lcomm_ucx_look_after_sockets(lcomm_ucx_transport *t) {
  lcomm_ucx_sockets_keep_alive(t->event_fd);
  lcomm_ucx_fork_close_on_exec(t->event_fd);
}

/* Where many links are made at a time, the last one looks after the sockets of all. */
void lcomm_ucx_proven(lcomm_ucx_transport *t, int rank) {
  if (t->peers[rank].proven) {
    return;
  }
  t->peers[rank].proven = true;
  if (--t->unproven <= 0) {
    lcomm_ucx_look_after_sockets(t);
  }
}
