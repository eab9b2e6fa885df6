/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Residuals under another policy (policy_change.c): what stays, and what is paid. */

#include <stdlib.h>

#include "libcomm/feedback/ef_memory.h"
#include "libcomm/tensor/residual.h"

bool lcomm_residuals_idle(const lcomm_comm *comm) {
  const lcomm_residual *it = comm->residuals->first;
  while (it && !it->in_flight) {
    it = it->next;
  }
  return !it;
}

/* Can what is kept here stay under the new policy? */
static bool fits_policy(lcomm_residual *residual, const lcomm_plan *plan) {
  lcomm_feedback_state *feedback = residual->feedback;
  double momentum = lcomm_residual_momentum(residual);
  if (!feedback) {
    return true;
  }
  if (!lcomm_feedback_fits(feedback, plan) || (feedback->momentum != NULL) != (momentum > 0)) {
    return false;
  }
  feedback->momentum_factor = (float)momentum;
  return true;
}

static lcomm_status look(lcomm_residual *residual, int32_t *leaves) {
  lcomm_run *run = NULL;
  lcomm_run_destroy(residual->run);
  lcomm_run_destroy(residual->exact_run);
  residual->run = residual->exact_run = NULL;
  if (!(lcomm_residual_momentum(residual) > 0)) {
    lcomm_ef_memory_free(0, residual->velocity);
    residual->velocity = NULL;
  }
  lcomm_status status = lcomm_residual_make_run(residual, false, 0, &run);
  *leaves = status == LCOMM_OK && !fits_policy(residual, run->plan);
  lcomm_run_destroy(run);
  return status;
}

/* Ranks know residuals by their numbers, which lie close together. */
lcomm_status lcomm_residuals_follow_policy(lcomm_comm *comm) {
  uint64_t most = comm->residuals->made;
  int32_t *leaves = calloc(most + 1, sizeof *leaves);
  lcomm_status status = leaves
                            ? LCOMM_OK
                            : lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for %llu residuals",
                                         (unsigned long long)most);
  for (lcomm_residual *it = comm->residuals->first; status == LCOMM_OK && it; it = it->next) {
    status = look(it, &leaves[it->number]);
  }
  if (status == LCOMM_OK && most > 0) {
    lcomm_call call =
        lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, leaves, leaves, most + 1, LCOMM_INT32, LCOMM_MAX);
    status = lcomm_call_make(comm, &call);
  }
  for (lcomm_residual *it = comm->residuals->first; status == LCOMM_OK && it; it = it->next) {
    it->pays |= leaves[it->number] != 0;
  }
  free(leaves);
  return status;
}
