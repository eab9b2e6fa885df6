/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/device_zcopy.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/wire.h"
#include "libcomm/base/env.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/gates.h"
#include "libcomm/engine/memory_handle.h"
#include "libcomm/engine/peer_memory.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/run_device.h"

/* --------------------------------------------------------------- what may stay */

static bool is_wanted(void) {
  const char *mode = lcomm_env_get(LCOMM_ENV_CUDA_IPC);
  return !mode || strcmp(mode, "off") != 0;
}

/* A process cannot open a handle of its own memory. */
static bool is_another_process(const lcomm_comm *comm, int peer) {
  const lcomm_process *mine = &comm->identity.processes[comm->rank];
  const lcomm_process *its = &comm->identity.processes[peer];
  return mine->pid != its->pid || mine->host_hash != its->host_hash;
}

/* Can the device of this peer read ours, and ours its? */
static bool reaches(const lcomm_comm *comm, int peer) {
  lcomm_link link = lcomm_topo_link(&comm->topo, comm->rank, peer);
  bool device =
      link == LCOMM_LINK_SAME_DEVICE || link == LCOMM_LINK_NVLINK || link == LCOMM_LINK_PCIE;
  return device && is_another_process(comm, peer) &&
         comm->topo.node[comm->rank] == comm->topo.node[peer] &&
         lcomm_comm_link(comm, peer)->table->zero_copy;
}

bool lcomm_device_may_stay(const lcomm_comm *comm, int peer) {
  return is_wanted() && reaches(comm, peer);
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
         lcomm_device_may_stay(run->comm, step->peer);
}

/* Results that go on between nodes are on the host of whoever sends them. */
static bool comes_from_host(const lcomm_run *run, uint32_t slot) {
  return run->plan->schedule.slots[slot].stage == LCOMM_STAGE_RESULT &&
         lcomm_allreduce_forwards(&run->comm->topo, &run->plan->shape);
}

static bool is_fetched(const lcomm_run *run, const lcomm_step *step) {
  return step->kind == LCOMM_STEP_RECV && may_stay(run, step->slot) &&
         lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_PROMPT) &&
         !lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_FORWARDED) &&
         !comes_from_host(run, step->slot) && lcomm_device_may_stay(run->comm, step->peer);
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

void lcomm_device_zcopy_find_exported(lcomm_run *run) {
  if (run->device->can_share) {
    mark_slots(run, LCOMM_SLOT_EXPORTS, exports);
  }
}

lcomm_status lcomm_device_zcopy_make(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  uint32_t slots = run->plan->schedule.slot_count, exported = 0;
  lcomm_device_zcopy_find_exported(run);
  for (uint32_t i = 0; i < slots; i++) {
    exported += lcomm_slot_is(&run->slots[i], LCOMM_SLOT_EXPORTS);
  }
  if (exported > 0) {
    device->handle_memory =
        lcomm_links_memory_get(&run->comm->links, (size_t)exported * LCOMM_MEMORY_HANDLE_SIZE);
  }
  return exported == 0 || device->handle_memory ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

void lcomm_device_zcopy_free(lcomm_run *run) {
  lcomm_links_memory_free(&run->comm->links, run->device->handle_memory);
  run->device->handle_memory = NULL;
}

void lcomm_device_zcopy_describe(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  uint8_t *place = device->handle_memory;
  for (uint32_t i = 0; place && i < run->plan->schedule.slot_count; i++) {
    if (!lcomm_slot_is(&run->slots[i], LCOMM_SLOT_EXPORTS)) {
      continue;
    }
    lcomm_memory_handle it = {.memory = device->share.memory, .size = run->slots[i].capacity};
    it.memory.offset += (uint64_t)(device->slots[i].payload - device->memory);
    memcpy(place, &it, sizeof(it));
    device->slots[i].handle = place;
    place += LCOMM_MEMORY_HANDLE_SIZE;
  }
}

/* Whoever reads a slot must not be late: the sender may wait in the same way for a message of its
 * own to be over, which its peer reads. */
void lcomm_device_zcopy_find_fetched(lcomm_run *run, const bool *late) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  mark_slots(run, LCOMM_SLOT_FETCHED, is_fetched);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const uint32_t *slots = NULL;
    uint32_t count = late[i] ? lcomm_exec_reads(schedule, &schedule->steps[i], &slots) : 0;
    for (uint32_t k = 0; k < count; k++) {
      if (slots[k] != LCOMM_SOURCE_SELF) {
        run->slots[slots[k]].traits &= ~(unsigned)LCOMM_SLOT_FETCHED;
      }
    }
  }
}

/* --------------------------------------------------------------- the sender */

const void *lcomm_device_sent_bytes(const lcomm_run *run, uint32_t slot, size_t *size) {
  *size = LCOMM_MEMORY_HANDLE_SIZE;
  return run->device->slots[slot].handle;
}

/* ------------------------------------------------------------- the receiver */

bool lcomm_device_is_zcopy(const lcomm_run *run, const lcomm_step *step, uint8_t *header) {
  if (!lcomm_device_may_stay(run->comm, step->peer) || !lcomm_device_in_use()) {
    return false;
  }
  lcomm_wire_clear_handle(header);
  return true;
}

static lcomm_status is_no_payload(lcomm_run *run, const lcomm_step *step) {
  char who[96];
  return lcomm_fail(
      run->comm, LCOMM_ERR_WIRE,
      "%s #%u: %s has a payload on its device that is none, or that this rank has not opened. "
      "Install the same libcomm for all ranks; LCOMM_CUDA_IPC=off sends it through the host.",
      lcomm_collective_name(run->plan->collective), run->sequence,
      lcomm_comm_who(run->comm, step->peer, who, sizeof(who)));
}

/* In this process, and on which device. */
static const uint8_t *find_memory(const lcomm_run *run, int peer, const lcomm_device_ipc *memory,
                                  int *ordinal) {
  if (!run->recording) {
    return lcomm_peer_memory_at(run->comm, peer, memory, ordinal);
  }
  *ordinal = run->device->ordinal;
  const lcomm_gates *gates = run->recording->gates;
  return gates ? lcomm_gates_at(gates, run->comm, peer, memory) : NULL;
}

lcomm_status lcomm_device_receive_handle(lcomm_run *run, uint32_t index, bool *over) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_slot_memory *slot = &run->slots[step->slot];
  lcomm_memory_handle it;
  LCOMM_TRY(lcomm_exec_copy_zcopy(run, step->slot, 0, sizeof(it), &it));
  int ordinal = LCOMM_DEVICE_NONE;
  const uint8_t *there = lcomm_memory_handle_fits(&it, slot->wire_size)
                             ? find_memory(run, step->peer, &it.memory, &ordinal)
                             : NULL;
  if (!there) {
    return is_no_payload(run, step);
  }
  *over = run->tape && ordinal == run->device->ordinal && lcomm_slot_is(slot, LCOMM_SLOT_FETCHED);
  if (*over) {
    run->device->slots[step->slot].there = there;
    lcomm_payload_on_peer_device(slot);
    run->comm->runs.stayed++;
  }
  run->comm->runs.reads_awaited += !*over;
  return LCOMM_OK;
}
