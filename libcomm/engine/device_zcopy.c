/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/device_zcopy.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/wire.h"
#include "libcomm/base/env.h"
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

static bool takes_devices(const lcomm_comm *comm, int peer) {
  const lcomm_transport *link = lcomm_comm_link(comm, peer);
  return link->table->takes_devices && link->table->takes_devices(link);
}

bool lcomm_device_may_stay(const lcomm_comm *comm, int peer) {
  return takes_devices(comm, peer) || (is_wanted() && reaches(comm, peer));
}

/* Has this slot's payload no reason to come to the host but to travel? */
static bool may_stay(const lcomm_run *run, uint32_t slot) {
  return run->plan->slot_sizes[slot].bound > run->slots[slot].room &&
         !lcomm_run_is_sparse(run, slot) && !lcomm_run_format(run, slot)->zstd &&
         !run->plan->checksum;
}

/* A slot is exported to all that it is sent to, or to none: it has one header. What
 * came from a peer is sent on from the host. */
static bool exports(const lcomm_run *run, const lcomm_step *step) {
  return may_stay(run, step->slot) &&
         !lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_RECEIVED) &&
         reaches(run->comm, step->peer);
}

/* A slot that is sent to peers over links that take memory of devices only, or comes over one and
 * goes nowhere else. */
static bool is_direct(const lcomm_run *run, const lcomm_step *step) {
  return may_stay(run, step->slot) &&
         !(run->slots[step->slot].traits & (LCOMM_SLOT_FORWARDED | LCOMM_SLOT_EXPORTS)) &&
         takes_devices(run->comm, step->peer);
}

/* Slots whose messages are all of a kind get a trait. */
static void mark_slots(lcomm_run *run, lcomm_slot_trait trait,
                       bool (*is_one)(const lcomm_run *run, const lcomm_step *step)) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (lcomm_step_is_message(step)) {
      run->slots[step->slot].traits |= trait;
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (lcomm_step_is_message(step) && !is_one(run, step)) {
      run->slots[step->slot].traits &= ~(unsigned)trait;
    }
  }
}

lcomm_status lcomm_device_zcopy_make(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  uint32_t slots = run->plan->schedule.slot_count, exported = 0;
  if (device->can_share && is_wanted()) {
    mark_slots(run, LCOMM_SLOT_EXPORTS, exports);
  }
  mark_slots(run, LCOMM_SLOT_DIRECT, is_direct);
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

void *lcomm_device_receive_place(const lcomm_run *run, uint32_t slot) {
  return run->device->slots[slot].payload;
}

void lcomm_device_received(lcomm_run *run, uint32_t slot) {
  run->device->slots[slot].mapped = run->device->slots[slot].payload;
  lcomm_payload_received_on_device(&run->slots[slot]);
}

bool lcomm_device_is_zcopy(const lcomm_run *run, const lcomm_step *step, uint8_t *header) {
  if (run->tape || !reaches(run->comm, step->peer) || !lcomm_device_in_use()) {
    return false;
  }
  lcomm_wire_clear_handle(header);
  return true;
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

/* The payload is at `there`, in memory of a peer's device that is open here: leave it there, or
 * bring it here. The number of a call that failed, or 0. */
static int take_payload(lcomm_run *run, uint32_t place, const uint8_t *there, void *stream) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_slot_memory *slot = &run->slots[place];
  if (stays_there(run, place)) {
    run->device->slots[place].mapped = there;
    lcomm_payload_on_peer_device(slot);
    return 0;
  }
  uint8_t *here = room_for(run, place);
  int error = here ? table->copy(here, there, slot->wire_size, stream) : -1;
  if (!error) {
    error = table->stream.finish(stream);
  }
  if (!error) {
    lcomm_payload_copied(slot);
  }
  return error;
}

/* It is opened on the device of the run, or on the one that the program uses. */
static int open_payload(lcomm_run *run, const lcomm_step *step, const lcomm_memory_handle *it) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_device_map *opened = NULL;
  int before = 0;
  (void)table->current(&before);
  bool on_device = lcomm_memory_is_on_device(run->plan->location);
  int ordinal = on_device ? run->plan->location.device : before;
  (void)table->use(ordinal);
  int error = lcomm_device_map_open(run->comm, step->peer, ordinal, &it->memory, &opened);
  if (!error) {
    const uint8_t *there = (uint8_t *)opened->base + it->memory.offset;
    error = take_payload(run, step->slot, there, opened->stream);
  }
  (void)table->use(before);
  return error;
}

lcomm_status lcomm_device_receive_handle(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_memory_handle it;
  LCOMM_TRY(lcomm_exec_copy_zcopy(run, step->slot, 0, sizeof(it), &it));
  if (!lcomm_memory_handle_fits(&it, run->slots[step->slot].wire_size)) {
    char who[96];
    return lcomm_fail(
        run->comm, LCOMM_ERR_WIRE,
        "%s #%u: %s exports memory of its device that is no payload. Install the same "
        "libcomm for all ranks; LCOMM_CUDA_IPC=off sends it through the host.",
        lcomm_collective_name(run->plan->collective), run->sequence,
        lcomm_comm_who(run->comm, step->peer, who, sizeof(who)));
  }
  bool barred = lcomm_device_is_barred();
  lcomm_device_unbar(false); /* whoever moves messages reads it */
  int error = open_payload(run, step, &it);
  lcomm_device_unbar(barred);
  return error ? cannot_read(run, step, error) : LCOMM_OK;
}
