/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads that a transport takes from the memory of a device, and puts there: no
 * copy through the host. */

#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

static bool takes_devices(const lcomm_comm *comm, int peer) {
  const lcomm_transport *link = lcomm_comm_link(comm, peer);
  return link->table->takes_devices && link->table->takes_devices(link);
}

/* A slot that is sent to peers over such links only, or comes over one and goes
 * nowhere else. */
void lcomm_device_find_direct(lcomm_run *run) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    lcomm_slot_memory *slot = &run->slots[step->slot];
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV) {
      bool direct = lcomm_device_may_stay(run, step->slot) &&
                    !(slot->traits & (LCOMM_SLOT_FORWARDED | LCOMM_SLOT_EXPORTS));
      slot->traits |= direct ? LCOMM_SLOT_DIRECT : 0;
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    bool is_message = step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV;
    if (is_message && !takes_devices(run->comm, step->peer)) {
      run->slots[step->slot].traits &= ~(unsigned)LCOMM_SLOT_DIRECT;
    }
  }
}

void *lcomm_device_receive_place(const lcomm_run *run, uint32_t slot) {
  return run->device->slots[slot].payload;
}

void lcomm_device_received(lcomm_run *run, uint32_t slot) {
  run->device->slots[slot].mapped = run->device->slots[slot].payload;
  lcomm_payload_received_on_device(&run->slots[slot]);
}
