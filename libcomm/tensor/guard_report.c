/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who is told what the guard has found: statistics, trace, the program, the log. */

#include <math.h>
#include <stdio.h>

#include "libcomm/base/clock.h"
#include "libcomm/base/log.h"
#include "libcomm/engine/entry.h"
#include "libcomm/tensor/bucket.h"

/* ------------------------------------------------------------ statistics */

void lcomm_guard_begin_tell(lcomm_guard *guard) {
  lcomm_stats *stats = &guard->comm->stats;
  stats->guard_checks++;
  stats->guard_error = stats->guard_residual = 0;
  stats->guard_cosine = 1;
}

static void count(lcomm_stats *stats, const lcomm_guard_figures *figures) {
  stats->guard_error = fmax(stats->guard_error, figures->error);
  stats->guard_residual = fmax(stats->guard_residual, figures->residual);
  stats->guard_cosine = fmin(stats->guard_cosine, figures->cosine);
  stats->guard_waited += figures->waited;
  stats->guard_beyond += figures->beyond != 0;
}

static void trace(const lcomm_comm *comm, const lcomm_guard_figures *figures, double begin_s) {
  lcomm_trace_event event = {.kind = LCOMM_TRACE_GUARD,
                             .begin_s = begin_s,
                             .end_s = lcomm_clock_s(),
                             .peer = -1,
                             .bytes = figures->samples * sizeof(float),
                             .name = figures->tensor,
                             .codec = figures->codec,
                             .guard = {.error = figures->error,
                                       .cosine = figures->cosine,
                                       .residual = figures->residual,
                                       .waited = figures->waited}};
  lcomm_trace_add(comm->observers.trace, &event);
}

void lcomm_guard_tell(lcomm_guard *guard, const lcomm_guard_share *share, double begin_s) {
  lcomm_comm *comm = guard->comm;
  const lcomm_guarded *guarded = share->guarded;
  count(&comm->stats, &guarded->figures);
  if (comm->observers.trace) {
    trace(comm, &guarded->figures, begin_s);
  }
  if (comm->tensors->listener.function) {
    comm->tensors->listener.function(comm->tensors->listener.context, &guarded->figures);
  }
}

/* ------------------------------------------------------------------- log */

/* What is beyond its limit. */
static void write_cause(const lcomm_guard_share *share, const lcomm_guard_policy *policy,
                        char *text, size_t size) {
  const lcomm_guard_figures *figures = &share->guarded->figures;
  if (share->by.error_feedback) {
    snprintf(text, size, "keeps a residual of %.3g times its gradient, and the limit is %.3g",
             figures->residual, policy->residual);
  } else {
    snprintf(text, size, "has results %.3g from the exact sums, and the limit is %.3g",
             figures->error, policy->limit);
  }
}

static void write_outcome(const lcomm_guard *guard, lcomm_guard_verdict verdict,
                          const lcomm_guard_figures *figures, char *text, size_t size) {
  const char *how = guard->comm->settings.policy.guard.report
                        ? "guard=report leaves its codec as it is"
                        : "there is no milder codec";
  if (verdict == LCOMM_GUARD_STAY) {
    snprintf(text, size, "%s", how);
  } else {
    snprintf(text, size, "from here on it travels by %s", figures->next);
  }
}

void lcomm_guard_log(const lcomm_guard *guard, lcomm_guard_verdict verdict,
                     const lcomm_guard_news *news) {
  char sentence[512], cause[128], outcome[128], more[48] = "";
  if (news->count == 0 || guard->comm->rank != 0) {
    return;
  }
  const lcomm_guard_figures *figures = &news->first->guarded->figures;
  if (news->count > 1) {
    snprintf(more, sizeof(more), "; so for %zu more tensors", news->count - 1);
  }
  write_cause(news->first, &guard->comm->settings.policy.guard, cause, sizeof(cause));
  if (verdict == LCOMM_GUARD_RETURN) {
    snprintf(cause, sizeof(cause), "passed %llu checks",
             (unsigned long long)news->first->guarded->patience);
  }
  write_outcome(guard, verdict, figures, outcome, sizeof(outcome));
  bool steps = news->first->ef->background; /* else calls with a residual */
  snprintf(sentence, sizeof(sentence), "guard, %s %llu: %s %s, by %s, %s: %s%s",
           steps ? "step" : "call", (unsigned long long)figures->step,
           steps ? "tensor" : "residual", figures->tensor, figures->codec, cause, outcome, more);
  lcomm_log_warning(sentence);
}

/* ---------------------------------------------------------- public calls */

lcomm_status lcomm_tensor_guard(lcomm_comm *comm, const lcomm_tensor *tensor,
                                lcomm_guard_figures *figures) {
  LCOMM_TRY(lcomm_tensor_check(comm, tensor, "lcomm_tensor_guard"));
  if (!figures) {
    return lcomm_refuse_null(comm, "lcomm_tensor_guard", "figures");
  }
  LCOMM_TRY(lcomm_enter(comm));
  *figures = tensor->guarded.figures;
  figures->tensor = tensor->name;
  lcomm_exit(comm);
  return LCOMM_OK;
}

lcomm_status lcomm_guard_set(lcomm_comm *comm, lcomm_guard_function function, void *context) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_guard_set"));
  comm->tensors->listener.function = function;
  comm->tensors->listener.context = context;
  lcomm_exit(comm);
  return LCOMM_OK;
}
