/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Operations: start, progress, end. */

#include "libcomm/engine/operation.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/flow.h"
#include "libcomm/engine/pair.h"
#include "libcomm/engine/recording.h"

/* ------------------------------------------------------------ life cycle */

static lcomm_operation *take(lcomm_comm *comm) {
  lcomm_operation *operation = comm->operations.idle;
  if (operation) {
    comm->operations.idle = operation->next_idle;
    return operation;
  }
  operation = calloc(1, sizeof *operation);
  if (operation) {
    operation->next_made = comm->operations.made;
    comm->operations.made = operation;
  }
  return operation;
}

/* Written by whoever has the turn; no exchange is needed. */
static void count_in_flight(lcomm_comm *comm, int change) {
  unsigned now = atomic_load_explicit(&comm->operations.in_flight, memory_order_relaxed);
  atomic_store_explicit(&comm->operations.in_flight, now + (unsigned)change, memory_order_relaxed);
}

static void append(lcomm_comm *comm, lcomm_operation *operation) {
  operation->previous = comm->operations.last;
  operation->next = NULL;
  if (comm->operations.last) {
    comm->operations.last->next = operation;
  } else {
    comm->operations.first = operation;
  }
  comm->operations.last = operation;
  count_in_flight(comm, 1);
}

static void detach(lcomm_comm *comm, lcomm_operation *operation) {
  if (operation->previous) {
    operation->previous->next = operation->next;
  } else {
    comm->operations.first = operation->next;
  }
  if (operation->next) {
    operation->next->previous = operation->previous;
  } else {
    comm->operations.last = operation->previous;
  }
  count_in_flight(comm, -1);
}

/* For the trace. */
static void begin_step(lcomm_comm *comm) {
  if (comm->deferred.counts_steps) {
    lcomm_trace_step(comm->observers.trace, comm->deferred.step);
  } else {
    lcomm_trace_next_step(comm->observers.trace);
  }
}

static lcomm_status start(lcomm_comm *comm, lcomm_run *run, const lcomm_operation_data *data,
                          uint32_t sequence, lcomm_operation **started) {
  lcomm_operation *operation = take(comm);
  if (!operation) { /* peers wait for what cannot go on */
    run->fastpath.is_sent = false;
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for an operation");
  }
  lcomm_operation *made = operation->next_made;
  memset(operation, 0, sizeof *operation);
  operation->next_made = made;
  operation->run = run;
  operation->awaited = &operation->over;
  operation->op = data->op;
  operation->sequence = sequence;
  operation->begun_s = operation->moved_s = lcomm_clock_s();
  if (comm->observers.trace) {
    begin_step(comm);
  }
  lcomm_run_start(run, data, operation->sequence);
  lcomm_flow_begin(run);
  lcomm_summary_begin(&comm->observers.summary, operation->begun_s);
  append(comm, operation);
  *started = operation;
  return LCOMM_OK;
}

lcomm_status lcomm_operation_start(lcomm_comm *comm, lcomm_run *run,
                                   const lcomm_operation_data *data, lcomm_operation **started) {
  uint32_t next = comm->operations.next[lcomm_op_kind_sequence_space(data->op_kind)];
  LCOMM_TRY(start(comm, run, data, next, started));
  return lcomm_fingerprint_begin(run);
}

lcomm_status lcomm_operation_replay(lcomm_comm *comm, lcomm_run *run, uint32_t number) {
  lcomm_operation *operation = NULL;
  LCOMM_TRY(start(comm, run, &run->data, number, &operation));
  operation->streamed = operation->detached = true;
  return LCOMM_OK;
}

void lcomm_operation_release(lcomm_comm *comm, lcomm_operation *operation) {
  operation->run = NULL; /* whose it was, it is again */
  operation->next_idle = comm->operations.idle;
  comm->operations.idle = operation;
}

