/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What outlives a call: its request, and its run, kept for the next call of the
 * same shape. */

#include "libcomm/base/clock.h"
#include "libcomm/device/stream_gate.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/siblings.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual.h"

/* ------------------------------------------------------------------ runs */

static lcomm_run *take_cached(lcomm_comm *comm, const lcomm_plan_request *request) {
  return lcomm_run_cache_take(&comm->run_cache, request, comm->size);
}

static void destroy_retired(lcomm_comm *comm) {
  while (comm->retired_runs && lcomm_stream_gate_count() == 0) {
    lcomm_run *run = comm->retired_runs;
    comm->retired_runs = run->next;
    lcomm_run_destroy(run);
  }
}

void lcomm_run_retire(lcomm_comm *comm, lcomm_run *run) {
  if (!run || !run->device) {
    lcomm_run_destroy(run);
    return;
  }
  run->next = comm->retired_runs;
  comm->retired_runs = run;
  destroy_retired(comm);
}

void lcomm_run_keep(lcomm_comm *comm, lcomm_run *run) {
  destroy_retired(comm);
  lcomm_run_cache_put(&comm->run_cache, run);
}

/* A run on a device is not made before no stream is held, and by then one that was
 * in flight may be there again. So all ranks have the same runs, whoever is faster:
 * what peers have opened of each other stays in use. */
static lcomm_run *take_when_nothing_is_held(lcomm_comm *comm, const lcomm_plan_request *request) {
  if (request->place == 0 || lcomm_stream_gate_count() == 0) {
    return NULL;
  }
  lcomm_status status = lcomm_device_quiesce(comm); /* a failure is found again below */
  lcomm_run *run = status == LCOMM_OK ? take_cached(comm, request) : NULL;
  lcomm_device_resume();
  return run;
}

lcomm_status lcomm_run_find(lcomm_comm *comm, const lcomm_plan_request *request, lcomm_run **run) {
  *run = take_cached(comm, request);
  *run = *run ? *run : take_when_nothing_is_held(comm, request);
  if (*run) {
    return LCOMM_OK;
  }
  lcomm_status status = lcomm_run_make(comm, request, run);
  if (status == LCOMM_OK) {
    lcomm_run_cache_add(&comm->run_cache, *run, request, comm->size);
  }
  return status;
}

lcomm_status lcomm_run_make(lcomm_comm *comm, const lcomm_plan_request *request, lcomm_run **run) {
  char why[256];
  lcomm_plan *plan = NULL;
  lcomm_status status =
      lcomm_plan_create(request, &comm->policy, &comm->topo, comm->rank, &plan, why, sizeof(why));
  if (status == LCOMM_ERR_MEMORY) {
    return lcomm_fail(comm, status, "%s of %llu elements: %s",
                      lcomm_collective_name(request->collective),
                      (unsigned long long)request->count, why);
  }
  if (status != LCOMM_OK) { /* the same on all ranks */
    return lcomm_refuse(comm, status, "%s of %llu elements: %s",
                        lcomm_collective_name(request->collective),
                        (unsigned long long)request->count, why);
  }
  status = lcomm_run_create(comm, plan, run);
  return status == LCOMM_OK ? LCOMM_OK : lcomm_fail(comm, status, "%s", lcomm_error_thread_text());
}

/* -------------------------------------------------------------- requests */

/* A finished request remembers its result: internal NULL, generation 1 + the
 * negated status. */
static lcomm_status collect(lcomm_comm *comm, lcomm_request *handle) {
  lcomm_operation *operation = handle->internal;
  lcomm_status status = operation->status;
  handle->not_finite = operation->not_finite;
  if (operation->residual) {
    lcomm_residual_end(operation->residual);
  } else {
    lcomm_run_keep(comm, operation->run);
  }
  lcomm_operation_release(comm, operation);
  handle->internal = NULL;
  handle->generation = 1 + (uint64_t)(-(int64_t)status);
  return status;
}

static lcomm_status remembered(lcomm_comm *comm, const lcomm_request *handle) {
  if (handle->generation == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE, "a request was waited for that was never started");
  }
  return (lcomm_status)(-(int64_t)(handle->generation - 1));
}

static lcomm_status wait_for(lcomm_comm *comm, lcomm_request *request) {
  lcomm_operation *operation = request->internal;
  if (!operation) {
    return remembered(comm, request);
  }
  lcomm_status status = lcomm_check_owner(comm, operation->run->comm, "lcomm_wait", "request");
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_operations_wait(comm, &operation->over); /* its result is the operation's */
  return collect(comm, request);
}

lcomm_status lcomm_wait(lcomm_comm *comm, lcomm_request *request) {
  if (!comm || !request) {
    return lcomm_refuse_null(comm, "lcomm_wait", "request");
  }
  lcomm_status status = lcomm_enter(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  status = wait_for(comm, request);
  lcomm_leave(comm);
  return status;
}

/* All that can be done now: a program that calls once in a while must not be
 * the slower for each small step. */
static lcomm_status move_on(lcomm_comm *comm) {
  bool moved = true;
  lcomm_status status = LCOMM_OK;
  while (moved && status == LCOMM_OK) {
    moved = false;
    status = lcomm_operations_move(comm, &moved);
  }
  return status;
}

/* Tests wait, too: others are moved meanwhile, messages in MPI as well, and the first
 * test that finds nothing begins the patience. */
static void keep_waiting(lcomm_comm *comm, lcomm_operation *operation) {
  lcomm_siblings_move(comm);
  lcomm_external_progress(&comm->external, &comm->bootstrap, lcomm_clock_s());
  if (!(operation->tested_s > 0)) {
    operation->tested_s = lcomm_clock_s();
  }
  (void)lcomm_operations_check(comm); /* what fails ends the operation */
}

static lcomm_status test(lcomm_comm *comm, lcomm_request *request, int *done) {
  lcomm_operation *operation = request->internal;
  if (!operation) {
    *done = 1;
    return remembered(comm, request);
  }
  lcomm_status status = lcomm_check_owner(comm, operation->run->comm, "lcomm_test", "request");
  if (status != LCOMM_OK) {
    return status;
  }
  if (!operation->over) {
    (void)move_on(comm); /* what fails ends the operation */
  }
  if (!operation->over) {
    keep_waiting(comm, operation);
  }
  *done = operation->over;
  return operation->over ? collect(comm, request) : LCOMM_OK;
}

lcomm_status lcomm_test(lcomm_comm *comm, lcomm_request *request, int *done) {
  if (!comm || !request || !done) {
    return lcomm_refuse_null(comm, "lcomm_test", request ? "done" : "request");
  }
  lcomm_status status = lcomm_enter(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  status = test(comm, request, done);
  lcomm_leave(comm);
  return status;
}

uint64_t lcomm_request_not_finite(const lcomm_request *request) {
  return request && !request->internal && request->generation > 0 ? request->not_finite : 0;
}

static lcomm_status progress(lcomm_comm *comm) {
  if (atomic_load(&comm->step_open) && atomic_load(&comm->status) == LCOMM_OK) {
    lcomm_status status = lcomm_buckets_start(comm);
    if (status != LCOMM_OK) {
      return status;
    }
  }
  return move_on(comm);
}

lcomm_status lcomm_progress(lcomm_comm *comm) {
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_progress: no communicator was given");
  }
  lcomm_status status = lcomm_enter(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  status = progress(comm);
  lcomm_siblings_move(comm);
  lcomm_leave(comm);
  return status;
}
