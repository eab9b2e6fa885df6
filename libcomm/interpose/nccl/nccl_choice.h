/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_CHOICE_H
#define LCOMM_INTERPOSE_NCCL_CHOICE_H

/* Alone: what the policy says of each sum, error feedback by call site, and what the table at the
 * end counts. */

#include "libcomm/interpose/nccl/nccl_alone_control.h"

/* May the process run so? If not, `reason` says why. Before the first call. */
bool lcomm_nccl_choices_begin(lcomm_nccl_choice *choice);

/* The policy of communicators, for lcomm_config: NULL is LCOMM_POLICY, "" exact sums. */
const char *lcomm_nccl_choices_policy(void);

/* A communicator has its lcomm_comm and its name. */
void lcomm_nccl_choices_make(ncclComm_t comm, lcomm_nccl_sharing sharing);

/* Give back what that made; before the lcomm_comm goes. Waits for its sums with error feedback. */
void lcomm_nccl_choices_free(ncclComm_t comm);

/* LCOMM_INTERPOSE=report: from here on the table is about another policy; NULL is LCOMM_POLICY.
 * False: it is none, as lcomm_last_error(NULL) says, and all stays as it is. */
bool lcomm_nccl_choices_report(ncclComm_t comm, const char *policy);

/* Decide about the next sum, with the lock, and count it. site->feedback: it has a residual there;
 * NULL: it is plain. */
void lcomm_nccl_choose(const lcomm_nccl_call *call, lcomm_nccl_site *site);

/* Count a sum that the host combines, with the lock. */
void lcomm_nccl_count_gathered(const lcomm_nccl_call *call);

#endif
