/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/feedback/ef_state.h"

#include <stdlib.h>

#include "libcomm/feedback/ef_memory.h"

lcomm_status lcomm_feedback_create(lcomm_comm *comm, const lcomm_plan *plan, double momentum,
                                   lcomm_feedback_state **feedback) {
  lcomm_span kept = {0};
  *feedback = NULL;
  if (!lcomm_plan_feedback(plan, &kept.first, &kept.count) || kept.count == 0) {
    return LCOMM_OK;
  }
  return lcomm_feedback_make(comm, plan->location, kept, momentum, feedback);
}

lcomm_status lcomm_feedback_make(lcomm_comm *comm, lcomm_memory_location location, lcomm_span kept,
                                 double momentum, lcomm_feedback_state **feedback) {
  lcomm_feedback_state *made = calloc(1, sizeof *made);
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->first = kept.first;
  made->count = kept.count;
  made->momentum_factor = (float)momentum;
  made->location = location;
  made->residual.now = lcomm_ef_memory_get(comm, location, kept.count);
  made->momentum.now = momentum > 0 ? lcomm_ef_memory_get(comm, location, kept.count) : NULL;
  if (!made->residual.now || (momentum > 0 && !made->momentum.now)) {
    lcomm_feedback_free(comm, made);
    return LCOMM_ERR_MEMORY;
  }
  *feedback = made;
  return LCOMM_OK;
}

void lcomm_feedback_free(lcomm_comm *comm, lcomm_feedback_state *feedback) {
  if (!feedback) {
    return;
  }
  lcomm_ef_array_free(comm, feedback->location, &feedback->residual);
  lcomm_ef_array_free(comm, feedback->location, &feedback->momentum);
  free(feedback);
}

bool lcomm_feedback_fits(const lcomm_feedback_state *feedback, const lcomm_plan *plan) {
  uint64_t first = 0, count = 0;
  lcomm_plan_feedback(plan, &first, &count);
  return feedback ? feedback->first == first && feedback->count == count : count == 0;
}

void lcomm_ef_state_free(lcomm_comm *comm, lcomm_memory_location location, lcomm_ef_state *state) {
  lcomm_feedback_free(comm, state->feedback);
  lcomm_ef_array_free(comm, location, &state->velocity);
  lcomm_ef_array_free(comm, location, &state->basis);
  lcomm_ef_memory_free(comm, location, state->carried);
  *state = (lcomm_ef_state){0};
}

void lcomm_ef_parked_free(lcomm_comm *comm, lcomm_memory_location location,
                          lcomm_ef_parked *state) {
  lcomm_ef_memory_free(comm, location, state->residual);
  lcomm_ef_memory_free(comm, location, state->momentum);
  lcomm_ef_memory_free(comm, location, state->velocity);
  lcomm_ef_memory_free(comm, location, state->carried);
  lcomm_ef_memory_free(comm, location, state->basis);
  *state = (lcomm_ef_parked){0};
}

lcomm_ef_shard lcomm_ef_shard_of(const lcomm_feedback_state *feedback, uint64_t offset,
                                 uint64_t count) {
  lcomm_ef_shard shard = {0, 0, 0};
  if (!feedback) {
    return shard;
  }
  uint64_t begin = feedback->first, end = feedback->first + feedback->count;
  uint64_t first = offset > begin ? offset : begin;
  uint64_t last = offset + count < end ? offset + count : end;
  if (first < last) {
    shard = (lcomm_ef_shard){first - offset, last - first, first - begin};
  }
  return shard;
}
