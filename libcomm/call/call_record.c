/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/call/call_record.h"

#include <stdlib.h>

#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/recording.h"

/* Can a rank put the call into a graph? */
typedef enum verdict { CAN, TAKES_ANOTHER_WAY, TOO_MANY, VERDICTS } verdict;

typedef struct contribution {
  uint32_t verdict;
  uint32_t key; /* of the call */
} contribution;

static const char *const reasons[VERDICTS] = {
    [TAKES_ANOTHER_WAY] =
        "its payloads may stay on devices between ranks (LCOMM_CUDA_IPC=off sends all through the "
        "host), or MPI lets no thread of ours send (MPI_THREAD_MULTIPLE)",
    [TOO_MANY] = "as many as a communicator can have were captured before; make another one",
};

/* ------------------------------------------------------------------ agreement */

/* Where a payload stays is told message by message, by ranks that have agreed on it meanwhile. */
static bool may_stay(const lcomm_comm *comm, const lcomm_plan *plan) {
  bool any = false;
  for (uint32_t i = 0; i < plan->schedule.step_count && !any; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    any = lcomm_step_is_message(step) && lcomm_device_may_stay(comm, step->peer);
  }
  return any;
}

static verdict judge(lcomm_comm *comm, const lcomm_plan *plan) {
  if (comm->recordings.channels == LCOMM_RECORDINGS_MAX) {
    return TOO_MANY;
  }
  bool plays = lcomm_backend_of(comm, plan) == &lcomm_backend_taped && !may_stay(comm, plan);
  return plays && (comm->size == 1 || lcomm_proxy_start(comm)) ? CAN : TAKES_ANOTHER_WAY;
}

static lcomm_status compare(lcomm_comm *comm, const char *name, const contribution *all) {
  char who[96], other[96];
  for (int rank = 0; rank < comm->size; rank++) {
    if (all[rank].verdict != CAN) {
      const char *reason = reasons[all[rank].verdict < VERDICTS ? all[rank].verdict : TOO_MANY];
      return lcomm_refuse(
          comm, LCOMM_ERR_ARGUMENT,
          "%s on a stream that is captured into a graph: %s cannot put it there, so "
          "no rank does: %s",
          name, lcomm_comm_who(comm, rank, who, sizeof(who)), reason);
    }
  }
  for (int rank = 1; rank < comm->size; rank++) {
    if (all[rank].key != all[0].key) {
      return lcomm_refuse(comm, LCOMM_ERR_MISMATCH,
                          "ranks capture different calls: %s and %s do, here %s. All ranks must "
                          "capture the same calls in the same order, with the same count and type",
                          lcomm_comm_who(comm, 0, who, sizeof(who)),
                          lcomm_comm_who(comm, rank, other, sizeof(other)), name);
    }
  }
  return LCOMM_OK;
}

static lcomm_status exchange(lcomm_comm *comm, const contribution *mine, contribution *all) {
  lcomm_op_kind before = comm->operations.inside;
  comm->operations.inside = LCOMM_OP_KIND_CAPTURE;
  lcomm_status status = lcomm_call_allgather_bytes(comm, mine, all, sizeof *mine);
  comm->operations.inside = before;
  return status;
}

static lcomm_status agree(lcomm_comm *comm, const char *name, lcomm_op op, const lcomm_plan *plan) {
  contribution mine = {.verdict = (uint32_t)judge(comm, plan),
                       .key = (uint32_t)(plan->hash ^ plan->hash >> 32) * 31 + (uint32_t)op};
  contribution *all = calloc((size_t)comm->size, sizeof *all);
  if (!all) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for a call that is captured");
  }
  lcomm_status status = exchange(comm, &mine, all);
  status = status == LCOMM_OK ? compare(comm, name, all) : status;
  free(all);
  return status;
}

/* ------------------------------------------------------------------- capturing */

static lcomm_status capture_plan(lcomm_comm *comm, const lcomm_call *call, lcomm_plan *plan,
                                 uint64_t capture) {
  lcomm_recording *recording = NULL;
  LCOMM_TRY(lcomm_recording_create(comm, plan, call->stream, capture, &recording));
  lcomm_run *run = recording->run;
  lcomm_call_describe(run, call);
  run->data.op_kind = LCOMM_OP_KIND_REPLAY;
  lcomm_recording_rewind(recording);
  lcomm_status status = lcomm_call_play(run, call);
  lcomm_recording_open(recording);
  return status;
}

static lcomm_status record(lcomm_comm *comm, lcomm_call *call, uint64_t capture) {
  lcomm_plan *plan = NULL;
  lcomm_request none = {0};
  const char *name = lcomm_collective_name(call->request.collective);
  LCOMM_TRY(lcomm_call_check(comm, call, &none));
  if (!lcomm_memory_is_on_device(call->request.location)) {
    return LCOMM_OK; /* of nothing */
  }
  LCOMM_TRY(lcomm_plan_find(comm, &call->request, &plan));
  lcomm_status status = agree(comm, name, call->request.op, plan);
  if (status != LCOMM_OK) {
    lcomm_plan_destroy(plan);
    return status;
  }
  lcomm_device_turn_enter(comm);
  status = capture_plan(comm, call, plan, capture);
  lcomm_device_turn_leave(comm);
  return status;
}

lcomm_status lcomm_call_record(lcomm_comm *comm, lcomm_call *call, uint64_t capture) {
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = record(comm, call, capture);
  lcomm_leave(comm);
  return status;
}
