/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which backend a plan takes. */

#include "libcomm/engine/backend.h"

const lcomm_backend *lcomm_backend_of(lcomm_comm *comm, const lcomm_plan *plan) {
  if (!lcomm_memory_is_on_device(plan->location)) {
    return &lcomm_backend_cpu;
  }
  return comm->progress.allows_thread ? &lcomm_backend_taped : &lcomm_backend_cuda;
}
