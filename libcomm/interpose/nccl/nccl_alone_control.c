/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Alone: which sums ask for the control file, and obeying it. The communicators of its policies:
 * nccl_alone_policies.c, nccl_alone_kept.c. */

#include <stdlib.h>

#include "libcomm/interpose/nccl/nccl_alone_policies.h"

/* -------------------------------------------------------------------- polls */

/* With the lock of `comm`. */
static void begin_poll(ncclComm_t comm) {
  lcomm_nccl_controlled *mine = comm->controlled;
  lcomm_nccl_poll_begin(&mine->poll, &mine->control, comm->comm);
  lcomm_nccl_kept_ask(mine);
}

static void obey(lcomm_nccl_controlled *mine, lcomm_nccl_order order, const char *policy) {
  switch (order) {
  case LCOMM_NCCL_ORDER_REPLACE:
    lcomm_nccl_change_begin(mine, policy, LCOMM_NCCL_CHANGE_POLICY);
    break;
  case LCOMM_NCCL_ORDER_OFF:
    lcomm_nccl_change_begin(mine, "", LCOMM_NCCL_CHANGE_OFF);
    break;
  case LCOMM_NCCL_ORDER_RESTORE:
  case LCOMM_NCCL_ORDER_ON:
    lcomm_nccl_change_back(mine);
    break;
  case LCOMM_NCCL_ORDER_NONE:
    break;
  }
}

static void end_poll(ncclComm_t comm) {
  lcomm_nccl_controlled *mine = comm->controlled;
  const char *policy = NULL;
  lcomm_nccl_order order = lcomm_nccl_poll_end(&mine->poll, &mine->control, comm->comm, &policy);
  lcomm_nccl_kept_answer(mine);
  obey(mine, order, policy);
  mine->is_capturing = false;
}

/* Of all in a list, whose locks are held: this thread may have several ranks of one, so all begin
 * before one is waited for, and so do the changes. */
static void poll(ncclComm_t first) {
  for (ncclComm_t it = first; it; it = it->controlled->next_due) {
    begin_poll(it);
  }
  for (ncclComm_t it = first; it; it = it->controlled->next_due) {
    end_poll(it);
  }
  for (ncclComm_t it = first; it; it = it->controlled->next_due) {
    lcomm_nccl_change_end(it->controlled);
  }
}

/* ----------------------------------------------------------------- counting */

static bool is_float(lcomm_dtype type) {
  return type == LCOMM_FLOAT32 || type == LCOMM_BFLOAT16 || type == LCOMM_FLOAT16 ||
         type == LCOMM_FLOAT64;
}

/* The same sums as over NCCL: sums and averages of floats, for all ranks or of equal parts. */
static bool is_candidate(const lcomm_nccl_call *call) {
  bool is_for_one = call->kind == LCOMM_CALL_REDUCE_SCATTER && call->root >= 0;
  bool is_sum = call->name && !call->gathered;
  return is_sum && !call->factor.is_used && !is_for_one && is_float(call->type) &&
         (call->op == LCOMM_SUM || call->op == LCOMM_AVG);
}

/* Is the file due with it? With the lock. */
static bool count(const lcomm_nccl_call *call) {
  lcomm_nccl_controlled *mine = call->comm->controlled;
  if (call->count * lcomm_dtype_size(call->type) < mine->min_bytes) {
    return false;
  }
  mine->control.candidates++;
  return lcomm_nccl_control_is_due(&mine->control);
}

/* Of a graph, calls of a communicator may come at any time. */
static void note_capture(const lcomm_nccl_call *call) {
  lcomm_nccl_controlled *mine = call->comm->controlled;
  int is_captured = 0;
  (void)lcomm_device_captured(call->stream, &is_captured);
  mine->is_capturing |= is_captured;
  mine->sum_is_captured = is_captured;
}

void lcomm_nccl_control_sum(const lcomm_nccl_call *call) {
  lcomm_nccl_controlled *mine = call->comm->controlled;
  if (!mine) {
    return;
  }
  note_capture(call);
  if (!call->is_grouped && is_candidate(call) && count(call)) {
    mine->next_due = NULL;
    poll(call->comm);
  }
  if (mine->sum_is_captured && mine->in_force) {
    mine->in_force->made.was_captured = true;
  }
}

/* Each communicator that is due once, with its lock. */
static ncclComm_t find_due(const lcomm_nccl_call *calls, size_t count_of_calls) {
  ncclComm_t first = NULL, *end = &first;
  for (size_t i = 0; i < count_of_calls; i++) {
    lcomm_nccl_controlled *mine = calls[i].comm->controlled;
    if (!mine || !is_candidate(&calls[i])) {
      continue;
    }
    if (!mine->is_due) {
      pthread_mutex_lock(&calls[i].comm->lock);
    }
    bool was_due = mine->is_due;
    mine->is_due = count(&calls[i]) || was_due;
    if (!mine->is_due) {
      pthread_mutex_unlock(&calls[i].comm->lock);
    } else if (!was_due) {
      mine->next_due = NULL;
      *end = calls[i].comm;
      end = &mine->next_due;
    }
  }
  return first;
}

void lcomm_nccl_control_group(const lcomm_nccl_call *calls, size_t count_of_calls) {
  if (!lcomm_interpose_control_wanted()) {
    return;
  }
  ncclComm_t first = find_due(calls, count_of_calls);
  poll(first);
  for (ncclComm_t it = first, next = NULL; it; it = next) {
    next = it->controlled->next_due;
    it->controlled->is_due = false;
    pthread_mutex_unlock(&it->lock);
  }
}

/* ----------------------------------------------------------------- deciding */

bool lcomm_nccl_control_is_off(const lcomm_nccl_controlled *mine) {
  return mine && mine->control.off;
}

/* What is captured cannot be made with a residual, which stays for a later sum. */
bool lcomm_nccl_control_flushes(const lcomm_nccl_call *call, lcomm_nccl_site *site) {
  lcomm_nccl_controlled *mine = call->comm->controlled;
  site->kind = call->kind;
  return mine && mine->former && !mine->sum_is_captured && is_candidate(call) &&
         call->type == LCOMM_FLOAT32 &&
         lcomm_nccl_feedback_flushes(mine->former, call->count, call->op, site);
}
