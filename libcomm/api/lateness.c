/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who is late with quorum= of the policy, and is it this rank? */

#include "libcomm/engine/entry.h"
#include "libcomm/shards/shards.h"

lcomm_status lcomm_lateness_get(const lcomm_comm *comm, int rank, lcomm_lateness *lateness) {
  if (!comm || !lateness) {
    return lcomm_refuse_null(comm, "lcomm_lateness_get", "lateness");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  if (rank < 0 || rank >= comm->size) {
    lcomm_comm *refusing = (lcomm_comm *)(uintptr_t)comm; /* only its sentence changes */
    return lcomm_refuse(refusing, LCOMM_ERR_ARGUMENT,
                        "lcomm_lateness_get: there is no rank %d among %d", rank, comm->size);
  }
  *lateness = (lcomm_lateness){0};
  if (comm->deferred.shards) {
    lcomm_shards_lateness(comm->deferred.shards, rank, lateness);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_behind(const lcomm_comm *comm, uint64_t *steps) {
  if (!comm || !steps) {
    return lcomm_refuse_null(comm, "lcomm_behind", "steps");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  *steps = comm->deferred.shards ? lcomm_shards_behind(comm->deferred.shards) : 0;
  return LCOMM_OK;
}
