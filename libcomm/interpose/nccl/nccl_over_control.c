/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: the control file. Rank 0 of a communicator reads it at the first sum that is long
 * enough, and at every 16th after it; a group's sums are counted together when it ends. The ranks
 * get its words there, so all obey at the same sum. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_over.h"

enum { SUMS_BETWEEN_READS = 16, WORDS_MAX = LCOMM_INTERPOSE_CONTROL_MAX };

bool lcomm_nccl_control_is_due(const lcomm_nccl_backing *backing) {
  const lcomm_nccl_policy *policy = &backing->policy;
  return lcomm_interpose_control_wanted() && backing->now.comm &&
         policy->candidates > SUMS_BETWEEN_READS * policy->polls;
}

static void log_change(const lcomm_nccl_backing *at, const char *what, const char *why) {
  if (at->rank == 0) {
    lcomm_interpose_control_say(lcomm_nccl_log, what, why);
  }
}

/* ------------------------------------------------------------ another policy */

typedef struct change {
  lcomm_nccl_backing *at;
  bool replaces; /* LCOMM_POLICY; else it is put in force again */
  char policy[WORDS_MAX];
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
  at->policy.replaced = it->replaces;
  at->policy.off = false;
  lcomm_name_set(comm, at->name);
  log_change(at, "from here on the policy is ", lcomm_policy_string(comm));
  lcomm_nccl_made_end(&at->former, NULL);
  at->former = lcomm_nccl_backing_set(at, &made);
  lcomm_nccl_feedback_suspend(at->former.feedback);
  lcomm_nccl_control_drop_former(at);
}

void lcomm_nccl_control_drop_former(lcomm_nccl_backing *at) {
  if (at->former.comm && !lcomm_nccl_feedback_carries(at->former.feedback)) {
    lcomm_nccl_made_end(&at->former, NULL);
    at->former = (lcomm_nccl_made){0};
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
    log_change(at, "the policy stays as it is: ", lcomm_last_error(at->now.comm));
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

static void switch_on(lcomm_nccl_backing *at) {
  const char *policy = lcomm_setting("LCOMM_POLICY");
  if (at->policy.replaced) {
    begin_change(at, false, policy ? policy : "");
  } else if (at->policy.off) {
    at->policy.off = false;
    lcomm_nccl_feedback_resume(at->now.feedback);
    log_change(at, "on again, the policy is ", lcomm_policy_string(at->now.comm));
  }
}

/* With the lock. */
static void obey(lcomm_nccl_backing *at, const char *words) {
  const char *policy = NULL;
  switch (lcomm_interpose_control_parse(words, &policy)) {
  case LCOMM_INTERPOSE_CONTROL_POLICY:
    begin_change(at, true, policy);
    break;
  case LCOMM_INTERPOSE_CONTROL_OFF:
    at->policy.off = true;
    lcomm_nccl_feedback_suspend(at->now.feedback);
    log_change(at, "from here on all calls are NCCL's", "");
    break;
  case LCOMM_INTERPOSE_CONTROL_ON:
    switch_on(at);
    break;
  case LCOMM_INTERPOSE_CONTROL_UNKNOWN:
    log_change(at, "neither on, off nor policy WORDS, ignored: ", words);
  }
}

typedef struct poll {
  char words[WORDS_MAX];
  lcomm_request request;
  lcomm_status status;
} poll;

static void begin_poll(lcomm_nccl_backing *at, poll *it) {
  lcomm_nccl_backing_enter(at);
  at->policy.polls = (at->policy.candidates + SUMS_BETWEEN_READS - 1) / SUMS_BETWEEN_READS;
  if (at->rank == 0) {
    lcomm_interpose_control_read(it->words);
  }
  it->status =
      lcomm_ibroadcast(at->now.comm, it->words, sizeof(it->words), LCOMM_UINT8, 0, &it->request);
  lcomm_nccl_backing_leave(at);
}

static void end_poll(lcomm_nccl_backing *at, poll *it) {
  lcomm_nccl_backing_enter(at);
  if (it->status == LCOMM_OK) {
    it->status = lcomm_wait(at->now.comm, &it->request);
  }
  lcomm_interpose_text_sanitize(it->words, sizeof(it->words));
  char *last = at->policy.control;
  if (it->status == LCOMM_OK && strcmp(it->words, last[0] ? last : "on") != 0) {
    memcpy(last, it->words, sizeof(at->policy.control));
    obey(at, last);
  }
  lcomm_nccl_backing_leave(at);
}

/* A failure is the communicator's, and the sum behind it tells it. */
void lcomm_nccl_control_poll(lcomm_nccl_backing *const *backings, size_t count) {
  poll *all = calloc(count, sizeof *all);
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
