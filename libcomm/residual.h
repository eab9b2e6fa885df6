/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_RESIDUAL_H
#define LCOMM_RESIDUAL_H

/* Residuals: what gives a call that has no name error feedback. A call with one is a
 * plain call in all but this: it has the residual's own run, which keeps the state
 * (feedback.h) from call to call. The residual owns both, as a bucket does.
 *
 * momentum= and clip= of a policy are about tensors, whose optimiser and whose norm they
 * replace, and do not act here; nor does match=, because whoever made the residual has
 * chosen the call. warmup= and ramp= count the calls of each residual; those that flush
 * it are not among them.
 */

#include "libcomm/collective.h"

/* The run for this call; STATE while another one is under way, ARGUMENT for data that
 * is not on the host, and as lcomm_run_find. */
lcomm_status lcomm_residual_run(lcomm_residual *residual, const lcomm_call *call, lcomm_run **run);

/* The number by which ranks know it. */
uint64_t lcomm_residual_number(const lcomm_residual *residual);

/* An operation of it has been started, and nothing was sent yet; its request is over. */
void lcomm_residual_begin(lcomm_residual *residual, lcomm_operation *operation);
void lcomm_residual_end(lcomm_residual *residual);

/* Called by lcomm_destroy. */
void lcomm_residuals_free(lcomm_comm *comm);

#endif
