/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who is late with quorum= or stale= of the policy, is it this rank, and how old are gradients? */

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

lcomm_status lcomm_staleness_get(const lcomm_comm *comm, lcomm_staleness *staleness) {
  if (!comm || !staleness) {
    return lcomm_refuse_null(comm, "lcomm_staleness_get", "staleness");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  const lcomm_shard_staleness *it = lcomm_shards_stale_of(comm);
  *staleness = (lcomm_staleness){0};
  if (it && it->rank.contributed > 0) {
    uint64_t steps = it->rank.contributed;
    *staleness = (lcomm_staleness){.steps = steps,
                                   .under_way = steps - it->rank.taken,
                                   .age = it->age,
                                   .age_most = it->age_most,
                                   .age_mean = (double)it->age_sum / (double)steps};
  }
  return LCOMM_OK;
}

lcomm_status lcomm_behind(const lcomm_comm *comm, uint64_t *steps) {
  if (!comm || !steps) {
    return lcomm_refuse_null(comm, "lcomm_behind", "steps");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  const lcomm_shard_staleness *stale = lcomm_shards_stale_of(comm);
  if (stale) {
    bool is_behind = stale->closed > stale->rank.contributed;
    *steps = is_behind ? stale->closed - stale->rank.contributed : 0;
    return LCOMM_OK;
  }
  *steps = comm->deferred.shards ? lcomm_shards_behind(comm->deferred.shards) : 0;
  return LCOMM_OK;
}
