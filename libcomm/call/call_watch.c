/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/call/call_watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/entry.h"

/* What rank 0 tells the others; travels as whole words. */
typedef struct revision {
  lcomm_auto_figures figures;
  uint64_t changed;
} revision;

_Static_assert(sizeof(revision) % sizeof(float) == 0, "a revision is whole words");

/* -------------------------------------------------------------------- life */

lcomm_status lcomm_call_watch_renew(lcomm_comm *comm) {
  lcomm_call_watch_free(comm);
  if (comm->topo.nodes < 2 || !lcomm_policy_is_automatic(&comm->settings.policy)) {
    return LCOMM_OK;
  }
  lcomm_call_watch *watch = calloc(1, sizeof *watch);
  if (!watch) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for net=auto");
  }
  watch->topo = comm->topo;
  watch->topo.hidden_from = LCOMM_AUTO_CODECS;
  comm->runs.watch = watch;
  comm->runs.topo = &watch->topo;
  return LCOMM_OK;
}

void lcomm_call_watch_free(lcomm_comm *comm) {
  free(comm->runs.watch);
  comm->runs.watch = NULL;
  comm->runs.topo = NULL;
}

/* ---------------------------------------------------------------- revising */

static lcomm_plan_time predict(const void *context, const lcomm_topo *topo) {
  const lcomm_plan *plan = context;
  return lcomm_auto_predict(plan, topo, plan->automatic.candidate);
}

static void tell_change(const lcomm_comm *comm, const lcomm_watched_plan *watched,
                        const lcomm_plan *plan, double predicted_us) {
  char figures[LCOMM_AUTO_FIGURES_TEXT_MAX], text[LCOMM_AUTO_FIGURES_TEXT_MAX + 256];
  snprintf(text, sizeof(text),
           "net=auto: %s of %llu elements took %.3g ms where %.3g ms were predicted, after %llu "
           "calls; for calls links between nodes are taken for %s from here on",
           lcomm_collective_name(plan->collective), (unsigned long long)plan->count,
           watched->least_s * 1e3, predicted_us * 1e-3, (unsigned long long)watched->calls,
           lcomm_auto_figures_format(&comm->runs.watch->topo, figures));
  lcomm_log_info(text);
}

/* Rank 0: what all ranks shall take. The plan is made again, because its run may be gone. */
static lcomm_status revise(lcomm_comm *comm, const lcomm_plan_request *request,
                           const lcomm_watched_plan *watched, revision *it) {
  lcomm_call_watch *watch = comm->runs.watch;
  lcomm_plan *plan = NULL;
  lcomm_why why;
  lcomm_status status =
      lcomm_plan_create(request, &comm->settings.policy, &watch->topo, comm->rank, &plan, &why);
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, status, "net=auto: %s", why.text);
  }
  double predicted_us = predict(plan, &watch->topo).total_us;
  it->changed =
      plan->hash == watched->hash && /* else it was of a stage of warm-up, or of a milder codec */
      lcomm_auto_correct(&watch->topo, &watch->trust, predict, plan, watched->least_s);
  it->figures = lcomm_auto_figures_of(&watch->topo);
  if (it->changed) {
    tell_change(comm, watched, plan, predicted_us);
  }
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

static lcomm_status take(lcomm_comm *comm, const revision *it) {
  if (!lcomm_auto_figures_are_possible(&it->figures)) {
    return lcomm_fail_peer(comm, LCOMM_ERR_WIRE, 0, "net=auto: rank 0 tells what cannot be");
  }
  if (it->changed == 0) {
    return LCOMM_OK;
  }
  lcomm_auto_figures_put(&it->figures, &comm->runs.watch->topo);
  comm->runs.watch->revisions++;
  lcomm_run_cache_expire_automatic(&comm->runs.cache);
  return LCOMM_OK;
}

/* Its place, which it takes from another plan: only where all ranks do. */
static lcomm_watched_plan *find(lcomm_call_watch *watch, uint64_t hash) {
  lcomm_watched_plan *watched = &watch->plans[hash % LCOMM_CALL_WATCH_PLANS];
  if (watched->hash != hash) {
    watch->due -= watched->due;
    *watched = (lcomm_watched_plan){.hash = hash};
  }
  return watched;
}

static void count(lcomm_watched_plan *watched, double taken_s) {
  if (watched->calls > 1) {
    watched->least_s = watched->least_s > 0 ? fmin(watched->least_s, taken_s) : taken_s;
  }
}

