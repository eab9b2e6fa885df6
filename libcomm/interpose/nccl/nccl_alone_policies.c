/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Alone: another policy is made and put in force. */

#include "libcomm/interpose/nccl/nccl_alone_policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/nccl/nccl_choice.h"

static void say(const lcomm_nccl_controlled *mine, const char *what, const char *why) {
  lcomm_nccl_control_say(mine->of->rank, what, why);
}

/* ------------------------------------------------------------------ in force */

void lcomm_nccl_lower_min(lcomm_nccl_controlled *mine) {
  const struct ncclComm *of = mine->of;
  lcomm_policy_facts facts = {0};
  if (of->preview) {
    lcomm_preview_facts(of->preview, &facts);
  } else {
    (void)lcomm_policy_facts_get(of->now.comm, &facts);
  }
  mine->min_bytes = facts.min_bytes < mine->min_bytes ? facts.min_bytes : mine->min_bytes;
}

/* NULL: the first one. Sums to come flush the residuals of the policy that is replaced; those of
 * the one before it, for which no sum has come in all that time, are dropped. */
static void put_in_force(lcomm_nccl_controlled *mine, lcomm_nccl_kept *kept) {
  const lcomm_nccl_made *made = kept ? &kept->made : &mine->first;
  lcomm_nccl_feedback *before = mine->of->now.feedback;
  if (made->comm == mine->of->now.comm) {
    return;
  }
  lcomm_nccl_feedback_suspend(before);
  lcomm_nccl_feedback_resume(made->feedback);
  mine->former = lcomm_nccl_feedback_carries(before) ? before : mine->former;
  mine->former = mine->former == made->feedback ? NULL : mine->former;
  mine->of->now = *made;
  mine->in_force = kept;
  lcomm_nccl_lower_min(mine);
}

static const char *policy_in_force(const lcomm_nccl_controlled *mine) {
  const struct ncclComm *of = mine->of;
  return of->preview ? lcomm_preview_policy(of->preview) : lcomm_policy_string(of->now.comm);
}

static void has_changed(lcomm_nccl_controlled *mine, bool is_off) {
  mine->control.off = is_off;
  mine->control.replaced = !is_off || mine->control.replaced;
  if (is_off) {
    say(mine, "from here on all sums are exact", "");
  } else {
    say(mine, "from here on the policy is ", policy_in_force(mine));
  }
}

/* Sums are exact anyway: what is reported changes. */
static bool report(lcomm_nccl_controlled *mine, const char *policy) {
  bool is_one = lcomm_nccl_choices_report(mine->of, policy);
  mine->first = mine->of->now;
  lcomm_nccl_lower_min(mine);
  return is_one;
}

void lcomm_nccl_change_back(lcomm_nccl_controlled *mine) {
  bool was_off = mine->control.off;
  if (mine->reports && mine->control.replaced) {
    (void)report(mine, NULL);
  }
  put_in_force(mine, NULL);
  mine->control.off = mine->control.replaced = false;
  say(mine, was_off ? "on again, the policy is " : "from here on the policy is ",
      policy_in_force(mine));
}

/* ------------------------------------------------------------ another policy */

/* A thread waits for the other ranks, of which this one may have several. It calls no CUDA. */
static void *make_change(void *argument) {
  lcomm_nccl_controlled *mine = argument;
  lcomm_nccl_kept *made = mine->change.made;
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_device_defer_thread(mine->of->device);
  config.policy = made->policy;
  mine->change.status = lcomm_split(mine->first.comm, 0, mine->of->rank, &config, &made->made.comm);
  return NULL;
}

/* NULL: there is no memory. */
static lcomm_nccl_kept *new_kept(lcomm_nccl_controlled *mine, const char *policy) {
  size_t room = 2;
  for (const lcomm_nccl_kept *it = mine->others; it; it = it->next) {
    room++;
  }
  int32_t *answers = realloc(mine->answers, room * sizeof *answers);
  lcomm_nccl_kept *made = answers ? calloc(1, sizeof *made) : NULL;
  mine->answers = answers ? answers : mine->answers;
  if (made) {
    snprintf(made->policy, sizeof(made->policy), "%s", policy);
  }
  return made;
}

static lcomm_nccl_kept *find_kept(const lcomm_nccl_controlled *mine, const char *policy) {
  lcomm_nccl_kept *it = mine->others;
  while (it && strcmp(it->policy, policy) != 0) {
    it = it->next;
  }
  return it;
}

static void change_report(lcomm_nccl_controlled *mine, const char *policy, bool is_off) {
  if (is_off || report(mine, policy)) {
    has_changed(mine, is_off);
  } else {
    say(mine, "the policy stays as it is: ", lcomm_last_error(NULL));
  }
}

void lcomm_nccl_change_begin(lcomm_nccl_controlled *mine, const char *policy,
                             lcomm_nccl_change_kind kind) {
  bool is_off = kind == LCOMM_NCCL_CHANGE_OFF;
  lcomm_nccl_kept *there = find_kept(mine, policy);
  if (mine->reports) {
    change_report(mine, policy, is_off);
    return;
  }
  if (there) {
    put_in_force(mine, there);
    has_changed(mine, is_off);
    return;
  }
  lcomm_nccl_change *change = &mine->change;
  *change = (lcomm_nccl_change){.made = new_kept(mine, policy), .is_off = is_off};
  if (!change->made) {
    lcomm_abort(mine->first.comm, "a rank has no memory to make a communicator of another policy");
    return;
  }
  change->has_thread = lcomm_nccl_thread_create(&change->thread, make_change, mine) == 0;
  if (!change->has_thread) { /* others could wait for it for ever */
    lcomm_abort(mine->first.comm,
                "a rank cannot start a thread that makes a communicator of another policy");
    change->status = LCOMM_ERR_SYSTEM;
  }
}

/* Who aborts looks at the list. */
static void add(lcomm_nccl_controlled *mine, lcomm_nccl_kept *made) {
  pthread_mutex_lock(&mine->guard);
  made->next = mine->others;
  mine->others = made;
  if (mine->given_up) {
    lcomm_abort(made->made.comm, mine->given_up);
  }
  pthread_mutex_unlock(&mine->guard);
  mine->has_changed = true;
}

void lcomm_nccl_change_end(lcomm_nccl_controlled *mine) {
  lcomm_nccl_change *change = &mine->change;
  lcomm_nccl_kept *made = change->made;
  if (!made) {
    return;
  }
  if (change->has_thread) {
    pthread_join(change->thread, NULL);
  }
  change->made = NULL;
  if (change->status != LCOMM_OK) {
    say(mine, "the policy stays as it is: ", lcomm_last_error(mine->first.comm));
    free(made);
    return;
  }
  lcomm_name_set(made->made.comm, mine->of->name);
  if (lcomm_interpose_recording) {
    lcomm_stats_hide(made->made.comm);
  }
  if (mine->sharing == LCOMM_NCCL_OWN_PROCESSES) {
    made->made = lcomm_nccl_made_of(made->made.comm);
  }
  add(mine, made);
  put_in_force(mine, made);
  has_changed(mine, change->is_off);
}
