/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_ALONE_POLICIES_H
#define LCOMM_INTERPOSE_NCCL_ALONE_POLICIES_H

/* Alone: the communicators of libcomm that make the sums of one of NCCL's, one for each policy that
 * the control file has asked for. All with the lock of NCCL's. */

#include "libcomm/interpose/nccl/nccl_alone_control.h"

/* One besides the first, of another policy. */
typedef struct lcomm_nccl_kept {
  struct lcomm_nccl_kept *next;
  lcomm_nccl_made made;
  char policy[LCOMM_INTERPOSE_CONTROL_MAX];
} lcomm_nccl_kept;

/* Another one is made, by a thread. */
typedef struct lcomm_nccl_change {
  lcomm_nccl_kept *made; /* NULL: none is */
  bool is_off;           /* the program's sums are to be exact */
  bool has_thread;
  pthread_t thread;
  lcomm_status status;
} lcomm_nccl_change;

struct lcomm_nccl_controlled {
  ncclComm_t of;
  lcomm_nccl_sharing sharing;
  bool reports; /* LCOMM_INTERPOSE=report: there is the first communicator only */
  lcomm_nccl_control control;
  lcomm_nccl_poll poll;
  ncclComm_t next_due; /* whose file is due with this one */
  bool is_due;         /* it is among those, and its lock is held */
  uint64_t min_bytes;  /* the least of its policies so far: shorter sums do not count */

  bool sum_is_captured; /* the last sum is */
  bool is_capturing;    /* one since the last poll was: nothing on devices is freed now */

  lcomm_nccl_made first;       /* of LCOMM_POLICY */
  lcomm_nccl_kept *in_force;   /* NULL: the first */
  lcomm_nccl_feedback *former; /* whose residuals sums flush, or NULL */
  lcomm_nccl_change change;

  pthread_mutex_t guard;    /* of the next two, for threads that abort */
  lcomm_nccl_kept *others;  /* on all ranks the same */
  const char *given_up;     /* why they are aborted, a constant; else NULL */
  lcomm_nccl_kept *leaving; /* retired: freed when all ranks have come to a later poll */

  bool has_changed; /* polls ask which of `others` may go: */
  int32_t *answers; /* room for one each, and one more */
  lcomm_request asked;
  lcomm_status ask_status;
};

/* ------------------------------------------------------------ nccl_alone_kept.c */

/* Part of a poll: ask all ranks which communicators nobody needs any more; then let these go, in
 * two polls, so that no rank frees what another one still looks at. */
void lcomm_nccl_kept_ask(lcomm_nccl_controlled *mine);
void lcomm_nccl_kept_answer(lcomm_nccl_controlled *mine);

/* -------------------------------------------------------- nccl_alone_policies.c */

/* What is in force may count shorter sums than before. */
void lcomm_nccl_lower_min(lcomm_nccl_controlled *mine);

typedef enum lcomm_nccl_change_kind {
  LCOMM_NCCL_CHANGE_POLICY,
  LCOMM_NCCL_CHANGE_OFF
} lcomm_nccl_change_kind;

/* Begin to make a communicator of a policy, or take one that is there; put it in force. A policy
 * that is none stays without effect, on all ranks. The end waits for the other ranks. */
void lcomm_nccl_change_begin(lcomm_nccl_controlled *mine, const char *policy,
                             lcomm_nccl_change_kind kind);
void lcomm_nccl_change_end(lcomm_nccl_controlled *mine);

/* LCOMM_POLICY is in force again. */
void lcomm_nccl_change_back(lcomm_nccl_controlled *mine);

#endif
