/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Alone: the communicators of policies that were in force, which go one by one, and the end of all.
 */

#include <stdlib.h>

#include "libcomm/interpose/nccl/nccl_alone_policies.h"
#include "libcomm/interpose/nccl/nccl_environment.h"

/* ------------------------------------------------ those that nobody needs any more */

static bool may_go(const lcomm_nccl_controlled *mine, const lcomm_nccl_kept *it) {
  bool flushes =
      mine->former == it->made.feedback && lcomm_nccl_feedback_carries(it->made.feedback);
  return it != mine->in_force && !it->made.was_captured && !flushes && !mine->is_capturing &&
         !lcomm_is_busy(it->made.comm);
}

void lcomm_nccl_kept_ask(lcomm_nccl_controlled *mine) {
  uint64_t count = 0;
  mine->ask_status = LCOMM_OK;
  if (!mine->has_changed) {
    return;
  }
  for (const lcomm_nccl_kept *it = mine->others; it; it = it->next) {
    mine->answers[count++] = may_go(mine, it);
  }
  mine->answers[count++] = 1; /* that all ranks have come here */
  mine->ask_status = lcomm_iallreduce(mine->first.comm, mine->answers, mine->answers, count,
                                      LCOMM_INT32, LCOMM_MIN, &mine->asked);
}

static void release_leaving(lcomm_nccl_controlled *mine) {
  while (mine->leaving) {
    lcomm_nccl_kept *it = mine->leaving;
    mine->leaving = it->next;
    lcomm_release(it->made.comm);
    free(it);
  }
}

static void retire(lcomm_nccl_controlled *mine, lcomm_nccl_kept *it) {
  mine->former = mine->former == it->made.feedback ? NULL : mine->former;
  lcomm_nccl_feedback_destroy(it->made.feedback);
  lcomm_retire(it->made.comm);
  it->next = mine->leaving;
  mine->leaving = it;
}

static void retire_answered(lcomm_nccl_controlled *mine) {
  lcomm_nccl_kept **at = &mine->others;
  for (const int32_t *answer = mine->answers; *at; answer++) {
    lcomm_nccl_kept *it = *at;
    if (!*answer) {
      at = &it->next;
      continue;
    }
    pthread_mutex_lock(&mine->guard);
    *at = it->next;
    pthread_mutex_unlock(&mine->guard);
    retire(mine, it);
  }
}

void lcomm_nccl_kept_answer(lcomm_nccl_controlled *mine) {
  if (!mine->has_changed || mine->ask_status != LCOMM_OK ||
      lcomm_wait(mine->first.comm, &mine->asked) != LCOMM_OK) {
    return;
  }
  if (!mine->is_capturing) {
    release_leaving(mine);
  }
  retire_answered(mine);
}

/* ---------------------------------------------------------- the first and the last */

lcomm_nccl_controlled *lcomm_nccl_controlled_create(ncclComm_t comm, lcomm_nccl_sharing sharing) {
  lcomm_nccl_controlled *mine = calloc(1, sizeof *mine);
  if (!mine) {
    return NULL;
  }
  pthread_mutex_init(&mine->guard, NULL);
  mine->of = comm;
  mine->sharing = sharing;
  mine->first = comm->now;
  mine->reports = lcomm_nccl_environment_get()->mode == LCOMM_INTERPOSE_REPORT;
  mine->min_bytes = UINT64_MAX;
  lcomm_nccl_lower_min(mine);
  return mine;
}

void lcomm_nccl_controlled_abort(lcomm_nccl_controlled *mine, const char *reason) {
  if (!mine) {
    return;
  }
  pthread_mutex_lock(&mine->guard);
  mine->given_up = reason;
  for (lcomm_nccl_kept *it = mine->others; it; it = it->next) {
    lcomm_abort(it->made.comm, reason);
  }
  pthread_mutex_unlock(&mine->guard);
}

lcomm_status lcomm_nccl_controlled_progress(lcomm_nccl_controlled *mine, const lcomm_comm **whose) {
  lcomm_status status = LCOMM_OK;
  for (lcomm_nccl_kept *it = mine ? mine->others : NULL; it && status == LCOMM_OK; it = it->next) {
    *whose = it->made.comm;
    status = lcomm_progress(it->made.comm);
  }
  return status;
}

void lcomm_nccl_controlled_first(lcomm_nccl_controlled *mine) {
  if (mine) {
    mine->of->now = mine->first;
  }
}

/* Where the first one has failed, ranks may differ in what they have let go. */
lcomm_status lcomm_nccl_controlled_end(lcomm_nccl_controlled *mine, lcomm_status first) {
  lcomm_status status = LCOMM_OK;
  if (!mine) {
    return first;
  }
  if (first != LCOMM_OK) {
    lcomm_nccl_controlled_abort(mine, "its communicator of NCCL has failed");
  }
  for (lcomm_nccl_kept *it = mine->others, *next = NULL; it; it = next) {
    next = it->next;
    lcomm_nccl_feedback_destroy(it->made.feedback);
    lcomm_status ended = lcomm_destroy(it->made.comm);
    status = status == LCOMM_OK ? ended : status;
    free(it);
  }
  release_leaving(mine);
  pthread_mutex_destroy(&mine->guard);
  free(mine->answers);
  free(mine);
  return first == LCOMM_OK ? status : first;
}
