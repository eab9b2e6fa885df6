/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory of peers: offered, opened, closed. */

#include "libcomm/engine/peer_memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/memory_handle.h"
#include "libcomm/engine/peer_memory_messages.h"
#include "libcomm/engine/run_device.h"

/* ------------------------------------------------------------------- offers */

static lcomm_peer_memory *find(const lcomm_comm *comm, int peer, const lcomm_device_ipc *memory) {
  lcomm_peer_memory *it = comm->runs.peer_memory;
  while (it && (it->peer != peer || !lcomm_device_ipc_is_same(&it->memory, memory))) {
    it = it->next;
  }
  return it;
}

/* The oldest is the first: it is opened first, and given up for newer ones. */
static void append(lcomm_comm *comm, lcomm_peer_memory *it) {
  lcomm_peer_memory **link = &comm->runs.peer_memory;
  while (*link) {
    link = &(*link)->next;
  }
  *link = it;
}

static bool has_room(const lcomm_comm *comm) {
  size_t count = 0;
  for (const lcomm_peer_memory *it = comm->runs.peer_memory; it; it = it->next) {
    count++;
  }
  return count < LCOMM_OFFERS_MAX;
}

void lcomm_peer_memory_offered(lcomm_comm *comm, const void *message) {
  lcomm_offer_message offer;
  memcpy(&offer, message, sizeof(offer));
  if (!lcomm_offer_is_possible(&offer, comm->size, comm->rank)) {
    return;
  }
  lcomm_peer_memory *it = find(comm, offer.rank, &offer.memory);
  if (!it) {
    it = has_room(comm) ? calloc(1, sizeof *it) : NULL;
    if (!it) {
      return; /* payloads go through the host */
    }
    it->peer = offer.rank;
    it->memory = offer.memory;
    append(comm, it);
  }
  it->plan = offer.plan;
  it->is_asked = true;
}

void lcomm_peer_memory_refuse(lcomm_comm *comm, int peer, const lcomm_device_ipc *memory) {
  lcomm_take_message take = {
      .kind = LCOMM_CONTROL_TAKE, .rank = comm->rank, .allocation = memory->allocation};
  lcomm_control_send(comm, peer, &take, sizeof(take));
}

/* ------------------------------------------------------------------ opening */

/* Memory of another rank of this process is here already. */
static int open_mine(lcomm_peer_memory *it, int ordinal) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  void *base = (void *)(uintptr_t)it->memory.base;
  lcomm_memory_location at = table->locate(base);
  bool possible = false;
  int error =
      lcomm_memory_is_on_device(at) ? table->ipc.peer_access(ordinal, at.device, &possible) : -1;
  it->is_mine = true;
  it->base = possible ? base : NULL;
  return error;
}

static int open_there(lcomm_peer_memory *it, int ordinal, bool is_mine) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  void *base = NULL;
  int before = ordinal;
  int error = lcomm_device_enter(table, ordinal, &before);
  if (!error && is_mine) {
    error = open_mine(it, ordinal);
  } else if (!error) {
    error = table->ipc.open(&it->memory, &base);
    it->base = error ? NULL : base;
  }
  (void)table->use(before);
  return error;
}

static void close_there(lcomm_peer_memory *it) {
  if (!it->base || it->is_mine) {
    return;
  }
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = it->ordinal;
  (void)lcomm_device_enter(table, it->ordinal, &before);
  (void)table->ipc.close(it->base);
  (void)table->use(before);
}

/* One that was in the same place at its peer: it is gone there, and its device keeps it until it is
 * closed here. Taken out of the list. */
static lcomm_peer_memory *take_gone(lcomm_comm *comm, const lcomm_peer_memory *newer) {
  for (lcomm_peer_memory **link = &comm->runs.peer_memory; *link; link = &(*link)->next) {
    lcomm_peer_memory *it = *link;
    if (it == newer) {
      return NULL; /* those behind are newer still */
    }
    if (it->peer == newer->peer && lcomm_device_ipc_is_gone(&it->memory, &newer->memory)) {
      *link = it->next;
      return it;
    }
  }
  return NULL;
}

/* Without the communicator's turn. Only who has the device's takes something out of the list, or
 * opens it. */
static void close_gone(lcomm_comm *comm, const lcomm_peer_memory *newer) {
  for (lcomm_peer_memory *gone = take_gone(comm, newer); gone; gone = take_gone(comm, newer)) {
    unsigned depth = lcomm_turn_give(comm);
    close_there(gone);
    lcomm_turn_take(comm, depth);
    free(gone);
  }
}

static lcomm_peer_memory *find_undecided(const lcomm_run *run) {
  bool in_time = run->device->share.begun < LCOMM_OPENING_OPERATIONS;
  lcomm_peer_memory *it = in_time ? run->comm->runs.peer_memory : NULL;
  while (it && (it->is_decided || it->plan != run->plan->hash)) {
    it = it->next;
  }
  return it;
}

static bool is_of_this_process(const lcomm_comm *comm, int peer) {
  const lcomm_process *mine = &comm->identity.processes[comm->rank];
  const lcomm_process *its = &comm->identity.processes[peer];
  return mine->host_hash == its->host_hash && mine->pid == its->pid;
}

void lcomm_peer_memory_open(const lcomm_run *run) {
  lcomm_comm *comm = run->comm;
  int ordinal = run->plan->location.device;
  for (lcomm_peer_memory *it = find_undecided(run); it; it = find_undecided(run)) {
    close_gone(comm, it);
    it->is_decided = true;
    it->ordinal = ordinal;
    if (!lcomm_device_may_stay(comm, it->peer)) {
      continue;
    }
    bool is_mine = is_of_this_process(comm, it->peer);
    lcomm_peer_memory opened = *it;
    unsigned depth = lcomm_turn_give(comm);
    (void)open_there(&opened, ordinal, is_mine); /* if it cannot be: through the host */
    lcomm_turn_take(comm, depth);
    it->base = opened.base;
    it->is_mine = opened.is_mine;
  }
}

const uint8_t *lcomm_peer_memory_at(const lcomm_comm *comm, int peer,
                                    const lcomm_device_ipc *memory, int *ordinal) {
  const lcomm_peer_memory *it = find(comm, peer, memory);
  *ordinal = it && it->base ? it->ordinal : LCOMM_DEVICE_NONE;
  return it && it->base ? it->base + memory->offset : NULL;
}

void lcomm_peer_memory_free(lcomm_comm *comm) {
  while (comm->runs.peer_memory) {
    lcomm_peer_memory *it = comm->runs.peer_memory;
    comm->runs.peer_memory = it->next;
    close_there(it);
    free(it);
  }
}
