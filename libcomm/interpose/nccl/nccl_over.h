/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_OVER_H
#define LCOMM_INTERPOSE_NCCL_OVER_H

/* Over another NCCL, with a policy: the functions that are not NCCL's alone. */

#include "libcomm/interpose/nccl/nccl_backing.h"

/* ----------------------------------------------------- nccl_over_policy.c */

/* Where LCOMM_POLICY and LCOMM_INTERPOSE ask for it, put libcomm's functions in the place of those
 * below. False: the program may not run so, and `reason` says why. */
bool lcomm_nccl_over_policy(lcomm_nccl_choice *choice);

lcomm_interpose_mode lcomm_nccl_over_mode(void);

/* Shorter sums are NCCL's on every communicator: the least min= of all backings. */
uint64_t lcomm_nccl_over_min(void);

/* The process has made a backing. */
void lcomm_nccl_over_backing(const lcomm_comm *comm);

/* What each file puts into the table. */
void lcomm_nccl_over_take_comms(lcomm_nccl_calls *calls);
void lcomm_nccl_over_take_parts(lcomm_nccl_calls *calls);
void lcomm_nccl_over_take_sums(lcomm_nccl_calls *calls);
void lcomm_nccl_over_take_groups(lcomm_nccl_calls *calls);

static inline const lcomm_nccl_calls *lcomm_nccl_below(void) {
  return &lcomm_nccl_now()->below;
}

/* ------------------------------------------------------ nccl_over_comms.c */

/* NCCL has made a communicator, or makes it, as `result` says: make the backing. What the program
 * is told; with LCOMM_INTERPOSE=require the communicator is NULL where there is no backing. */
ncclResult_t lcomm_nccl_over_made(ncclResult_t result, ncclComm_t *comm,
                                  const lcomm_nccl_origin *origin);

/* Wait for it, and see what has become of it. */
ncclResult_t lcomm_nccl_over_wait(ncclComm_t *comm);

/* ------------------------------------------------------ nccl_over_parts.c */

/* A part of a communicator that does not block: NCCL writes it to *part before
 * ncclCommGetAsyncError tells that the whole is at rest. Begin to make its backing. */
void lcomm_nccl_over_await_part(ncclComm_t *part, const lcomm_nccl_origin *origin);

/* NCCL has told that the whole is at rest, so its parts are known. False: libcomm still makes one,
 * and they are asked for again. */
bool lcomm_nccl_over_take_parts_of(ncclComm_t whole);

/* The whole goes: parts that NCCL has told by now have their backings. */
void lcomm_nccl_over_end_whole(ncclComm_t whole);

/* ------------------------------------------------------- nccl_over_sums.c */

/* A sum in NCCL's terms, and in libcomm's. */
typedef struct lcomm_nccl_sum {
  lcomm_call_kind kind;
  const void *send;
  void *receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  ncclComm_t comm;
  cudaStream_t stream;
  lcomm_nccl_backing *at;
  lcomm_dtype dtype;
  lcomm_op by;
  lcomm_nccl_site site; /* with error feedback */
  bool was_turn;        /* in a group: it was begun, or failed to */
  bool is_left;         /* libcomm cannot make it */
  bool is_awaited;      /* the host waits for `request` */
  lcomm_request request;
} lcomm_nccl_sum;

/* ------------------------------------------------------- nccl_over_make.c */

/* Begin a sum that libcomm was chosen for. is_left: libcomm cannot for its buffers or its stream,
 * and has done nothing: NCCL is to make it. */
ncclResult_t lcomm_nccl_sum_begin(lcomm_nccl_sum *it);

/* Wait for it, where the host waits for sums. All that this thread has begun come to an end. */
ncclResult_t lcomm_nccl_sum_finish(lcomm_nccl_sum *it);

/* NCCL makes it. */
ncclResult_t lcomm_nccl_sum_forward(const lcomm_nccl_sum *it);

/* ----------------------------------------------------- nccl_over_groups.c */

/* Groups belong to a thread. In one, communicators and sums wait for the end of the outermost one.
 */
bool lcomm_nccl_over_in_group(void);
ncclResult_t lcomm_nccl_over_defer_comm(ncclComm_t *comm, const lcomm_nccl_origin *origin);
ncclResult_t lcomm_nccl_over_defer_sum(const lcomm_nccl_sum *sum);

/* A sum on this backing was long enough, so its control file may be due at the group's end. */
void lcomm_nccl_over_note(lcomm_nccl_backing *backing);

/* ---------------------------------------------------- nccl_over_control.c */

/* The residuals of the policy before are flushed: their communicator ends. With the lock. */
void lcomm_nccl_over_drop_former(lcomm_nccl_backing *backing);

/* Ask for the words of the control file on all of these backings at once, and obey them. Waits for
 * the other ranks. */
void lcomm_nccl_over_poll(lcomm_nccl_backing *const *backings, size_t count);

/* ----------------------------------------------------- nccl_over_record.c */

/* Count a sum for the table, with the lock of `at`, which may be NULL. taken: libcomm makes it, or
 * would. */
void lcomm_nccl_record(const lcomm_nccl_sum *sum, lcomm_selection choice, bool taken,
                       const char *why);

#endif
