/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_RESIDUAL_GUARD_H
#define LCOMM_TENSOR_RESIDUAL_GUARD_H

/* The guard of calls with a residual. A call may end anywhere on each rank, so its samples wait for
 * the next call with the residual: their sum is an operation that starts right after that call's
 * own, on all ranks alike, and its request waits for both. So nothing blocks that did not. What is
 * found counts from the call after that one on: where the codec changes, this one is exact and
 * flushes the residual, whoever keeps it. A call beside which samples are summed is not checked. */

#include "libcomm/tensor/residual.h"

/* Where a check is. */
typedef enum lcomm_guard_phase {
  LCOMM_GUARD_IDLE,
  LCOMM_GUARD_TAKEN,   /* a call is in flight whose samples were taken */
  LCOMM_GUARD_PENDING, /* it is over: its samples wait for the next call */
  LCOMM_GUARD_SUMMED   /* beside a call that is in flight */
} lcomm_guard_phase;

typedef struct lcomm_call_guard {
  lcomm_guard all; /* of one share */
  lcomm_guard_phase phase;
  char name[LCOMM_RESIDUAL_NAME_MAX]; /* of the residual, or its number in words */
} lcomm_call_guard;

/* A call is about to take its run, and no other one of the residual is in flight: make what its
 * checks need, and change the codec if that was found. MEMORY, and what a plan can fail with. */
lcomm_status lcomm_residual_guard_prepare(lcomm_residual *residual);

/* Of a call: its contribution is ready; its sum is, and nothing was added to it. Between
 * lcomm_run_enter and lcomm_run_leave; errors of the run's backend. */
lcomm_status lcomm_residual_guard_take(lcomm_residual *residual, lcomm_run *run);
lcomm_status lcomm_residual_guard_keep(const lcomm_residual *residual, lcomm_run *run);

/* `operation` was started for a call: start the sum of samples that wait. What fails ends it, too.
 */
void lcomm_residual_guard_sum(lcomm_residual *residual, lcomm_operation *operation);

/* The request of a call was waited for, and all went well: evaluate, and keep what was taken. */
void lcomm_residual_guard_collect(lcomm_residual *residual);

/* The last call never was. */
void lcomm_residual_guard_discard(lcomm_residual *residual);

/* Its codec is from here on what the guard has found; runs are made again by the caller. */
void lcomm_residual_guard_soften(lcomm_residual *residual);

/* The policy is another one: its codec counts again. */
void lcomm_residual_guard_forget(lcomm_residual *residual);
void lcomm_residual_guard_free(lcomm_residual *residual);

#endif