static lcomm_status compare(lcomm_comm *comm, const lcomm_plan_request *request,
                            lcomm_watched_plan *watched) {
  revision it = {.changed = 0};
  if (comm->rank == 0) {
    LCOMM_TRY(revise(comm, request, watched, &it));
  }
  watched->least_s = 0;
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, &it, &it, sizeof it / sizeof(float),
                                  LCOMM_FLOAT32, LCOMM_SUM);
  call.op_kind = LCOMM_OP_KIND_REVISE;
  LCOMM_TRY(lcomm_call_make(comm, &call));
  return take(comm, &it);
}

/* ---------------------------------------------------------------- watching */

void lcomm_call_watch_start(lcomm_comm *comm, const lcomm_call *call) {
  lcomm_call_watch *watch = comm->runs.watch;
  if (!call->watched_hash) {
    return;
  }
  lcomm_watched_plan *watched = find(watch, call->watched_hash);
  bool agreed = lcomm_auto_is_agreed(++watched->calls);
  if (agreed && !call->waits && !watched->due && !call->request.part_counts) {
    watched->due = true;
    watched->request = call->request;
    watch->due++;
  }
}

static uint64_t count_started(const lcomm_comm *comm) {
  uint64_t calls = comm->operations.next[LCOMM_SEQUENCE_SPACE_CALLS];
  return calls << 32 | comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS];
}

/* A blocking call has its time from its caller, but the operation cannot know. */
void lcomm_call_watch_begin(lcomm_comm *comm, lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  bool acts = comm->runs.watch && run->plan->automatic.allowed &&
              (run->terms.op_kind == LCOMM_OP_KIND_CALL || run->terms.op_kind == LCOMM_OP_KIND_EF);
  bool alone = comm->operations.first == operation && comm->operations.last == operation;
  operation->watched_hash = acts && alone ? run->plan->hash : 0;
  operation->watched_from = count_started(comm);
  operation->returned_s = operation->begun_s; /* until it does */
}

void lcomm_call_watch_return(lcomm_operation *operation) {
  if (operation->watched_hash) {
    operation->returned_s = lcomm_clock_s();
  }
}

void lcomm_call_watch_wait(lcomm_operation *operation) {
  if (operation->watched_hash && !(operation->waited_s > 0)) {
    operation->waited_s = lcomm_clock_s();
  }
}

void lcomm_call_watch_collect(lcomm_comm *comm, const lcomm_operation *operation) {
  static const double AT_ONCE = 0.1; /* of the time that it took */
  double taken_s = operation->moved_s - operation->begun_s;
  double idle_s = operation->waited_s - operation->returned_s;
  bool moved = comm->progress.thread || idle_s < AT_ONCE * taken_s;
  if (!operation->watched_hash || !comm->runs.watch || operation->status != LCOMM_OK || !moved ||
      operation->watched_from != count_started(comm)) {
    return;
  }
  uint64_t hash = operation->watched_hash;
  lcomm_watched_plan *watched = &comm->runs.watch->plans[hash % LCOMM_CALL_WATCH_PLANS];
  if (watched->hash == hash) {
    count(watched, taken_s);
  }
}

/* The first of those that are due, which are the same on all ranks. */
static lcomm_status compare_due(lcomm_comm *comm) {
  lcomm_call_watch *watch = comm->runs.watch;
  size_t i = 0;
  if (watch->due == 0) {
    return LCOMM_OK;
  }
  while (!watch->plans[i].due) {
    i++;
  }
  watch->plans[i].due = false;
  watch->due--;
  return compare(comm, &watch->plans[i].request, &watch->plans[i]);
}

static lcomm_status compare_at(lcomm_comm *comm, const lcomm_call *call, double taken_s) {
  lcomm_call_watch *watch = comm->runs.watch;
  if (call->watched_hash) {
    lcomm_watched_plan *watched = find(watch, call->watched_hash);
    count(watched, taken_s);
    if (lcomm_auto_is_agreed(watched->calls)) {
      LCOMM_TRY(compare(comm, &call->request, watched));
    }
  }
  return compare_due(comm);
}

lcomm_status lcomm_call_watch_over(lcomm_comm *comm, const lcomm_call *call, double taken_s) {
  if (!call->watched_hash && comm->runs.watch->due == 0) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = compare_at(comm, call, taken_s);
  lcomm_exit(comm);
  return status;
}
