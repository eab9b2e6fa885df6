/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/announce.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/base/log.h"

/* "ranks 1-3, 6 by shm": of one transport. */
static void list_peers(const lcomm_comm *comm, const lcomm_transport *link, char *text,
                       size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int peer = 0, last = 0; peer < comm->size && used + 32 < size; peer = last + 1) {
    last = peer;
    if (comm->links.of[peer] != link) {
      continue;
    }
    while (last + 1 < comm->size && comm->links.of[last + 1] == link) {
      last++;
    }
    used += (size_t)snprintf(text + used, size - used, last > peer ? "%s%d-%d" : "%s%d",
                             used > 0 ? ", " : "", peer, last);
  }
}

/* What people put into bug reports: this rank's way to each peer. */
static void log_links(const lcomm_comm *comm) {
  char who[96], peers[256], sentence[1024];
  for (int i = 0; i < comm->links.count && lcomm_log_wants(LCOMM_LOG_INFO); i++) {
    const lcomm_transport *link = comm->links.open[i];
    const char *through = link->table->interface ? link->table->interface(link) : "";
    list_peers(comm, link, peers, sizeof(peers));
    snprintf(sentence, sizeof(sentence), "%s: communicator %u: to rank%s %s by %s%s%.500s",
             lcomm_comm_who(comm, comm->rank, who, sizeof(who)), comm->identity.number,
             strpbrk(peers, ",-") ? "s" : "", peers, link->table->name, through[0] ? " over " : "",
             through);
    if (peers[0]) {
      lcomm_log(LCOMM_LOG_INFO, sentence);
    }
  }
}

/* Rank 0 says what is the same on all. */
static void log_whole(const lcomm_comm *comm) {
  char sentence[LCOMM_POLICY_MAX + 256], racks[32] = "";
  if (comm->rank == 0 && lcomm_log_wants(LCOMM_LOG_INFO)) {
    if (comm->topo.racks.count > 0) {
      snprintf(racks, sizeof(racks), " in %d racks", comm->topo.racks.count);
    }
    snprintf(
        sentence, sizeof(sentence),
        "libcomm %d.%d.%d: communicator %u of %d ranks on %d nodes%s, policy \"%s\", kernels %s, "
        "time-out %g s",
        LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR, LCOMM_VERSION_PATCH, comm->identity.number,
        comm->size, comm->topo.nodes, racks, comm->settings.policy_text, comm->kernels->name,
        comm->settings.timeout_s);
    lcomm_log(LCOMM_LOG_INFO, sentence);
  }
}

/* What ranks go on without; rank 0 says it for all. */
static void tell_lost_traces(const lcomm_comm *comm, const lcomm_handshake *all) {
  char sentence[LCOMM_WHY_MAX + 256];
  int lost = 0, first = 0;
  for (int i = comm->size - 1; i >= 0; i--) {
    bool here = all[i].error[0] != '\0';
    lost += here;
    first = here ? i : first;
  }
  if (comm->rank != 0 || lost == 0) {
    return;
  }
  snprintf(sentence, sizeof(sentence),
           "rank %d (host %.63s): %.*s. The run goes on without the traces of %d of %d ranks",
           first, all[first].identity.host, (int)sizeof(all[first].error) - 1, all[first].error,
           lost, comm->size);
  lcomm_trace_lost(sentence);
}

void lcomm_comm_announce(const lcomm_comm *comm, const lcomm_handshake *all) {
  log_whole(comm);
  log_links(comm);
  tell_lost_traces(comm, all);
}
