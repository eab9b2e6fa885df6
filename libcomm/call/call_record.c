/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/call/call_record.h"

#include <stdlib.h>

#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/gates.h"
#include "libcomm/engine/recording.h"

/* Can a rank put the call into a graph? */
typedef enum verdict { CAN, TAKES_ANOTHER_WAY, TOO_MANY, VERDICTS } verdict;

typedef struct contribution {
  uint32_t verdict;
  uint32_t key;      /* of the call */
  uint32_t may_stay; /* not 0: payloads on devices between ranks */
} contribution;

static const char *const reasons[VERDICTS] = {
    [TAKES_ANOTHER_WAY] =
        "its messages need a thread of ours, and MPI lets none send; start MPI with "
        "MPI_THREAD_MULTIPLE",
    [TOO_MANY] = "as many as a communicator can have were captured before; make another one",
};

/* ------------------------------------------------------------------ agreement */

/* Then ranks agree on where, before the first replay. */
static bool may_stay(const lcomm_comm *comm, const lcomm_plan *plan) {
  bool any = false;
  for (uint32_t i = 0; i < plan->schedule.step_count && !any; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    any = lcomm_step_is_message(step) && lcomm_device_may_stay(comm, step->peer);
  }
  return any;
}

static verdict evaluate(lcomm_comm *comm, const lcomm_plan *plan) {
  if (comm->recordings.channels == LCOMM_RECORDINGS_MAX) {
    return TOO_MANY;
  }
  bool plays = lcomm_backend_of(comm, plan) == &lcomm_backend_taped;
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

static lcomm_status exchange(lcomm_comm *comm, const void *mine, void *all, size_t size) {
  lcomm_op_kind before = comm->operations.inside;
  comm->operations.inside = LCOMM_OP_KIND_CAPTURE;
  lcomm_status status = lcomm_call_allgather_bytes(comm, mine, all, size);
  comm->operations.inside = before;
  return status;
}

static bool any_may_stay(const lcomm_comm *comm, const contribution *all) {
  bool any = false;
  for (int rank = 0; rank < comm->size; rank++) {
    any |= all[rank].may_stay != 0;
  }
  return any;
}

static lcomm_status agree(lcomm_comm *comm, const lcomm_call *call, const lcomm_plan *plan,
                          bool *has_gates) {
  contribution mine = {.verdict = (uint32_t)evaluate(comm, plan),
                       .key = (uint32_t)(plan->hash ^ plan->hash >> 32) * 31 +
                              (uint32_t)call->request.op,
                       .may_stay = may_stay(comm, plan)};
  contribution *all = calloc((size_t)comm->size, sizeof *all);
  if (!all) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for a call that is captured");
  }
  lcomm_status status = exchange(comm, &mine, all, sizeof(mine));
  const char *name = lcomm_collective_name(call->request.collective);
  if (status == LCOMM_OK) {
    *has_gates = any_may_stay(comm, all);
    status = compare(comm, name, all);
  }
  free(all);
  return status;
}

/* ----------------------------------------------------------------------- gates */

/* Until all ranks have come to it. */
static lcomm_status meet(lcomm_comm *comm, lcomm_gate_card *cards) {
  uint32_t here = 1;
  return exchange(comm, &here, cards, sizeof(here)); /* what was in them was read */
}

static lcomm_status make_card(lcomm_run *run, lcomm_gate_card *card) {
  lcomm_device_turn_enter(run->comm);
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = lcomm_gates_make(run, &run->recording->gates, card);
  lcomm_run_leave(run, entry);
  lcomm_device_turn_leave(run->comm);
  return status == LCOMM_OK
             ? status
             : lcomm_fail(run->comm, status, "no memory for a call that is captured into a graph");
}

static void open_all(lcomm_run *run, const lcomm_gate_card *cards) {
  lcomm_device_turn_enter(run->comm);
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_gates_open(run, run->recording->gates, cards);
  lcomm_run_leave(run, entry);
  lcomm_device_turn_leave(run->comm);
}

/* Nobody waits for another rank in the device's turn: calls of other threads may need it, and that
 * rank them. */
static lcomm_status agree_on_gates(lcomm_run *run, lcomm_gate_card *cards) {
  lcomm_gate_card mine;
  lcomm_gates **gates = &run->recording->gates;
  LCOMM_TRY(make_card(run, &mine));
  LCOMM_TRY(exchange(run->comm, &mine, cards, sizeof(mine)));
  open_all(run, cards);
  LCOMM_TRY(meet(run->comm, cards));
  lcomm_gates_commit(run, *gates);
  LCOMM_TRY(meet(run->comm, cards));
  lcomm_gates_join(run, *gates);
  return LCOMM_OK;
}

static lcomm_status make_gates(lcomm_comm *comm, lcomm_recording *recording) {
  lcomm_gate_card *cards = calloc((size_t)comm->size, sizeof *cards);
  lcomm_status status =
      cards ? agree_on_gates(recording->run, cards)
            : lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for a call that is captured");
  free(cards);
  if (status != LCOMM_OK) {
    lcomm_recording_give_up(recording);
  }
  return status;
}

/* ------------------------------------------------------------------- capturing */

static lcomm_status create(lcomm_comm *comm, lcomm_plan *plan, lcomm_recording **recording) {
  lcomm_device_turn_enter(comm);
  lcomm_status status = lcomm_recording_create(comm, plan, recording);
  lcomm_device_turn_leave(comm);
  return status;
}

static lcomm_status play(const lcomm_call *call, lcomm_recording *recording, uint64_t capture) {
  lcomm_run *run = recording->run;
  LCOMM_TRY(lcomm_recording_complete(recording, call->stream, capture));
  lcomm_call_describe(run, call);
  run->data.op_kind = LCOMM_OP_KIND_REPLAY;
  lcomm_recording_rewind(recording);
  lcomm_status status = lcomm_call_play(run, call);
  lcomm_recording_open(recording);
  return status;
}

static lcomm_status capture_plan(lcomm_comm *comm, const lcomm_call *call, lcomm_plan *plan,
                                 bool has_gates, uint64_t capture) {
  lcomm_recording *recording = NULL;
  LCOMM_TRY(create(comm, plan, &recording));
  LCOMM_TRY(has_gates ? make_gates(comm, recording) : LCOMM_OK);
  lcomm_device_turn_enter(comm);
  lcomm_status status = play(call, recording, capture);
  lcomm_device_turn_leave(comm);
  return status;
}

static lcomm_status record(lcomm_comm *comm, lcomm_call *call, uint64_t capture) {
  lcomm_plan *plan = NULL;
  lcomm_request none = {0};
  bool has_gates = false;
  LCOMM_TRY(lcomm_call_check(comm, call, &none));
  if (!lcomm_memory_is_on_device(call->request.location)) {
    return LCOMM_OK; /* of nothing */
  }
  LCOMM_TRY(lcomm_plan_find(comm, &call->request, &plan));
  lcomm_status status = agree(comm, call, plan, &has_gates);
  if (status != LCOMM_OK) {
    lcomm_plan_destroy(plan);
    return status;
  }
  return capture_plan(comm, call, plan, has_gates, capture);
}

lcomm_status lcomm_call_record(lcomm_comm *comm, lcomm_call *call, uint64_t capture) {
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = record(comm, call, capture);
  lcomm_exit(comm);
  return status;
}
