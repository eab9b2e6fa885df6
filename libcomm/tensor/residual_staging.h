/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_RESIDUAL_STAGING_H
#define LCOMM_TENSOR_RESIDUAL_STAGING_H

/* Calls with a residual whose sum is made on the host (residual_quorum.h), and whose buffers are on
 * a device: the data comes through pinned memory. It is brought there before the call begins, and
 * the result back when it has ended, inside calls of the program, which wait for that: nobody else
 * calls CUDA. So routes are the same on all ranks, wherever their buffers are. */

#include "libcomm/tensor/residual.h"

/* Part of lcomm_residual_keeper: the buffers, which are on a device and were checked, become those
 * of the host, if the sum is made there; what is sent is in them. STATE while another call is in
 * flight; MEMORY and SYSTEM, sticky. */
lcomm_status lcomm_residual_to_host(void *owner, lcomm_call *call);

/* A call is about to take its run: its buffers may be others than those that were brought. */
void lcomm_residual_staging_begin(lcomm_residual *residual, const lcomm_call *call);

/* The call has ended well: bring its result to where it was asked for. SYSTEM, sticky. */
lcomm_status lcomm_residual_from_host(lcomm_residual *residual);

/* No call is in flight. */
void lcomm_residual_staging_free(lcomm_residual *residual);

#endif
