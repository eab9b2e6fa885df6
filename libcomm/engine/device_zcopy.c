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

/* ------------------------------------------------------------- who can lend */

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

/* A slot is lent to all that it is sent to, or to none: it has one header. What
 * came from a peer is sent on from the host. */
static void find_lent(lcomm_run *run) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  bool *lends = run->device->lends;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND) {
      lends[step->slot] =
          lcomm_device_may_stay(run, step->slot) && !run->slots[step->slot].received;
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND) {
      lends[step->slot] &= reaches(run->comm, step->peer);
    }
  }
}

lcomm_status lcomm_device_zcopy_make(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  uint32_t slots = run->plan->schedule.slot_count, lent = 0;
  device->lends = calloc((size_t)slots + 1, sizeof *device->lends);
  device->handles = calloc((size_t)slots + 1, sizeof *device->handles);
  device->view = calloc((size_t)slots + 1, sizeof *device->view);
  device->direct = calloc((size_t)slots + 1, sizeof *device->direct);
  device->own_handle = calloc((size_t)slots + 1, sizeof *device->own_handle);
  if (!device->direct || !device->own_handle || !device->lends || !device->handles ||
      !device->view) {
    return LCOMM_ERR_MEMORY;
  }
  if (device->can_share && is_wanted()) {
    find_lent(run);
  }
  lcomm_device_find_direct(run);
  for (uint32_t i = 0; i < slots; i++) {
    lent += device->lends[i];
  }
  if (lent == 0) {
    return LCOMM_OK;
  }
  device->handle_memory =
      lcomm_links_memory_get(&run->comm->links, (size_t)lent * LCOMM_MEMORY_HANDLE_SIZE);
  if (!device->handle_memory) {
    return LCOMM_ERR_MEMORY;
  }
  uint8_t *place = device->handle_memory;
  for (uint32_t i = 0; i < slots; i++) {
    device->handles[i] = device->lends[i] ? place : NULL;
    place += device->lends[i] ? LCOMM_MEMORY_HANDLE_SIZE : 0;
  }
  return LCOMM_OK;
}

void lcomm_device_zcopy_free(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  lcomm_links_memory_free(&run->comm->links, device->handle_memory);
  free(device->lends);
  free(device->handles);
  free(device->view);
  free(device->direct);
  free(device->own_handle);
}

/* --------------------------------------------------------------- the sender */

bool lcomm_device_send_handle(lcomm_run *run, uint32_t slot, const void *payload) {
  lcomm_run_device *device = run->device;
  bool own = payload == device->payload[slot]; /* which stays, so its memory handle does */
  lcomm_memory_handle it;
  memset(&it, 0, sizeof(it));
  if (!own || !device->own_handle[slot]) {
    if (device->table->ipc_get(payload, &it.memory) != 0) {
      return false;
    }
    it.size = run->slots[slot].payload_size;
    memcpy(device->handles[slot], &it, sizeof(it));
    device->own_handle[slot] = own;
  }
  run->slots[slot].lent = true;
  return true;
}

const void *lcomm_device_second_piece(const lcomm_run *run, uint32_t slot, size_t *size) {
  const lcomm_slot_memory *memory = &run->slots[slot];
  *size = memory->lent ? (size_t)LCOMM_MEMORY_HANDLE_SIZE : memory->wire_size;
  if (memory->lent) {
    return run->device->handles[slot];
  }
  bool direct = run->device && run->device->direct[slot];
  return direct ? lcomm_device_payload(run, slot) : memory->wire;
}

/* ------------------------------------------------------------- the receiver */

bool lcomm_device_is_zcopy(const lcomm_run *run, const lcomm_step *step, uint8_t *header) {
  if (!lcomm_wire_has_handle(header) || !reaches(run->comm, step->peer) || !lcomm_device_in_use()) {
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
  (void)table->stream_destroy(it->stream);
  (void)table->ipc_close(it->base);
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
  int error = made ? table->work_stream_create(&made->stream) : -1;
  if (error) {
    free(made);
    return error;
  }
  error = table->ipc_open(memory, &made->base);
  if (error) {
    (void)table->stream_destroy(made->stream);
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

/* Only kernels of a run on a device can read there, and only what is given back
 * without waiting for a message of ours (find_prompt_slots in run_slots.c). */
static bool stays_there(const lcomm_run *run, uint32_t slot) {
  return run->device && run->slots[slot].prompt && !run->slots[slot].forwarded;
}

/* Memory of this process for a payload that has to come here. */
static uint8_t *room_for(lcomm_run *run, uint32_t place) {
  lcomm_slot_memory *slot = &run->slots[place];
  if (!slot->own_wire) { /* a plain run on the host meant to read it at its sender */
    slot->own_wire = slot->own_payload =
        lcomm_links_memory_get(&run->comm->links, slot->wire_capacity);
    slot->late_memory = slot->own_wire;
  }
  slot->wire = slot->payload = slot->own_wire;
  return slot->own_wire;
}

lcomm_status lcomm_device_receive_handle(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_slot_memory *slot = &run->slots[step->slot];
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_memory_handle it;
  lcomm_status status = lcomm_exec_get_zcopy(run, step->slot, 0, sizeof(it), &it);
  if (status != LCOMM_OK) {
    return status;
  }
  if (!lcomm_memory_handle_fits(&it, slot->wire_size)) {
    char who[96];
    return lcomm_fail(run->comm, LCOMM_ERR_WIRE,
                      "%s #%u: %s lends memory of its device that is no payload. Install the same "
                      "libcomm for all ranks; LCOMM_CUDA_IPC=off sends it through the host.",
                      lcomm_collective_name(run->plan->collective), run->sequence,
                      lcomm_comm_who(run->comm, step->peer, who, sizeof(who)));
  }
  int before = 0, ordinal = 0;
  (void)table->current(&before);
  ordinal = run->device ? run->device->ordinal : before;
  (void)table->use(ordinal);
  map *opened = NULL;
  int error = open_map(run->comm, step->peer, ordinal, &it.memory, &opened);
  const uint8_t *there = error ? NULL : (uint8_t *)opened->base + it.memory.offset;
  if (!error && stays_there(run, step->slot)) {
    run->device->view[step->slot] = there;
    run->device->arrived[step->slot] = true;
  } else if (!error) {
    uint8_t *here = room_for(run, step->slot);
    error = here ? table->copy(here, there, slot->wire_size, opened->stream) : -1;
    error = error ? error : table->stream_finish(opened->stream);
    lcomm_exec_release_zcopy(slot);
  }
  (void)table->use(before);
  return error ? cannot_read(run, step, error) : LCOMM_OK;
}
