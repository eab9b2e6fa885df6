/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/call/call.h"

#include "libcomm/base/clock.h"
#include "libcomm/call/call_watch.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/peer_memory.h"
#include "libcomm/engine/tape.h"

lcomm_call lcomm_call_of(lcomm_collective collective, const void *send, void *receive,
                         uint64_t count, lcomm_dtype dtype, lcomm_op op) {
  return (lcomm_call){
      .request = {.collective = collective, .count = count, .dtype = dtype, .op = op},
      .send = {.data = (void *)(uintptr_t)send, .dtype = dtype},
      .receive = {.data = receive, .dtype = dtype},
      .before = 1,
      .after = 1};
}

static lcomm_status find_run(lcomm_comm *comm, const lcomm_call *call, lcomm_run **run) {
  return call->keeper ? call->keeper->run(call->owner, call, run)
                      : lcomm_run_find(comm, &call->request, run);
}

static void release_run(lcomm_comm *comm, const lcomm_call *call, lcomm_run *run) {
  if (!call->keeper) {
    lcomm_run_keep(comm, run);
  }
}

/* Stage in, and try the small-message fast path: *over tells whether the result is with the caller,
 * before anything was in flight. */
static lcomm_status begin_run(lcomm_run *run, const lcomm_call *call, bool *over) {
  LCOMM_TRY(lcomm_call_stage_in(run, call));
  if (!call->waits || !run->fastpath.sends) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_fastpath_try(run, over));
  return *over && run->data.stage_out ? run->data.stage_out(run) : LCOMM_OK;
}

static lcomm_status start_run(lcomm_comm *comm, lcomm_run *run, const lcomm_call *call,
                              lcomm_request *handle) {
  lcomm_operation *operation = NULL;
  bool over = false;
  lcomm_call_describe(run, call);
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = begin_run(run, call, &over);
  lcomm_run_leave(run, entry);
  if (over) {
    *handle = (lcomm_request){.state = LCOMM_REQUEST_OVER, .status = status};
  } else if (status == LCOMM_OK) {
    status = lcomm_operation_start(comm, run, &run->data, &operation);
  }
  if (!operation) {
    release_run(comm, call, run);
    return status;
  }
  *handle = (lcomm_request){.internal = operation};
  lcomm_call_watch_begin(comm, operation);
  if (call->keeper) {
    call->keeper->begin(call->owner, operation);
    entry = lcomm_run_enter(run);
    (void)call->keeper->amend(call->owner, run);
    lcomm_run_leave(run, entry);
  }
  bool moved = false;
  lcomm_operations_move(comm, &moved); /* a failure is the request's to report */
  lcomm_call_watch_return(operation);
  return LCOMM_OK;
}

/* ----------------------------------------------------- played on a device */

/* All that the operation does on its device, into the lanes. Other threads may have the
 * communicator's turn meanwhile (lcomm_run_enter). */
lcomm_status lcomm_call_play(lcomm_run *run, const lcomm_call *call) {
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = lcomm_call_stage_in(run, call);
  if (status == LCOMM_OK && call->keeper) {
    status = call->keeper->amend(call->owner, run);
  }
  if (status == LCOMM_OK) {
    status = lcomm_tape_play(run);
  }
  if (status == LCOMM_OK && call->on_stream) {
    status = lcomm_tape_join(run, call->stream);
  }
  lcomm_run_leave(run, entry);
  return status;
}

/* Its messages may move from the start, and a thread moves them, of a blocking call, too: while it
 * is played, another thread of the program may free memory, which waits for what is in the lanes,
 * and the player for that thread. Nobody has a request of a call on a stream, but who keeps its
 * run. */
static lcomm_status start_played(lcomm_comm *comm, lcomm_run *run, const lcomm_call *call,
                                 lcomm_request *handle) {
  lcomm_operation *operation = NULL;
  lcomm_peer_memory_open(run);
  bool goes_alone = (comm->size == 1 || lcomm_proxy_start(comm)) && call->on_stream;
  lcomm_call_describe(run, call);
  lcomm_status status = lcomm_operation_start(comm, run, &run->data, &operation);
  if (!operation) {
    release_run(comm, call, run);
    return status;
  }
  operation->streamed = goes_alone;
  operation->detached = goes_alone && !call->keeper;
  lcomm_call_watch_begin(comm, operation);
  *handle = (lcomm_request){.internal = operation->detached ? NULL : operation};
  if (call->keeper) {
    call->keeper->begin(call->owner, operation);
  }
  lcomm_tape_rewind(run);
  status = lcomm_call_play(run, call); /* a failure is the request's to report */
  bool moved = false;
  lcomm_operations_move(comm, &moved);
  return goes_alone ? status : LCOMM_OK;
}

