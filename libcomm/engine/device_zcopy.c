/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/device_zcopy.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/wire.h"
#include "libcomm/base/env.h"
#include "libcomm/device/stream_gate.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/memory_handle.h"
#include "libcomm/engine/run_device.h"

/* ------------------------------------------------------------- who can export */

static bool is_wanted(void) {
  const char *mode = lcomm_env_get(LCOMM_ENV_CUDA_IPC);
  return !mode || strcmp(mode, "off") != 0;
}

/* Can the device of this peer read ours, and ours its? */
static bool reaches(const lcomm_comm *comm, int peer) {
  lcomm_link link = lcomm_topo_link(&comm->topo, comm->rank, peer);
  bool device =
      link == LCOMM_LINK_SAME_DEVICE || link == LCOMM_LINK_NVLINK || link == LCOMM_LINK_PCIE;
  return device && comm->topo.node[comm->rank] == comm->topo.node[peer] &&
         lcomm_comm_link(comm, peer)->table->zero_copy;
}

bool lcomm_device_may_stay(const lcomm_run *run, uint32_t slot) {
  return run->plan->slot_bounds[slot] > run->slots[slot].room && !lcomm_run_is_sparse(run, slot) &&
         !lcomm_run_format(run, slot)->zstd && !run->plan->checksum;
}

/* A slot is exported to all that it is sent to, or to none: it has one header. What
 * came from a peer is sent on from the host. */
static void find_exported(lcomm_run *run) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND) {
      bool exports = lcomm_device_may_stay(run, step->slot) &&
                     !lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_RECEIVED);
      run->slots[step->slot].traits |= exports ? LCOMM_SLOT_EXPORTS : 0;
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND && !reaches(run->comm, step->peer)) {
      run->slots[step->slot].traits &= ~(unsigned)LCOMM_SLOT_EXPORTS;
    }
  }
}

lcomm_status lcomm_device_zcopy_make(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  uint32_t slots = run->plan->schedule.slot_count, exported = 0;
  if (device->can_share && is_wanted()) {
    find_exported(run);
  }
  lcomm_device_find_direct(run);
  for (uint32_t i = 0; i < slots; i++) {
    exported += lcomm_slot_is(&run->slots[i], LCOMM_SLOT_EXPORTS);
  }
  if (exported == 0) {
    return LCOMM_OK;
  }
  device->handle_memory =
      lcomm_links_memory_get(&run->comm->links, (size_t)exported * LCOMM_MEMORY_HANDLE_SIZE);
  if (!device->handle_memory) {
    return LCOMM_ERR_MEMORY;
  }
  uint8_t *place = device->handle_memory;
  for (uint32_t i = 0; i < slots; i++) {
    bool exports = lcomm_slot_is(&run->slots[i], LCOMM_SLOT_EXPORTS);
    device->slots[i].handle = exports ? place : NULL;
    place += exports ? LCOMM_MEMORY_HANDLE_SIZE : 0;
  }
  return LCOMM_OK;
}

void lcomm_device_zcopy_free(lcomm_run *run) {
  lcomm_links_memory_free(&run->comm->links, run->device->handle_memory);
}

/* --------------------------------------------------------------- the sender */

bool lcomm_device_send_handle(lcomm_run *run, uint32_t slot, const void *payload) {
  lcomm_device_slot *own = &run->device->slots[slot];
  lcomm_memory_handle it;
  memset(&it, 0, sizeof(it));
  if (own->handle_of != payload) {
    if (run->device->table->ipc.get(payload, &it.memory) != 0) {
      return false;
    }
    it.size = run->slots[slot].payload_size;
    memcpy(own->handle, &it, sizeof(it));
    own->handle_of = payload == own->payload ? payload : NULL; /* the vector may be another */
  }
  lcomm_payload_exported(&run->slots[slot]);
  return true;
}

const void *lcomm_device_sent_bytes(const lcomm_run *run, uint32_t slot, size_t *size) {
  const lcomm_slot_memory *memory = &run->slots[slot];
  if (memory->state == LCOMM_PAYLOAD_EXPORTED) {
    *size = LCOMM_MEMORY_HANDLE_SIZE;
    return run->device->slots[slot].handle;
  }
  *size = memory->wire_size;
  return lcomm_device_payload(run, slot);
}

/* ------------------------------------------------------------- the receiver */

bool lcomm_device_is_zcopy(const lcomm_run *run, const lcomm_step *step, uint8_t *header) {
  if (!reaches(run->comm, step->peer) || !lcomm_device_in_use()) {
    return false;
  }
  lcomm_wire_clear_handle(header);
  return true;
}

