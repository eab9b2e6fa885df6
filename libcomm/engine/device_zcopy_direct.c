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
  bool *direct = run->device->direct;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    const lcomm_slot_memory *slot = &run->slots[step->slot];
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV) {
      direct[step->slot] = lcomm_device_may_stay(run, step->slot) && !slot->forwarded &&
                           !run->device->lends[step->slot];
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV) {
      direct[step->slot] &= takes_devices(run->comm, step->peer);
    }
  }
}

void *lcomm_device_landing(const lcomm_run *run, uint32_t slot) {
  bool direct = run->device && run->device->direct[slot];
  return direct ? run->device->payload[slot] : run->slots[slot].wire;
}

void lcomm_device_landed(lcomm_run *run, uint32_t slot) {
  if (run->device && run->device->direct[slot]) {
    run->device->view[slot] = run->device->payload[slot];
    run->device->arrived[slot] = true;
  }
}