/* ------------------------------------------------------------------ starting */

/* Calls of the program, with a residual or without; not those that flush one. */
static bool is_watched(const lcomm_comm *comm, const lcomm_call *call) {
  return comm->runs.watch &&
         (call->op_kind == LCOMM_OP_KIND_CALL || call->op_kind == LCOMM_OP_KIND_EF);
}

static lcomm_status start_apart(const lcomm_call *call, lcomm_run *run, lcomm_request *handle) {
  lcomm_call_sum *sum = NULL;
  LCOMM_TRY(call->keeper->start(call->owner, call, run, &sum));
  *handle = (lcomm_request){.internal = sum, .state = LCOMM_REQUEST_SUM};
  return LCOMM_OK;
}

static lcomm_status start_found(lcomm_comm *comm, lcomm_call *call, lcomm_request *handle) {
  lcomm_run *run = NULL;
  LCOMM_TRY(find_run(comm, call, &run));
  if (call->keeper && call->keeper->is_apart(call->owner, call)) {
    return start_apart(call, run, handle);
  }
  if (is_watched(comm, call)) {
    call->watched_hash = run->plan->automatic.allowed ? run->plan->hash : 0;
    lcomm_call_watch_start(comm, call);
  }
  return run->tape ? start_played(comm, run, call, handle) : start_run(comm, run, call, handle);
}

static lcomm_status start_on_device(lcomm_comm *comm, lcomm_call *call, lcomm_request *handle) {
  lcomm_device_turn_enter(comm);
  if (comm->runs.played == 0) { /* else they are freed with a run that is made */
    lcomm_runs_free_spent(comm);
  }
  lcomm_status status = start_found(comm, call, handle);
  lcomm_device_turn_leave(comm);
  return status;
}

static bool is_on_device(const lcomm_call *call) {
  return lcomm_memory_is_on_device(call->request.location);
}

lcomm_status lcomm_call_start(lcomm_comm *comm, lcomm_call *call, lcomm_request *handle) {
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given",
                              lcomm_collective_name(call->request.collective));
  }
  LCOMM_TRY(lcomm_enter(comm));
  if (!call->waits) {
    lcomm_expect_overlap(comm);
  }
  lcomm_status status = lcomm_call_check(comm, call, handle);
  if (status == LCOMM_OK && is_on_device(call) && call->keeper) {
    status = call->keeper->to_host(call->owner, call);
  }
  if (status == LCOMM_OK) {
    status = (is_on_device(call) ? start_on_device : start_found)(comm, call, handle);
  }
  lcomm_exit(comm);
  return status;
}

static lcomm_status make(lcomm_comm *comm, lcomm_call *call) {
  lcomm_request request = {0};
  call->waits = true;
  lcomm_status status = lcomm_call_start(comm, call, &request);
  bool in_flight = request.internal != NULL; /* else it is over, and well, or did not start */
  return in_flight ? lcomm_wait(comm, &request) : status;
}

static lcomm_status make_watched(lcomm_comm *comm, lcomm_call *call) {
  double begun_s = lcomm_clock_s();
  LCOMM_TRY(make(comm, call));
  return lcomm_call_watch_over(comm, call, lcomm_clock_s() - begun_s);
}

lcomm_status lcomm_call_make(lcomm_comm *comm, lcomm_call *call) {
  return comm && is_watched(comm, call) ? make_watched(comm, call) : make(comm, call);
}

lcomm_status lcomm_call_allgather_bytes(lcomm_comm *comm, const void *send, void *receive,
                                        size_t size) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLGATHER, send, receive, size / sizeof(float),
                                  LCOMM_FLOAT32, LCOMM_SUM);
  return lcomm_call_make(comm, &call);
}

lcomm_status lcomm_call_broadcast_bytes(lcomm_comm *comm, void *bytes, size_t size, int root) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, bytes, bytes, size / sizeof(float),
                                  LCOMM_FLOAT32, LCOMM_SUM);
  call.request.root = root;
  return lcomm_call_make(comm, &call);
}

lcomm_status lcomm_call_barrier(lcomm_comm *comm) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_BARRIER, NULL, NULL, 0, LCOMM_FLOAT32, LCOMM_SUM);
  return lcomm_call_make(comm, &call);
}
