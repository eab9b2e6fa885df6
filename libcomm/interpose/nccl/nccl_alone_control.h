/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_ALONE_CONTROL_H
#define LCOMM_INTERPOSE_NCCL_ALONE_CONTROL_H

/* Alone: the control file. Another policy is another communicator of libcomm, which makes the sums
 * from then on. The first one, of LCOMM_POLICY, lives as long as NCCL's: it has the messages
 * between two ranks, whose n-th send is for the n-th receive whatever lies between, the data that
 * is moved, the parts, and the words of the file. Another one that is replaced goes when it carries
 * no residual, nothing of it is in flight, and no graph has calls of it. */

#include "libcomm/interpose/nccl/nccl_comm.h"
#include "libcomm/interpose/nccl/nccl_control.h"

typedef struct lcomm_nccl_controlled lcomm_nccl_controlled;

/* shares_process: some of a communicator's ranks are in one process, so no sum may wait for another
 * rank: none has error feedback. */
typedef enum lcomm_nccl_sharing {
  LCOMM_NCCL_OWN_PROCESSES,
  LCOMM_NCCL_SHARED_PROCESS
} lcomm_nccl_sharing;

/* comm->comm and comm->now are there. NULL: no memory. */
lcomm_nccl_controlled *lcomm_nccl_controlled_create(ncclComm_t comm, lcomm_nccl_sharing sharing);

/* comm->now is of the first one again, for the end. NULL ok. */
void lcomm_nccl_controlled_first(lcomm_nccl_controlled *mine);

/* comm->comm has ended so. The others end, in the order of all ranks, with their error feedback,
 * and all is freed. The first failure. NULL ok. */
lcomm_status lcomm_nccl_controlled_end(lcomm_nccl_controlled *mine, lcomm_status first);

/* lcomm_abort() of all communicators. Any thread, without the lock. NULL ok. */
void lcomm_nccl_controlled_abort(lcomm_nccl_controlled *mine, const char *reason);

/* lcomm_progress() of all that make sums, or did; the first failure, and whose. With the lock. NULL
 * ok. */
lcomm_status lcomm_nccl_controlled_progress(lcomm_nccl_controlled *mine, const lcomm_comm **whose);

/* A sum begins, with the lock: outside of groups the file is read for it, where it is due. Waits
 * for the other ranks then. */
void lcomm_nccl_control_sum(const lcomm_nccl_call *call);

/* The calls of a group were made: those of its communicators for which the file is due ask for it
 * at once. */
void lcomm_nccl_control_group(const lcomm_nccl_call *calls, size_t count);

/* With the lock: is this sum to flush a residual of a policy that was replaced or switched off? */
bool lcomm_nccl_control_flushes(const lcomm_nccl_call *call, lcomm_nccl_site *site);

/* Is it switched off? NULL: no. With the lock. */
bool lcomm_nccl_control_is_off(const lcomm_nccl_controlled *mine);

#endif