lcomm_summary_row *lcomm_operation_row(lcomm_comm *comm, const lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  return lcomm_summary_find(&comm->observers.summary, run->plan->collective, run->terms.op_kind);
}

/* What its sum would have sent without a codec: an element of both factors together stands for some
 * of the matrices. */
static uint64_t exact_bytes(const lcomm_run *run, lcomm_link link) {
  const lcomm_trace_factor *factor = &run->data.factor;
  uint64_t bytes = run->stats.exact_bytes[link];
  if (factor->sum == 0) {
    return bytes;
  }
  double values = (double)factor->rank * (double)(factor->rows + factor->columns);
  return (uint64_t)((double)bytes * (double)factor->elements / values);
}

/* Add the operation's statistics to those of the communicator. */
static void account(lcomm_comm *comm, const lcomm_operation *operation, double now_s) {
  const lcomm_run *run = operation->run;
  const lcomm_plan *plan = run->plan;
  lcomm_stats *all = &comm->stats;
  lcomm_summary_cost cost = {.data_bytes = plan->count * lcomm_dtype_size(plan->dtype),
                             .encode_s = run->stats.encode_s,
                             .decode_s = run->stats.decode_s,
                             .wire_s = run->stats.wire_s,
                             .picked = run->stats.topk_picked,
                             .waited = run->stats.topk_waited,
                             .codec = plan->stages[LCOMM_STAGE_NET].format.codec->id};
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    cost.sent_bytes[link] = run->stats.sent_bytes[link];
    cost.exact_bytes[link] = exact_bytes(run, (lcomm_link)link);
    all->sent_bytes[link] += run->stats.sent_bytes[link];
    all->exact_bytes[link] += cost.exact_bytes[link];
    all->received_bytes[link] += run->stats.received_bytes[link];
    all->sent_messages[link] += run->stats.sent_messages[link];
  }
  all->encode_s += cost.encode_s;
  all->decode_s += cost.decode_s;
  all->wire_s += cost.wire_s;
  all->topk_picked += cost.picked;
  all->topk_waited += cost.waited;
  if (operation->status == LCOMM_OK) {
    all->operations++;
    lcomm_summary_add(&comm->observers.summary, lcomm_operation_row(comm, operation), &cost,
                      operation->begun_s, now_s);
  } else {
    lcomm_summary_drop(&comm->observers.summary, now_s);
  }
}

static void trace_operation(const lcomm_comm *comm, const lcomm_operation *operation,
                            double now_s) {
  const lcomm_plan *plan = operation->run->plan;
  lcomm_trace_event event = {.kind = LCOMM_TRACE_OPERATION,
                             .begin_s = operation->begun_s,
                             .end_s = now_s,
                             .operation = lcomm_collective_name(plan->collective),
                             .sequence = operation->sequence,
                             .peer = -1,
                             .bytes = plan->count * lcomm_dtype_size(plan->dtype),
                             .name = operation->run->data.name,
                             .factor = operation->run->data.factor};
  lcomm_trace_add(comm->observers.trace, &event);
}

static void finish(lcomm_comm *comm, lcomm_operation *operation, lcomm_status status) {
  double now_s = lcomm_clock_s();
  lcomm_run *run = operation->run; /* who is told of the end may take it */
  bool is_replay = run->recording != NULL;
  detach(comm, operation);
  run->fastpath.is_sent = false;
  operation->over = true;
  operation->moved_s = now_s;
  operation->status = status;
  operation->not_finite = status == LCOMM_OK ? run->not_finite : 0;
  comm->stats.not_finite += operation->not_finite;
  account(comm, operation, now_s);
  if (comm->observers.trace) {
    trace_operation(comm, operation, now_s);
  }
  if (operation->end) {
    operation->end(operation);
  }
  if (is_replay) {
    lcomm_replay_over(run, status);
    lcomm_operation_release(comm, operation);
  } else if (operation->detached) {
    lcomm_run_keep(comm, run);
    lcomm_operation_release(comm, operation);
  }
}

