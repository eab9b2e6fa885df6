/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which backend a plan takes. */

#include "libcomm/device/device.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/device_zcopy.h"

static bool has_sparse(const lcomm_plan *plan) {
  bool any = false;
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    any |= lcomm_format_is_sparse(&plan->stages[i].format);
  }
  return any;
}

static bool has_numbers(lcomm_comm *comm, int ordinal) {
  lcomm_device_facts facts = {0};
  unsigned depth = lcomm_turn_give(comm);
  bool known = lcomm_device_get(NULL)->facts(ordinal, &facts) == 0;
  lcomm_turn_take(comm, depth);
  return known && facts.waits_for_values;
}

/* Not where a payload may stay on devices between ranks: peers' memory is opened when its handle
 * comes. */
static bool plays_tapes(lcomm_comm *comm, const lcomm_plan *plan) {
  if (!comm->allows_progress_thread || has_sparse(plan)) {
    return false;
  }
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    if (lcomm_step_is_message(step) && lcomm_device_may_stay(comm, step->peer)) {
      return false;
    }
  }
  return has_numbers(comm, plan->location.device);
}

const lcomm_backend *lcomm_backend_of(lcomm_comm *comm, const lcomm_plan *plan) {
  if (!lcomm_memory_is_on_device(plan->location)) {
    return &lcomm_backend_cpu;
  }
  return plays_tapes(comm, plan) ? &lcomm_backend_taped : &lcomm_backend_cuda;
}
