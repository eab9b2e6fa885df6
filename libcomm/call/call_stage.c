/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Data of collective calls: from the caller's buffer to the vector of the run,
 * which is the receive buffer itself wherever it can be, and back. */

#include <stdlib.h>

#include "libcomm/call/call.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/run_values.h"
#include "libcomm/observe/capture.h"

/* ---------------------------------------------------------------- staging in */

/* This rank's part of an all-gather. */
static lcomm_status stage_part(lcomm_run *run, const lcomm_call *call) {
  const lcomm_plan *plan = run->plan;
  lcomm_span part = lcomm_plan_part(plan, run->comm->rank);
  if (part.count == 0) {
    return LCOMM_OK;
  }
  uint8_t *place = (uint8_t *)call->receive.data + part.first * plan->element_size;
  return run->backend->vectors->copy(run, place, call->send.data, part.count * plan->element_size);
}

/* What an all-to-all sends; in place it is copied out of the way. */
static bool moves_input(const lcomm_plan *plan) {
  return plan->in_place && plan->input_count > 0;
}

static lcomm_status stage_input(lcomm_run *run, const lcomm_call *call) {
  const lcomm_plan *plan = run->plan;
  return moves_input(plan)
             ? run->backend->vectors->copy(run, run->memory.own_input, call->send.data,
                                           plan->input_count * plan->element_size)
             : LCOMM_OK;
}

/* A copy of a call, where there was one at all. */
static void trace_copy(const lcomm_run *run, double begin_s, const void *from, const void *to) {
  if (from != to) {
    lcomm_exec_trace_copy(run, begin_s, run->plan->count * run->plan->element_size, NULL);
  }
}

static lcomm_status stage_sum(lcomm_run *run, const lcomm_call *call) {
  const lcomm_plan *plan = run->plan;
  void *vector = run->data.vector;
  double begin_s = lcomm_exec_copy_begin(run);
  LCOMM_TRY(run->backend->vectors->load(run, &call->send, call->before, vector));
  if (run->comm->size == 1) { /* one rank alone makes no sum that `after` would go with */
    lcomm_buffer sum = {vector, plan->vector_count, lcomm_sum_dtype(plan->dtype), plan->location};
    LCOMM_TRY(lcomm_run_scale(run, &sum, call->after));
  }
  trace_copy(run, begin_s, call->send.data, vector);
  return LCOMM_OK;
}

static lcomm_status stage_in(lcomm_run *run, const lcomm_call *call) {
  const lcomm_backend_queue *queue = run->backend->queue;
  if (queue && call->on_stream) { /* the buffers are ready when it has come here */
    LCOMM_TRY(queue->follow(run, call->stream));
  }
  switch (run->plan->collective) {
  case LCOMM_COLLECTIVE_ALLREDUCE:
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
  case LCOMM_COLLECTIVE_REDUCE_SCATTERV:
    return stage_sum(run, call);
  case LCOMM_COLLECTIVE_ALLGATHER:
  case LCOMM_COLLECTIVE_ALLGATHERV:
    return stage_part(run, call);
  case LCOMM_COLLECTIVE_ALLTOALL:
    return stage_input(run, call);
  default: /* a broadcast has one buffer, a barrier none */
    return LCOMM_OK;
  }
}

static bool is_sum(lcomm_collective collective) {
  return collective == LCOMM_COLLECTIVE_ALLREDUCE || lcomm_collective_scatters(collective);
}

/* As all ranks know it: 0, which is no factor of theirs, where each has its own. */
static double before_of(const lcomm_call *call) {
  return call->weighted ? 0 : call->before;
}

void lcomm_call_describe(lcomm_run *run, const lcomm_call *call) {
  lcomm_comm *comm = run->comm;
  bool sums = is_sum(run->plan->collective), is_plain_call = call->op_kind == LCOMM_OP_KIND_CALL;
  run->data = (lcomm_operation_data){
      .vector = run->memory.own_vector ? run->memory.own_vector : call->receive.data,
      .op = call->request.op,
      .before = before_of(call),
      .after = call->after,
      .op_kind = is_plain_call ? comm->operations.inside : call->op_kind,
      .residual = call->residual_number,
      .on_stream = call->on_stream,
      .stage_out = sums ? lcomm_call_stage_out : NULL,
      .receive = call->receive};
  if (run->plan->collective == LCOMM_COLLECTIVE_ALLTOALL) {
    run->data.input = moves_input(run->plan) ? run->memory.own_input : call->send.data;
  }
}

static lcomm_status capture(lcomm_run *run) {
  lcomm_run_values values = {
      .run = run, .vector = run->data.vector, .size = run->plan->vector_count * sizeof(float)};
  lcomm_capture_call(run->comm->observers.capture, run->plan, run->comm->settings.policy.min_bytes,
                     lcomm_run_values_get, &values);
  free(values.copy);
  return values.status;
}

lcomm_status lcomm_call_stage_in(lcomm_run *run, const lcomm_call *call) {
  LCOMM_TRY(stage_in(run, call));
  return run->comm->observers.capture && lcomm_run_has_values(run) ? capture(run) : LCOMM_OK;
}

/* --------------------------------------------------------------- staging out */

/* Are NaN and Inf in the result of a sum counted? Where a codec was at work, and where a call with
 * a residual is undone for them. */
static bool counts_not_finite(const lcomm_run *run) {
  return run->plan->lossy ||
         (run->terms.residual > 0 && run->comm->settings.policy.discard_not_finite);
}

lcomm_status lcomm_call_stage_out(lcomm_run *run) {
  const lcomm_plan *plan = run->plan;
  const lcomm_backend_vectors *vectors = run->backend->vectors;
  const lcomm_buffer *receive = &run->data.receive;
  bool scatters = lcomm_collective_scatters(plan->collective);
  if (receive->count == 0) {
    return LCOMM_OK;
  }
  uint64_t first = scatters ? lcomm_plan_part(plan, run->comm->rank).first : 0;
  lcomm_buffer result = *receive;
  result.data = lcomm_run_at(run, first);
  double begin_s = lcomm_exec_copy_begin(run);
  LCOMM_TRY(counts_not_finite(run) ? vectors->count_not_finite(run, &result) : LCOMM_OK);
  LCOMM_TRY(vectors->store(run, result.data, receive));
  LCOMM_TRY(run->data.op == LCOMM_AVG ? vectors->average(run, receive) : LCOMM_OK);
  trace_copy(run, begin_s, result.data, receive->data);
  return LCOMM_OK;
}
