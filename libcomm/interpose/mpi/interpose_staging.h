/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_STAGING_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_STAGING_H

/* Non-blocking calls over buffers of a device. Only the program's threads may call CUDA, inside
 * calls of theirs. So the call itself begins the operation on the device, from where messages and
 * streams end it, wherever it can: all calls of the communicator before have begun.
 *
 * Otherwise, while the backing communicator is not made say, the call is staged: it copies what it
 * sends to the host, the queue's thread makes a call over memory of the host, and the program's
 * thread that learns of its end, in MPI_Wait or MPI_Test, copies the result to the device. Other
 * ranks wait for none of these copies. A call with error feedback is not staged, because its
 * residual lies where its buffers do: a thread of the program begins it later (interpose_left.h).
 */

#include "libcomm/interpose/mpi/interpose.h"

typedef struct lcomm_interpose_staging lcomm_interpose_staging;

/* Is a buffer of the call on a device? Cheap where the process uses none. */
bool lcomm_interpose_is_on_device(const lcomm_interpose_call *call);

/* Begin the call in this thread: sets begun, comm, residual and request, and status to that of the
 * begin. False: calls before it have not begun, or one is in flight with its residual, and nothing
 * was done. Takes at->lock. */
bool lcomm_interpose_begin_here(lcomm_interpose_call *call);

/* That was false: stage the sum, whose buffers are memory of the host then, or leave its begin to a
 * thread of the program. This is one. On failure it sets the call's status, with which the call
 * fails on all ranks when it begins, and at->context has the sentence. */
void lcomm_interpose_begin_later(lcomm_interpose_call *call);

/* The call has succeeded: copy its result to the device, the first time. A thread of the program,
 * while `at` exists. SYSTEM: at->context has the sentence. */
lcomm_status lcomm_interpose_stage_out(lcomm_interpose_staging *staging);

/* Nobody asks for the result any more. Any thread. If the call has succeeded, the next
 * lcomm_interpose_staging_settle() copies it. */
void lcomm_interpose_staging_release(lcomm_interpose_staging *staging, lcomm_status status);

/* Copy results that nobody has asked for. A thread of the program. Cheap where there are none. */
void lcomm_interpose_staging_settle(void);

#endif
