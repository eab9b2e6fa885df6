/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Requests: what outlives a call. */

#include "libcomm/base/clock.h"
#include "libcomm/call/call_watch.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/pair.h"
#include "libcomm/engine/siblings.h"

/* -------------------------------------------------------------- requests */

/* A request that is over remembers its result. */
static lcomm_status collect(lcomm_comm *comm, lcomm_request *handle) {
  lcomm_operation *operation = handle->internal;
  handle->not_finite = operation->not_finite;
  lcomm_call_watch_collect(comm, operation);
  if (operation->collected) {
    operation->collected(operation); /* may fail, too */
  } else {
    lcomm_run_keep(comm, operation->run);
  }
  lcomm_status status = operation->status;
  lcomm_operation_release(comm, operation);
  handle->internal = NULL;
  handle->state = LCOMM_REQUEST_OVER;
  handle->status = status;
  return status;
}

static lcomm_status remembered(lcomm_comm *comm, const lcomm_request *handle) {
  if (handle->state != LCOMM_REQUEST_OVER) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE, "a request was waited for that was never started");
  }
  return (lcomm_status)handle->status;
}

static bool is_over(const lcomm_operation *operation) {
  return operation->over && (!operation->beside || *operation->beside);
}

static bool is_message(const lcomm_request *request) {
  return request->internal && request->state == LCOMM_REQUEST_PAIR;
}

static lcomm_status collect_message(lcomm_comm *comm, lcomm_request *handle) {
  lcomm_status status = lcomm_pair_collect(comm, handle->internal);
  *handle = (lcomm_request){.state = LCOMM_REQUEST_OVER, .status = status};
  return status;
}

static lcomm_status wait_for_message(lcomm_comm *comm, lcomm_request *request) {
  lcomm_pair_message *message = request->internal;
  LCOMM_TRY(lcomm_check_owner(comm, lcomm_pair_owner(message), "lcomm_wait", "request"));
  lcomm_pair_await(comm, message);
  lcomm_operations_wait(comm, lcomm_pair_over(message)); /* its result is the message's */
  return collect_message(comm, request);
}

static bool is_apart(const lcomm_request *request) {
  return request->internal && request->state == LCOMM_REQUEST_SUM;
}

static lcomm_status collect_sum(lcomm_request *request, lcomm_status status) {
  lcomm_call_sum *sum = request->internal;
  uint64_t not_finite = 0;
  status = sum->end(sum, status, &not_finite);
  *request =
      (lcomm_request){.state = LCOMM_REQUEST_OVER, .status = status, .not_finite = not_finite};
  return status;
}

static lcomm_status wait_for_sum(lcomm_comm *comm, lcomm_request *request) {
  lcomm_call_sum *sum = request->internal;
  LCOMM_TRY(lcomm_check_owner(comm, sum->comm, "lcomm_wait", "request"));
  return collect_sum(request, sum->wait(sum));
}

static lcomm_status wait_for(lcomm_comm *comm, lcomm_request *request) {
  lcomm_operation *operation = request->internal;
  if (!operation) {
    return remembered(comm, request);
  }
  if (is_message(request)) {
    return wait_for_message(comm, request);
  }
  if (is_apart(request)) {
    return wait_for_sum(comm, request);
  }
  LCOMM_TRY(lcomm_check_owner(comm, operation->run->comm, "lcomm_wait", "request"));
  lcomm_call_watch_wait(operation);
  lcomm_operations_wait(comm, &operation->over); /* its result is the operation's */
  if (operation->beside) {
    lcomm_operations_wait(comm, operation->beside);
  }
  return collect(comm, request);
}

lcomm_status lcomm_wait(lcomm_comm *comm, lcomm_request *request) {
  if (!comm || !request) {
    return lcomm_refuse_null(comm, "lcomm_wait", "request");
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = wait_for(comm, request);
  lcomm_exit(comm);
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
  if (status == LCOMM_OK && comm->runs.reads_awaited > 0) {
    status = lcomm_device_read_awaited(comm);
  }
  return status;
}

/* Tests wait, too: others are moved meanwhile, messages in MPI as well, and the first
 * test that finds nothing begins the patience. */
static void keep_waiting(lcomm_comm *comm) {
  lcomm_siblings_move(comm);
  lcomm_external_progress(&comm->waiting.external, &comm->bootstrap, lcomm_clock_s());
  (void)lcomm_operations_check(comm); /* what fails ends operations and messages */
}

static lcomm_status test_message(lcomm_comm *comm, lcomm_request *request, int *done) {
  lcomm_pair_message *message = request->internal;
  LCOMM_TRY(lcomm_check_owner(comm, lcomm_pair_owner(message), "lcomm_test", "request"));
  const bool *over = lcomm_pair_over(message);
  if (!*over) {
    (void)move_on(comm); /* what fails ends the message */
  }
  if (!*over) {
    lcomm_pair_await(comm, message);
    keep_waiting(comm);
  }
  *done = *over;
  return *over ? collect_message(comm, request) : LCOMM_OK;
}

static lcomm_status test_sum(lcomm_comm *comm, lcomm_request *request, int *done) {
  lcomm_call_sum *sum = request->internal;
  bool is_here = false;
  LCOMM_TRY(lcomm_check_owner(comm, sum->comm, "lcomm_test", "request"));
  (void)move_on(comm); /* a failure is found by what follows */
  lcomm_status status = sum->test(sum, &is_here);
  if (status == LCOMM_OK && !is_here) {
    keep_waiting(comm);
  }
  *done = is_here || status != LCOMM_OK;
  return *done ? collect_sum(request, status) : LCOMM_OK;
}

static lcomm_status test(lcomm_comm *comm, lcomm_request *request, int *done) {
  lcomm_operation *operation = request->internal;
  if (!operation) {
    *done = 1;
    return remembered(comm, request);
  }
  if (is_message(request)) {
    return test_message(comm, request, done);
  }
  if (is_apart(request)) {
    return test_sum(comm, request, done);
  }
  LCOMM_TRY(lcomm_check_owner(comm, operation->run->comm, "lcomm_test", "request"));
  lcomm_call_watch_wait(operation);
  if (!is_over(operation)) {
    (void)move_on(comm); /* what fails ends the operation */
  }
  if (!is_over(operation)) {
    operation->tested_s = operation->tested_s > 0 ? operation->tested_s : lcomm_clock_s();
    keep_waiting(comm);
  }
  *done = is_over(operation);
  return *done ? collect(comm, request) : LCOMM_OK;
}

lcomm_status lcomm_test(lcomm_comm *comm, lcomm_request *request, int *done) {
  if (!comm || !request || !done) {
    return lcomm_refuse_null(comm, "lcomm_test", request ? "done" : "request");
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = test(comm, request, done);
  lcomm_exit(comm);
  return status;
}

uint64_t lcomm_request_not_finite(const lcomm_request *request) {
  return request && !request->internal && request->state == LCOMM_REQUEST_OVER ? request->not_finite
                                                                               : 0;
}

static lcomm_status progress(lcomm_comm *comm) {
  if (atomic_load(&comm->deferred.open) && atomic_load(&comm->errors.status) == LCOMM_OK) {
    LCOMM_TRY(comm->deferred.start(comm));
  }
  return move_on(comm);
}

lcomm_status lcomm_progress(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_progress"));
  lcomm_status status = progress(comm);
  lcomm_siblings_move(comm);
  lcomm_exit(comm);
  return status;
}
