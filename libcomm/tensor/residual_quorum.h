/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_RESIDUAL_QUORUM_H
#define LCOMM_TENSOR_RESIDUAL_QUORUM_H

/* All-reduces with a residual that do not wait for the slowest rank (quorum= of the policy): each
 * residual has a vector of shards (shards/shards.h), as a bucket of tensors has, and a residual of
 * all elements, in which a contribution that came too late stays.
 *
 * The first call with a residual makes the vector, and is an exact sum of all ranks by an
 * operation: when that is over on one rank, all ranks have the vector. So a call that does not
 * block need not wait for that, and ranks that differ in their residuals find out as in any call.
 * The first call after another policy is such a one, too. Flushes are operations, as they sum what
 * all ranks keep. */

#include "libcomm/tensor/residual.h"

/* Are its calls summed so? Known from when it is made. */
static inline bool lcomm_residual_has_quorum(const lcomm_residual *residual) {
  return residual->ef.keeps_all;
}

/* A call that flushes nothing is about to take its run: the first one makes the vector. MEMORY, and
 * what a plan can fail with. */
lcomm_status lcomm_residual_quorum_prepare(lcomm_residual *residual);

/* An operation of it has ended well that flushed nothing. */
void lcomm_residual_quorum_open(lcomm_residual *residual);

/* Parts of lcomm_residual_keeper. */
bool lcomm_residual_quorum_is_apart(const void *owner, const lcomm_call *call);
lcomm_status lcomm_residual_quorum_start(void *owner, const lcomm_call *call, lcomm_run *run,
                                         lcomm_call_sum **sum);

/* Is a sum under way whose result is not here? Of any residual. */
bool lcomm_residual_quorums_are_busy(const lcomm_comm *comm);

/* The residual goes; others may be behind, so its vector is freed when all have its results. */
void lcomm_residual_quorum_retire(lcomm_residual *residual);

/* No rank sums by it any more, or the communicator has failed. Of one that lives, which will begin
 * anew; of those that are gone. */
void lcomm_residual_quorum_free(lcomm_residual *residual);
void lcomm_residual_quorums_free_retired(lcomm_comm *comm);

#endif