/* An allocation of a peer, open here. */
typedef struct lcomm_device_map {
  int peer;
  int ordinal; /* the device that it was opened on */
  lcomm_device_ipc memory;
  void *base;
  void *stream; /* for copies to the host: no other stream has to wait for it, or it for them */
  struct lcomm_device_map *next;
} map;

/* Opened once, and kept: a peer's buffers are few and stay where they are. An
 * allocation that took another's place has another number. */
static map *find_map(lcomm_comm *comm, int peer, int ordinal, const lcomm_device_ipc *memory) {
  for (map *it = comm->runs.device_maps; it; it = it->next) {
    if (it->peer == peer && it->ordinal == ordinal &&
        lcomm_device_ipc_is_same(&it->memory, memory)) {
      return it;
    }
  }
  return NULL;
}

static void close_map(map *it) {
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
  if (lcomm_stream_gate_count() > 0) {
    return;
  }
  for (map **link = &comm->runs.device_maps; *link;) {
    map *it = *link;
    if (it->peer != peer || !lcomm_device_ipc_is_gone(&it->memory, memory)) {
      link = &it->next;
      continue;
    }
    *link = it->next;
    close_map(it);
  }
}

static int open_map(lcomm_comm *comm, int peer, int ordinal, const lcomm_device_ipc *memory,
                    map **opened) {
  *opened = find_map(comm, peer, ordinal, memory);
  if (*opened) {
    return 0;
  }
  close_older(comm, peer, memory);
  map *made = calloc(1, sizeof *made);
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
    map *it = comm->runs.device_maps;
    comm->runs.device_maps = it->next;
    close_map(it);
  }
}

static lcomm_status cannot_read(lcomm_run *run, const lcomm_step *step, int error) {
  char who[96];
  return lcomm_fail(run->comm, LCOMM_ERR_TRANSPORT,
                    "%s #%u: memory on the device of %s cannot be read: %s. LCOMM_CUDA_IPC=off on "
                    "all ranks sends it through the host.",
                    lcomm_collective_name(run->plan->collective), run->sequence,
                    lcomm_comm_who(run->comm, step->peer, who, sizeof(who)),
                    lcomm_device_get(NULL)->explain(error));
}

/* Only kernels of a run on a device can read there, and only what is released
 * without waiting for a message of ours (find_prompt_slots in run_slots.c). */
static bool stays_there(const lcomm_run *run, uint32_t slot) {
  const lcomm_slot_memory *memory = &run->slots[slot];
  return lcomm_memory_is_on_device(run->plan->location) &&
         lcomm_slot_is(memory, LCOMM_SLOT_PROMPT) && !lcomm_slot_is(memory, LCOMM_SLOT_FORWARDED);
}

/* Memory of this process for a payload that has to come here. */
static uint8_t *room_for(lcomm_run *run, uint32_t place) {
  lcomm_slot_memory *slot = &run->slots[place];
  if (!slot->wire) { /* a plain run on the host meant to read it at its sender */
    uint8_t *memory = lcomm_links_memory_get(&run->comm->links, slot->wire_capacity);
    if (memory) {
      lcomm_payload_use_memory(slot, memory);
    }
  }
  return slot->wire;
}

lcomm_status lcomm_device_receive_handle(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_slot_memory *slot = &run->slots[step->slot];
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_memory_handle it;
  LCOMM_TRY(lcomm_exec_copy_zcopy(run, step->slot, 0, sizeof(it), &it));
  if (!lcomm_memory_handle_fits(&it, slot->wire_size)) {
    char who[96];
    return lcomm_fail(
        run->comm, LCOMM_ERR_WIRE,
        "%s #%u: %s exports memory of its device that is no payload. Install the same "
        "libcomm for all ranks; LCOMM_CUDA_IPC=off sends it through the host.",
        lcomm_collective_name(run->plan->collective), run->sequence,
        lcomm_comm_who(run->comm, step->peer, who, sizeof(who)));
  }
  int before = 0;
  (void)table->current(&before);
  bool here = lcomm_memory_is_on_device(run->plan->location);
  int ordinal = here ? run->plan->location.device : before;
  (void)table->use(ordinal);
  map *opened = NULL;
  int error = open_map(run->comm, step->peer, ordinal, &it.memory, &opened);
  const uint8_t *there = error ? NULL : (uint8_t *)opened->base + it.memory.offset;
  if (!error && stays_there(run, step->slot)) {
    run->device->slots[step->slot].mapped = there;
    lcomm_payload_on_peer_device(slot);
  } else if (!error) {
    uint8_t *memory = room_for(run, step->slot);
    error = memory ? table->copy(memory, there, slot->wire_size, opened->stream) : -1;
    error = error ? error : table->stream.finish(opened->stream);
    if (!error) {
      lcomm_payload_copied(slot);
    }
  }
  (void)table->use(before);
  return error ? cannot_read(run, step, error) : LCOMM_OK;
}
