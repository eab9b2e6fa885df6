/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_CONTEXT_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_CONTEXT_H

/* Creation of the backing communicator, in the first call that libcomm makes on an MPI
 * communicator: all ranks are in that call or will be, so nothing else of the program is waited
 * for.
 *
 * Rank 0 draws a number and broadcasts it in the place of the call. All other messages are those of
 * a rendezvous with that number (interpose_rendezvous.h). So any number of communicators of the
 * same ranks may be created at a time, in any order and from any thread.
 */

#include "libcomm/interpose/mpi/interpose.h"

/* Forget the backing communicator, which belongs to the caller then. */
void lcomm_interpose_context_reset(lcomm_interpose_context *context);

/* Free what a context owns besides the backing communicator. */
void lcomm_interpose_context_clear(lcomm_interpose_context *context);

/* In a blocking call of all ranks: create the backing unless there is one. On failure
 * context.sentence says why. Either context.plain_mpi is set on all ranks, or a rank is overdue:
 * then this call fails and all further ones. */
lcomm_status lcomm_interpose_backing_create(lcomm_interpose_comm *at);

/* In a non-blocking call of all ranks: begin to create the backing unless that was begun. Never
 * waits. False: no memory. */
bool lcomm_interpose_backing_begin(lcomm_interpose_comm *at);

/* The queue's thread polls this with at->lock. True: creation has ended with *status. Never
 * waits. */
bool lcomm_interpose_backing_ready(lcomm_interpose_comm *at, lcomm_status *status);

/* The queue's thread has seen a call fail: keep the first such sentence, because another thread
 * delivers the failure. Needs at->lock. */
void lcomm_interpose_context_keep_error(lcomm_interpose_context *context, const char *sentence);

/* The program frees its communicator: wait for the broadcast on it, which all ranks that have made
 * the call have completed. */
void lcomm_interpose_backing_detach(lcomm_interpose_comm *at);

#endif
