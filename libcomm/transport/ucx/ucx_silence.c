/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Peers whose host vanished: a cable pulled, a machine off. Nothing comes then,
 * not even the end of a connection, and TCP asks for many minutes before it
 * gives up. The kernel's own limit (TCP_USER_TIMEOUT) would also end connections
 * to hosts that answer and have no room. */

#include <stdio.h>

#include "libcomm/transport/ucx/ucx_internal.h"
#include "libcomm/transport/ucx/ucx_sockets.h"

typedef struct survey {
  const lcomm_ucx_transport *transport;
  int silent;     /* the first peer whose host does not answer, or -1 */
  double heard_s; /* how long it has not */
  bool answered;  /* some other host does */
} survey;

static void look_at(int fd, void *argument) {
  survey *all = argument;
  const lcomm_ucx_transport *t = all->transport;
  lcomm_ucx_connection connection;
  if (!lcomm_ucx_connection_read(fd, &connection)) {
    return;
  }
  int peer = lcomm_ucx_interfaces_find(t->interfaces, t->size, t->rank, connection.peer_address);
  if (peer < 0) {
    return; /* this host, or one that nobody knows */
  }
  if (!connection.kept_alive) { /* UCX has opened it since the link was proven */
    lcomm_ucx_socket_keep_alive(fd);
  }
  if (!lcomm_ucx_connection_is_silent(&connection)) {
    all->answered |= connection.heard_s < LCOMM_UCX_SILENT_S;
  } else if (all->silent < 0 || peer < all->silent) {
    all->silent = peer;
    all->heard_s = connection.heard_s;
  }
}

int lcomm_ucx_unreachable(lcomm_transport *transport, lcomm_why *why) {
  lcomm_ucx_transport *t = (lcomm_ucx_transport *)transport;
  survey all = {.transport = t, .silent = -1};
  if (!t->place.worker || !t->interfaces) {
    return -1;
  }
  if (t->unproven > 0) {
    lcomm_ucx_look_after_sockets(t);
  }
  lcomm_ucx_sockets_of(t->event_fd, look_at, &all);
  if (all.silent >= 0) {
    lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "does not answer for %.0f s%s", all.heard_s,
                  all.answered ? "" : ", nor does any other host: this host may be cut off");
  }
  return all.silent;
}
