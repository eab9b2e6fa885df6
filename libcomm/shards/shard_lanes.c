/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The vectors of a bucket, which take turns: one for each lane of staleness.h. */

#include <stdlib.h>

#include "libcomm/engine/entry.h"
#include "libcomm/shards/shards_internal.h"

/* The service sees vectors from when they are made; it closes rounds of those that have lanes. */
static lcomm_status link(lcomm_shards *shards, lcomm_shard_vector **lanes, lcomm_quorum **quorums) {
  unsigned count = lcomm_stale_lanes(&shards->stale.rule);
  LCOMM_TRY(lcomm_enter(shards->service));
  for (unsigned i = 0; i < count; i++) {
    quorums[i] = &lanes[i]->owned.quorum;
    lanes[i]->lane = i;
    lanes[i]->lanes = quorums;
  }
  lcomm_exit(shards->service);
  return LCOMM_OK;
}

lcomm_status lcomm_shard_lanes_make(lcomm_comm *comm, const lcomm_shard_request *request,
                                    lcomm_shard_vector ***lanes) {
  lcomm_shards *shards = comm->deferred.shards;
  unsigned count = lcomm_stale_lanes(&shards->stale.rule);
  lcomm_shard_vector **made = calloc(count, sizeof *made);
  lcomm_quorum **quorums = calloc(count, sizeof *quorums);
  lcomm_status status = made && quorums ? LCOMM_OK : LCOMM_ERR_MEMORY;
  for (unsigned i = 0; i < count && status == LCOMM_OK; i++) {
    status = lcomm_shard_vector_make(comm, request, &made[i]);
  }
  if (status == LCOMM_OK) {
    status = link(shards, made, quorums);
  }
  if (status == LCOMM_OK) {
    *lanes = made;
    return LCOMM_OK;
  }
  for (unsigned i = 0; made && i < count; i++) {
    lcomm_shard_vector_free(made[i]);
  }
  free(made);
  free(quorums);
  return status;
}

/* No lane is looked at any more when the first one is gone. */
void lcomm_shard_lanes_free(lcomm_comm *comm, lcomm_shard_vector **lanes) {
  if (!lanes) {
    return;
  }
  lcomm_shards *shards = comm->deferred.shards;
  lcomm_quorum **quorums = lanes[0]->lanes;
  unsigned count = lcomm_stale_lanes(&shards->stale.rule);
  bool entered = lcomm_enter(shards->service) == LCOMM_OK;
  for (unsigned i = 0; i < count; i++) {
    lanes[i]->lanes = NULL;
  }
  if (entered) {
    lcomm_exit(shards->service);
  }
  for (unsigned i = 0; i < count; i++) {
    lcomm_shard_vector_free(lanes[i]);
  }
  free(quorums);
  free(lanes);
}
