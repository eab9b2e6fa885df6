/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_EXEC_INTERNAL_H
#define LCOMM_EXEC_INTERNAL_H

/* What the computations of the executor share. */

#include "libcomm/exec.h"

static inline bool lcomm_run_is_sparse(const lcomm_run *run, uint32_t slot) {
  return lcomm_format_is_sparse(lcomm_run_format(run, slot));
}

static inline lcomm_stage lcomm_run_stage(const lcomm_run *run, uint32_t slot) {
  return run->plan->schedule.slots[slot].stage;
}

/* The residual of a step's span; NULL when the operation keeps none or the
 * step has no part in error feedback. */
static inline float *lcomm_run_residual(const lcomm_run *run, const lcomm_step *step) {
  if (!run->feedback || step->feedback == LCOMM_FEEDBACK_NONE) {
    return NULL;
  }
  return run->feedback->residual + (step->span.first - run->feedback->first);
}

/* A number of its own for every payload of the communicator, for stochastic
 * rounding. */
static inline uint64_t lcomm_run_seed(const lcomm_run *run, uint32_t slot) {
  return (uint64_t)run->comm->rank << 48 ^ (uint64_t)run->sequence << 16 ^ slot;
}

/* The REDUCE step. */
void lcomm_exec_reduce(lcomm_run *run, const lcomm_step *step);

#endif
