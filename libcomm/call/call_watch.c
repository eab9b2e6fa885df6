/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/call/call_watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

static lcomm_plan_time predict(const void *subject, const lcomm_topo *topo) {
  const lcomm_plan *plan = subject;
  return lcomm_auto_predict(plan, topo, plan->automatic.candidate);
}

static void tell_change(const lcomm_comm *comm, const lcomm_watched_plan *watched,
                        const lcomm_plan *plan, double predicted_us) {
  char figures[LCOMM_AUTO_FIGURES_TEXT_MAX], text[LCOMM_AUTO_FIGURES_TEXT_MAX + 256];
  snprintf(text, sizeof(text),
           "net=auto: %s of %llu elements took %.3g ms where %.3g ms were predicted, after %llu "
           "calls; for plain calls links between nodes are taken for %s from here on",
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
  it->changed = lcomm_auto_correct(&watch->topo, &watch->trust, predict, plan, watched->least_s);
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
  lcomm_run_cache_expire_automatic(&comm->runs.cache);
  return LCOMM_OK;
}

static lcomm_watched_plan *find(lcomm_call_watch *watch, uint64_t hash) {
  lcomm_watched_plan *watched = &watch->plans[hash % LCOMM_CALL_WATCH_PLANS];
  if (watched->hash != hash) {
    *watched = (lcomm_watched_plan){.hash = hash};
  }
  return watched;
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

lcomm_status lcomm_call_watch_over(lcomm_comm *comm, const lcomm_plan_request *request,
                                   uint64_t plan_hash, double taken_s) {
  lcomm_watched_plan *watched = find(comm->runs.watch, plan_hash);
  if (watched->calls++ > 0) {
    watched->least_s = watched->least_s > 0 ? fmin(watched->least_s, taken_s) : taken_s;
  }
  if (!lcomm_auto_is_agreed(watched->calls)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = compare(comm, request, watched);
  lcomm_leave(comm);
  return status;
}
