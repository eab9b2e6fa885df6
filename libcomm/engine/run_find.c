/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Finding the run of a request: one that an earlier request of its shape left in the cache, or a
 * new one; giving it back; retiring it. */

#include "libcomm/base/error.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/pair_recording.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"

static lcomm_run *take_cached(lcomm_comm *comm, const lcomm_plan_request *request) {
  return lcomm_run_cache_take(&comm->runs.cache, request, comm->size);
}

void lcomm_run_retire(lcomm_comm *comm, lcomm_run *run) {
  if (!run || !run->backend->queue) {
    lcomm_run_destroy(run);
    return;
  }
  run->cached.next = comm->runs.spent;
  comm->runs.spent = run;
}

void lcomm_runs_free_spent(lcomm_comm *comm) {
  lcomm_recordings_retire(comm);
  lcomm_pair_recordings_retire(comm);
  while (comm->runs.spent) {
    lcomm_run *run = comm->runs.spent;
    comm->runs.spent = run->cached.next;
    lcomm_run_destroy(run);
  }
}

void lcomm_run_keep(lcomm_comm *comm, lcomm_run *run) {
  lcomm_run_cache_put(&comm->runs.cache, run);
}

lcomm_status lcomm_plan_find(lcomm_comm *comm, const lcomm_plan_request *request,
                             lcomm_plan **plan) {
  lcomm_why why;
  lcomm_status status = lcomm_plan_create(request, &comm->settings.policy,
                                          lcomm_topo_of_calls(comm), comm->rank, plan, &why);
  if (status == LCOMM_ERR_MEMORY) {
    return lcomm_fail(comm, status, "%s of %llu elements: %s",
                      lcomm_collective_name(request->collective),
                      (unsigned long long)request->count, why.text);
  }
  if (status != LCOMM_OK) { /* the same on all ranks */
    return lcomm_refuse(comm, status, "%s of %llu elements: %s",
                        lcomm_collective_name(request->collective),
                        (unsigned long long)request->count, why.text);
  }
  return LCOMM_OK;
}

static lcomm_status make(lcomm_comm *comm, const lcomm_plan_request *request, lcomm_run **run) {
  lcomm_plan *plan = NULL;
  LCOMM_TRY(lcomm_plan_find(comm, request, &plan));
  lcomm_status status = lcomm_run_create(comm, plan, LCOMM_SEQUENCE_SPACE_CALLS, run);
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, status, "%s", lcomm_error_thread_text());
  }
  return LCOMM_OK;
}

lcomm_status lcomm_run_find(lcomm_comm *comm, const lcomm_plan_request *request, lcomm_run **run) {
  *run = take_cached(comm, request);
  if (*run) {
    return LCOMM_OK;
  }
  LCOMM_TRY(make(comm, request, run));
  lcomm_run_cache_add(&comm->runs.cache, *run, request, comm->size);
  return LCOMM_OK;
}
