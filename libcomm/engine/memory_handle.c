/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/memory_handle.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/device/stream_gate.h"
#include "libcomm/engine/engine.h"

bool lcomm_memory_handle_fits(const lcomm_memory_handle *handle, uint64_t size) {
  const lcomm_device_ipc *memory = &handle->memory;
  return handle->size == size && memory->offset <= memory->size &&
         size <= memory->size - memory->offset;
}

static bool has_same_handle(const lcomm_device_ipc *a, const lcomm_device_ipc *b) {
  return memcmp(a->handle, b->handle, sizeof(a->handle)) == 0;
}

bool lcomm_device_ipc_is_same(const lcomm_device_ipc *a, const lcomm_device_ipc *b) {
  return a->allocation == b->allocation && a->size == b->size && has_same_handle(a, b);
}

bool lcomm_device_ipc_is_gone(const lcomm_device_ipc *older, const lcomm_device_ipc *memory) {
  bool overlap = older->base - memory->base < memory->size ||
                 memory->base - older->base < older->size; /* whichever begins later */
  return older->allocation != memory->allocation && (overlap || has_same_handle(older, memory));
}

/* ------------------------------------------------------- memory that is open */

/* Opened once, and kept: a peer's buffers are few and stay where they are. An
 * allocation that took another's place has another number. */
static lcomm_device_map *find_map(lcomm_comm *comm, int peer, int ordinal,
                                  const lcomm_device_ipc *memory) {
  for (lcomm_device_map *it = comm->runs.device_maps; it; it = it->next) {
    if (it->peer == peer && it->ordinal == ordinal &&
        lcomm_device_ipc_is_same(&it->memory, memory)) {
      return it;
    }
  }
  return NULL;
}

static void close_map(lcomm_device_map *it) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = it->ordinal;
  (void)table->current(&before);
  (void)table->use(it->ordinal);
  (void)table->stream.destroy(it->stream);
  (void)table->ipc.close(it->base);
  (void)table->use(before);
  free(it);
}

/* What is open of a peer's memory that is gone there: its device keeps it until it is
 * closed here. That may wait for the whole device, so not while a stream there waits
 * for us; then it stays. */
static void close_older(lcomm_comm *comm, int peer, const lcomm_device_ipc *memory) {
  if (lcomm_stream_gate_count() > 0 || comm->runs.played > 0) {
    return;
  }
  for (lcomm_device_map **link = &comm->runs.device_maps; *link;) {
    lcomm_device_map *it = *link;
    if (it->peer != peer || !lcomm_device_ipc_is_gone(&it->memory, memory)) {
      link = &it->next;
      continue;
    }
    *link = it->next;
    close_map(it);
  }
}

int lcomm_device_map_open(lcomm_comm *comm, int peer, int ordinal, const lcomm_device_ipc *memory,
                          lcomm_device_map **opened) {
  *opened = find_map(comm, peer, ordinal, memory);
  if (*opened) {
    return 0;
  }
  close_older(comm, peer, memory);
  lcomm_device_map *made = calloc(1, sizeof *made);
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int error = made ? table->stream.work_create(&made->stream) : -1;
  if (error) {
    free(made);
    return error;
  }
  error = table->ipc.open(memory, &made->base);
  if (error) {
    (void)table->stream.destroy(made->stream);
    free(made);
    return error;
  }
  made->peer = peer;
  made->ordinal = ordinal;
  made->memory = *memory;
  made->next = comm->runs.device_maps;
  comm->runs.device_maps = *opened = made;
  return 0;
}

void lcomm_device_maps_free(lcomm_comm *comm) {
  while (comm->runs.device_maps) {
    lcomm_device_map *it = comm->runs.device_maps;
    comm->runs.device_maps = it->next;
    close_map(it);
  }
}
