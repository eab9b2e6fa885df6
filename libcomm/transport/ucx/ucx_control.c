/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Control messages: short messages of our own. One receive is always posted for the
 * next one, from whoever; asking it costs nothing when nobody says anything. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/transport/ucx/ucx_internal.h"

void lcomm_ucx_listen(lcomm_ucx_transport *t) {
  t->listening = lcomm_ucx_receive(t, lcomm_ucx_tag_own(0, LCOMM_UCX_CONTROL),
                                   LCOMM_UCX_TAG_OWN_ANY, t->heard, sizeof(t->heard), NULL);
}

bool lcomm_ucx_control_receive(lcomm_transport *transport, void *message) {
  lcomm_ucx_transport *t = (lcomm_ucx_transport *)transport;
  ucp_tag_recv_info_t info = {0};
  if (!t->place.worker) {
    return false;
  }
  if (!UCS_PTR_IS_PTR(t->listening)) { /* memory was short the last time */
    lcomm_ucx_listen(t);
    return false;
  }
  ucs_status_t status = lcomm_ucx.ucp_tag_recv_request_test(t->listening, &info);
  if (status == UCS_INPROGRESS) {
    return false;
  }
  bool whole = status == UCS_OK && info.length == LCOMM_CONTROL_SIZE;
  if (whole) {
    memcpy(message, t->heard, LCOMM_CONTROL_SIZE);
  }
  lcomm_ucx_release(t->listening);
  lcomm_ucx_listen(t);
  return whole;
}

/* Can something be told to this peer? A link that is left to make is made. */
static bool takes_notices(lcomm_ucx_transport *t, int rank) {
  const lcomm_ucx_peer *peer = &t->peers[rank];
  bool works = t->place.worker && peer->reached && peer->failed == UCS_OK;
  return works && lcomm_ucx_link_now(t, rank) == LCOMM_OK && peer->failed == UCS_OK;
}

/* Is this place free? What was sent from it is given back. */
static bool is_free(lcomm_ucx_peer *peer, int place) {
  if (lcomm_ucx_state(peer->telling[place]) == UCS_INPROGRESS) {
    return false;
  }
  lcomm_ucx_release(peer->telling[place]);
  peer->telling[place] = NULL;
  return true;
}

static void send_control(lcomm_ucx_transport *t, int rank, int place, unsigned char *bytes,
                         const void *message) {
  memcpy(bytes, message, LCOMM_CONTROL_SIZE);
  t->peers[rank].telling[place] = lcomm_ucx_send(
      t, rank, lcomm_ucx_tag_own(t->rank, LCOMM_UCX_CONTROL), bytes, LCOMM_CONTROL_SIZE, NULL);
}

void lcomm_ucx_control_send(lcomm_transport *transport, int rank, const void *message) {
  lcomm_ucx_transport *t = (lcomm_ucx_transport *)transport;
  lcomm_ucx_peer *peer = &t->peers[rank];
  if (!takes_notices(t, rank)) {
    return;
  }
  if (!peer->told) {
    peer->told = malloc((size_t)LCOMM_UCX_CONTROL_ERROR * LCOMM_CONTROL_SIZE);
  }
  for (int i = 0; peer->told && i < LCOMM_UCX_CONTROL_ERROR; i++) {
    if (is_free(peer, i)) {
      send_control(t, rank, i, peer->told + (size_t)i * LCOMM_CONTROL_SIZE, message);
      return;
    }
  }
}

void lcomm_ucx_control_send_error(lcomm_transport *transport, int rank, const void *message) {
  lcomm_ucx_transport *t = (lcomm_ucx_transport *)transport;
  lcomm_ucx_peer *peer = &t->peers[rank];
  if (takes_notices(t, rank) && is_free(peer, LCOMM_UCX_CONTROL_ERROR)) {
    send_control(t, rank, LCOMM_UCX_CONTROL_ERROR, peer->error, message);
  }
}

void lcomm_ucx_control_free(lcomm_ucx_peer *peer) {
  free(peer->told);
  peer->told = NULL;
}