void lcomm_operations_cancel(lcomm_comm *comm, lcomm_status status) {
  bool any = comm->operations.first != NULL;
  while (comm->operations.first) {
    lcomm_operation *operation = comm->operations.first;
    lcomm_run_cancel(operation->run);
    finish(comm, operation, status);
  }
  lcomm_pairs_cancel(comm);
  lcomm_recordings_close(comm);
  if (comm->observers.trace && any) {
    lcomm_trace_flush(comm->observers.trace);
  }
}

static lcomm_status move_one(lcomm_comm *comm, lcomm_operation *operation, lcomm_flow_round *round,
                             bool *moved) {
  bool here = false;
  lcomm_run *run = operation->run;
  LCOMM_TRY(lcomm_flow_admit(round, run));
  if (run->flow.admitted && !lcomm_run_over(run)) {
    LCOMM_TRY(lcomm_run_progress(run, &here));
  }
  *moved |= here;
  if (run->flow.admitted && lcomm_run_over(run)) {
    LCOMM_TRY(lcomm_flow_end(run));
    *moved = true;
    finish(comm, operation, LCOMM_OK);
  } else if (here) {
    operation->moved_s = lcomm_clock_s();
  }
  return LCOMM_OK;
}

void lcomm_fingerprints_send(lcomm_comm *comm) {
  double now_s = lcomm_clock_s();
  for (lcomm_operation *operation = comm->operations.first; operation;
       operation = operation->next) {
    lcomm_fingerprint_send(comm, operation, now_s);
  }
}

/* A sleep has run to its limit. A message that is done before anything new was received was done
 * while this rank slept: its wake-up was missed. */
static lcomm_status look_for_missed(lcomm_comm *comm, bool *moved) {
  bool missed = false;
  comm->waiting.overslept = false;
  for (lcomm_operation *it = comm->operations.first; it; it = it->next) {
    lcomm_run_make_all_due(it->run);
    LCOMM_TRY(lcomm_run_poll(it->run, &missed));
  }
  comm->stats.missed_wakeups += missed;
  comm->observers.summary.missed_wakeups += missed;
  *moved |= missed;
  return LCOMM_OK;
}

static lcomm_status move_all(lcomm_comm *comm, bool *moved) {
  lcomm_flow_round round = {{0}};
  LCOMM_TRY(comm->waiting.overslept ? look_for_missed(comm, moved) : LCOMM_OK);
  if (lcomm_comm_is_busy(comm) || lcomm_comm_has_recordings(comm)) {
    lcomm_links_progress(&comm->links);
    lcomm_messages_make_due(comm);
  }
  LCOMM_TRY(lcomm_control_receive(comm));
  LCOMM_TRY(lcomm_replays_move(comm, moved));
  LCOMM_TRY(comm->flow.due > 0 ? lcomm_flow_retry(comm) : LCOMM_OK);
  LCOMM_TRY(comm->pairs ? lcomm_pairs_move(comm, moved) : LCOMM_OK);
  for (lcomm_operation *it = comm->operations.first, *next = NULL; it; it = next) {
    next = it->next;
    LCOMM_TRY(move_one(comm, it, &round, moved));
  }
  return LCOMM_OK;
}

lcomm_status lcomm_operations_move(lcomm_comm *comm, bool *moved) {
  enum { MOVES_BETWEEN_LOOKS = 256 };
  bool here = false;
  lcomm_status status = move_all(comm, &here);
  if (status != LCOMM_OK) {
    lcomm_operations_cancel(comm, status);
  } else if (!here && comm->operations.first &&
             ++comm->waiting.quiet_moves % MOVES_BETWEEN_LOOKS == 0) {
    lcomm_fingerprints_send(comm);
  }
  if (comm->observers.trace) {
    lcomm_trace_tick(comm->observers.trace);
  }
  *moved |= here;
  return status;
}
