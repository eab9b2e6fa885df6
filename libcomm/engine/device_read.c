/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads on a peer's device that no lane fetches, read by threads of the program. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/memory_handle.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/peer_memory.h"

/* A message whose memory handle is there. */
typedef struct awaited_read {
  lcomm_run *run;
  uint32_t index, sequence;
} awaited_read;

static bool find(const lcomm_comm *comm, awaited_read *found) {
  for (const lcomm_operation *it = comm->operations.first; it; it = it->next) {
    lcomm_run *run = it->run;
    for (uint32_t i = 0; i < run->messages.count; i++) {
      uint32_t index = run->messages.in_flight[i];
      if (run->messages.of_step[index].awaits_read &&
          run->slots[run->plan->schedule.steps[index].slot].state == LCOMM_PAYLOAD_HANDLE) {
        *found = (awaited_read){.run = run, .index = index, .sequence = run->sequence};
        return true;
      }
    }
  }
  return false;
}

/* Memory of this process for a payload that has to come here. */
static uint8_t *room_for(lcomm_run *run, lcomm_slot_memory *slot) {
  if (!slot->wire) { /* a plain run on the host meant to read it at its sender */
    uint8_t *memory = lcomm_links_memory_get(&run->comm->links, slot->wire_capacity);
    if (memory) {
      lcomm_payload_use_memory(slot, memory);
    }
  }
  return slot->wire;
}

static lcomm_status cannot_read(const awaited_read *it, const char *why) {
  char who[96];
  const lcomm_run *run = it->run;
  int peer = run->plan->schedule.steps[it->index].peer;
  return lcomm_fail(run->comm, LCOMM_ERR_TRANSPORT,
                    "%s #%u: memory on the device of %s cannot be read: %s. LCOMM_CUDA_IPC=off on "
                    "all ranks sends it through the host.",
                    lcomm_collective_name(run->plan->collective), run->sequence,
                    lcomm_comm_who(run->comm, peer, who, sizeof(who)), why);
}

/* The operation may have been given up meanwhile. */
static bool is_still_awaited(const lcomm_comm *comm, const awaited_read *it) {
  for (const lcomm_operation *op = comm->operations.first; op; op = op->next) {
    if (op->run == it->run && op->run->sequence == it->sequence) {
      return op->run->messages.of_step[it->index].awaits_read;
    }
  }
  return false;
}

static lcomm_status take_in(const awaited_read *it, const uint8_t *bytes) {
  lcomm_slot_memory *slot = &it->run->slots[it->run->plan->schedule.steps[it->index].slot];
  uint8_t *room = room_for(it->run, slot);
  if (!room) {
    return lcomm_fail(it->run->comm, LCOMM_ERR_MEMORY, "out of memory for a payload");
  }
  memcpy(room, bytes, slot->wire_size);
  lcomm_payload_copied(slot);
  lcomm_run_make_all_due(it->run); /* no transport names that message any more */
  return LCOMM_OK;
}

/* From then on the peer sends it through the host. */
static lcomm_status read_one(lcomm_comm *comm, const awaited_read *it) {
  const lcomm_step *step = &it->run->plan->schedule.steps[it->index];
  lcomm_memory_handle handle;
  int ordinal = LCOMM_DEVICE_NONE, peer = step->peer;
  size_t size = it->run->slots[step->slot].wire_size;
  LCOMM_TRY(lcomm_exec_copy_zcopy(it->run, step->slot, 0, sizeof(handle), &handle));
  const uint8_t *there = lcomm_peer_memory_at(comm, peer, &handle.memory, &ordinal);
  uint8_t *bytes = there && lcomm_memory_handle_fits(&handle, size) ? malloc(size) : NULL;
  if (!bytes) {
    return cannot_read(it, "out of memory");
  }
  unsigned depth = lcomm_turn_give(comm);
  int error = lcomm_device_copy_apart(ordinal, bytes, there, size);
  lcomm_turn_take(comm, depth);
  lcomm_status status = LCOMM_OK;
  if (is_still_awaited(comm, it)) {
    status = error ? cannot_read(it, lcomm_device_get(NULL)->explain(error)) : take_in(it, bytes);
  }
  free(bytes);
  lcomm_peer_memory_refuse(comm, peer, &handle.memory);
  return status;
}

lcomm_status lcomm_device_read_awaited(lcomm_comm *comm) {
  lcomm_status status = LCOMM_OK;
  awaited_read it;
  if (lcomm_device_is_barred() || pthread_mutex_trylock(&comm->runs.device_turn) != 0) {
    return LCOMM_OK; /* soon again, or by a thread of the program */
  }
  while (status == LCOMM_OK && find(comm, &it)) {
    status = read_one(comm, &it);
  }
  comm->runs.reads_awaited = 0;
  pthread_mutex_unlock(&comm->runs.device_turn);
  return status;
}
