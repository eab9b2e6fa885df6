/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: obeying the control file. Another policy is another backing. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_over.h"

/* ------------------------------------------------------------ another policy */

typedef struct change {
  lcomm_nccl_backing *at;
  bool replaces; /* LCOMM_POLICY; else it is put in force again */
  char policy[LCOMM_INTERPOSE_CONTROL_MAX];
} change;

/* With the lock. Sums to come flush the residuals of the policy that is replaced. Those of the one
 * before it, for which no sum has come in all that time, are dropped. */
static void put_in_force(const change *it, lcomm_comm *comm) {
  lcomm_nccl_backing *at = it->at;
  lcomm_policy_facts facts = {0};
  lcomm_nccl_made made = lcomm_nccl_made_of(comm);
  (void)lcomm_policy_facts_get(comm, &facts);
  at->min_bytes = facts.min_bytes < at->min_bytes ? facts.min_bytes : at->min_bytes;
  memset(at->answers, 0, sizeof(at->answers));
  at->control.replaced = it->replaces;
  at->control.off = false;
  lcomm_name_set(comm, at->name);
  lcomm_nccl_control_say(at->rank, "from here on the policy is ", lcomm_policy_string(comm));
  lcomm_nccl_backing_drop_former(at);
  lcomm_nccl_backing_set(at, &made);
  lcomm_nccl_feedback_suspend(at->former.feedback);
  lcomm_nccl_over_drop_former(at);
}

void lcomm_nccl_over_drop_former(lcomm_nccl_backing *at) {
  if (at->former.comm && !lcomm_nccl_feedback_carries(at->former.feedback)) {
    lcomm_nccl_backing_drop_former(at);
  }
}

/* A thread waits for the other ranks, of which this one may have several. */
static void make_change(void *argument) {
  change *it = argument;
  lcomm_nccl_backing *at = it->at;
  lcomm_comm *made = NULL;
  lcomm_status status =
      lcomm_nccl_derive(at->now.comm, 0, lcomm_rank(at->now.comm), it->policy, at->manner, &made);
  pthread_mutex_lock(&at->lock);
  if (status == LCOMM_OK) {
    put_in_force(it, made);
  } else {
    lcomm_nccl_control_say(at->rank, "the policy stays as it is: ", lcomm_last_error(at->now.comm));
  }
  at->is_changing = false;
  pthread_cond_broadcast(&at->changed);
  pthread_mutex_unlock(&at->lock);
  lcomm_nccl_backing_release(at);
  free(it);
}

/* With the lock, which is given up where there is no thread. */
static void begin_change(lcomm_nccl_backing *at, bool replaces, const char *policy) {
  change *it = calloc(1, sizeof *it);
  if (!it) {
    lcomm_abort(at->now.comm, "a rank has no memory to make a communicator of another policy");
    return;
  }
  *it = (change){.at = at, .replaces = replaces};
  snprintf(it->policy, sizeof(it->policy), "%s", policy);
  at->users++;
  at->is_changing = true;
  if (!lcomm_nccl_thread_start(at->device, make_change, it)) {
    pthread_mutex_unlock(&at->lock);
    make_change(it); /* which only waits for ranks of other threads */
    pthread_mutex_lock(&at->lock);
  }
}

/* ------------------------------------------------------------------- obeying */

/* With the lock. */
static void obey(lcomm_nccl_backing *at, lcomm_nccl_order order, const char *words) {
  const char *policy = lcomm_setting("LCOMM_POLICY");
  switch (order) {
  case LCOMM_NCCL_ORDER_REPLACE:
    begin_change(at, true, words);
    break;
  case LCOMM_NCCL_ORDER_RESTORE:
    begin_change(at, false, policy ? policy : "");
    break;
  case LCOMM_NCCL_ORDER_OFF:
    at->control.off = true;
    lcomm_nccl_feedback_suspend(at->now.feedback);
    lcomm_nccl_control_say(at->rank, "from here on all calls are NCCL's", "");
    break;
  case LCOMM_NCCL_ORDER_ON:
    at->control.off = false;
    lcomm_nccl_feedback_resume(at->now.feedback);
    lcomm_nccl_control_say(at->rank, "on again, the policy is ", lcomm_policy_string(at->now.comm));
    break;
  case LCOMM_NCCL_ORDER_NONE:
    break;
  }
}

static void begin_poll(lcomm_nccl_backing *at, lcomm_nccl_poll *it) {
  lcomm_nccl_backing_enter(at);
  lcomm_nccl_poll_begin(it, &at->control, at->now.comm);
  lcomm_nccl_backing_leave(at);
}

static void end_poll(lcomm_nccl_backing *at, lcomm_nccl_poll *it) {
  const char *policy = NULL;
  lcomm_nccl_backing_enter(at);
  lcomm_nccl_order order = lcomm_nccl_poll_end(it, &at->control, at->now.comm, &policy);
  obey(at, order, policy);
  lcomm_nccl_backing_leave(at);
}

void lcomm_nccl_over_poll(lcomm_nccl_backing *const *backings, size_t count) {
  lcomm_nccl_poll *all = calloc(count, sizeof *all);
  for (size_t i = 0; i < count; i++) {
    if (all) {
      begin_poll(backings[i], &all[i]);
    } else {
      lcomm_abort(backings[i]->now.comm, "a rank has no memory to read LCOMM_INTERPOSE_CONTROL");
    }
  }
  for (size_t i = 0; i < count && all; i++) {
    end_poll(backings[i], &all[i]);
  }
  free(all);
}
