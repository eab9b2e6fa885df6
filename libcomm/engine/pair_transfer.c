/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Transfers of messages between two ranks. */

#include <stdio.h>

#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/pair_move.h"

static lcomm_status link_failed(lcomm_comm *comm, int peer) {
  char who[96], why[LCOMM_TRANSPORT_WHY_MAX];
  snprintf(why, sizeof(why), "%s", lcomm_comm_link(comm, peer)->why);
  LCOMM_TRY(lcomm_exec_receive_reason(comm));
  return lcomm_fail_peer(comm, LCOMM_ERR_TRANSPORT, peer,
                         "a message between this rank and %s failed: %s. Look at the network and "
                         "at the peer's log.",
                         lcomm_comm_who(comm, peer, who, sizeof(who)), why);
}

lcomm_status lcomm_pair_malformed(lcomm_comm *comm, int peer, const char *why) {
  char who[96];
  return lcomm_fail(comm, LCOMM_ERR_WIRE,
                    "a message from %s is malformed: %s. Check that all ranks run the same "
                    "libcomm, and the network.",
                    lcomm_comm_who(comm, peer, who, sizeof(who)), why);
}

/* Those of a queue follow each other with equal tags; each message of a graph has a queue. */
static uint32_t tag_of(const lcomm_pair_message *it, uint32_t tag) {
  return tag | it->graph_channel << LCOMM_PAIR_CHANNEL_SHIFT;
}

lcomm_status lcomm_pair_send(lcomm_comm *comm, const lcomm_pair_message *it, uint32_t tag,
                             const void *bytes, size_t size, lcomm_transfer *transfer,
                             bool *posted) {
  lcomm_transport *link = lcomm_comm_link(comm, it->peer);
  *posted = link->table->send(link, it->peer, tag_of(it, tag), bytes, size, transfer) == LCOMM_OK;
  return *posted ? LCOMM_OK : link_failed(comm, it->peer);
}

lcomm_status lcomm_pair_receive(lcomm_comm *comm, const lcomm_pair_message *it, uint32_t tag,
                                void *bytes, size_t size, lcomm_transfer *transfer, bool *posted) {
  lcomm_transport *link = lcomm_comm_link(comm, it->peer);
  *posted =
      link->table->receive(link, it->peer, tag_of(it, tag), bytes, size, transfer) == LCOMM_OK;
  return *posted ? LCOMM_OK : link_failed(comm, it->peer);
}

lcomm_status lcomm_pair_test(lcomm_comm *comm, const lcomm_pair_message *it,
                             lcomm_transfer *transfer, bool *posted, size_t *size, bool *moved) {
  bool over = false;
  if (!*posted) {
    return LCOMM_OK;
  }
  lcomm_transport *link = lcomm_comm_link(comm, it->peer);
  if (link->table->test(link, transfer, &over, size) != LCOMM_OK) {
    *posted = false;
    return link_failed(comm, it->peer);
  }
  *posted = !over;
  *moved |= over;
  return LCOMM_OK;
}

static void forget(lcomm_comm *comm, int peer, lcomm_transfer *transfer, bool *posted) {
  if (*posted) {
    lcomm_transport *link = lcomm_comm_link(comm, peer);
    link->table->cancel(link, transfer);
    *posted = false;
  }
}

void lcomm_pair_forget(lcomm_comm *comm, lcomm_pair_message *it) {
  lcomm_pair_transfers *all = &it->in_flight;
  forget(comm, it->peer, &all->header, &all->header_posted);
  forget(comm, it->peer, &all->request, &all->request_posted);
  for (int i = 0; i < LCOMM_PAIR_WINDOW; i++) {
    forget(comm, it->peer, &all->piece[i], &all->piece_posted[i]);
  }
}
