/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdlib.h>

#include "libcomm/engine/flow_internal.h"

/* Bytes to and from each peer, by the largest a message can be. */
static void add_messages(const lcomm_plan *plan, uint64_t *to, uint64_t *from) {
  const lcomm_schedule *schedule = &plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV) {
      uint64_t *bytes = step->kind == LCOMM_STEP_SEND ? to : from;
      bytes[step->peer] += LCOMM_INLINE_SIZE + plan->slot_sizes[step->slot].bound;
    }
  }
}

static lcomm_status make_pair(lcomm_comm *comm, int peer) {
  if (!comm->flow.pairs) {
    comm->flow.pairs = calloc((size_t)comm->size, sizeof *comm->flow.pairs);
  }
  if (comm->flow.pairs && !comm->flow.pairs[peer]) {
    comm->flow.pairs[peer] = calloc(1, sizeof *comm->flow.pairs[peer]);
  }
  return comm->flow.pairs && comm->flow.pairs[peer] ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static lcomm_status make_parts(lcomm_run *run, const uint64_t *to, const uint64_t *from) {
  for (int peer = 0; peer < run->comm->size; peer++) {
    run->flow.part_count += (to[peer] > 0) != (from[peer] > 0);
  }
  if (run->flow.part_count == 0) {
    return LCOMM_OK;
  }
  run->flow.parts = calloc(run->flow.part_count, sizeof *run->flow.parts);
  if (!run->flow.parts) {
    return LCOMM_ERR_MEMORY;
  }
  struct lcomm_flow_part *part = run->flow.parts;
  for (int peer = 0; peer < run->comm->size; peer++) {
    if ((to[peer] > 0) != (from[peer] > 0)) {
      *part++ = (struct lcomm_flow_part){
          .peer = peer, .out = to[peer] > 0, .bytes = to[peer] + from[peer]};
      LCOMM_TRY(make_pair(run->comm, peer));
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_flow_plan(lcomm_run *run) {
  size_t size = (size_t)run->comm->size;
  uint64_t *bytes = calloc(2 * size, sizeof *bytes);
  if (!bytes) {
    return LCOMM_ERR_MEMORY;
  }
  add_messages(run->plan, bytes, bytes + size);
  lcomm_status status = make_parts(run, bytes, bytes + size);
  free(bytes);
  return status;
}
