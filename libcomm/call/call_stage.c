/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Data of collective calls: from the caller's buffer to the vector of the run,
 * which is the receive buffer itself wherever it can be, and back. */

#include <string.h>

#include "libcomm/call/call.h"
#include "libcomm/engine/typed_copy.h"

/* ---------------------------------------------------------------- bringing in */

static void bring_part(const lcomm_comm *comm, const lcomm_plan *plan, const lcomm_call *call) {
  lcomm_span part = lcomm_plan_part(plan, comm->rank);
  if (part.count == 0) {
    return;
  }
  uint8_t *place = (uint8_t *)call->receive + part.first * plan->element_size;
  if (place != call->send) {
    memcpy(place, call->send, part.count * plan->element_size);
  }
}

static const void *bring_input(const lcomm_run *run, const lcomm_call *call) {
  const lcomm_plan *plan = run->plan;
  if (!plan->in_place || plan->input_count == 0) {
    return call->send;
  }
  memcpy(run->own_input, call->send, plan->input_count * plan->element_size);
  return run->own_input;
}

/* A copy of a call, where there was one at all. */
static void trace_copy(const lcomm_run *run, double begin_s, const void *from, const void *to) {
  if (from != to) {
    lcomm_copy_trace(run->comm, begin_s, run->plan->count * run->plan->element_size, NULL);
  }
}

static void bring_sum_in(const lcomm_run *run, const lcomm_call *call, void *vector) {
  const lcomm_plan *plan = run->plan;
  double begin_s = lcomm_copy_begin(run->comm);
  lcomm_vector_load(run->comm, call->send, plan->dtype, plan->vector_count, call->before, vector);
  if (run->comm->size == 1) { /* one rank alone makes no sum that `after` would go with */
    lcomm_vector_scale(run->comm, vector, plan->dtype, plan->vector_count, call->after);
  }
  trace_copy(run, begin_s, call->send, vector);
}

void lcomm_call_stage_in(lcomm_comm *comm, const lcomm_run *run, const lcomm_call *call,
                         lcomm_operation_data *data) {
  const lcomm_plan *plan = run->plan;
  *data = (lcomm_operation_data){.vector = run->own_vector ? run->own_vector : call->receive,
                                 .op = call->request.op,
                                 .before = call->before,
                                 .after = call->after};
  switch (plan->collective) {
  case LCOMM_COLLECTIVE_ALLREDUCE:
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
  case LCOMM_COLLECTIVE_REDUCE_SCATTERV:
    bring_sum_in(run, call, data->vector);
    break;
  case LCOMM_COLLECTIVE_ALLGATHER:
  case LCOMM_COLLECTIVE_ALLGATHERV:
    bring_part(comm, plan, call);
    break;
  case LCOMM_COLLECTIVE_ALLTOALL:
    data->input = bring_input(run, call);
    break;
  default: /* a broadcast has one buffer, a barrier none */
    break;
  }
}

/* -------------------------------------------------------------- bringing out */

/* The result of a sum, `count` elements from `result` on, to the caller. */
static void stage_out(const lcomm_run *run, lcomm_op op, const void *result, uint64_t count,
                      void *receive) {
  const lcomm_plan *plan = run->plan;
  double begin_s = lcomm_copy_begin(run->comm);
  lcomm_vector_store(run->comm, result, plan->dtype, count, receive);
  if (op == LCOMM_AVG) {
    lcomm_vector_average(run->comm, receive, plan->dtype, count);
  }
  trace_copy(run, begin_s, result, receive);
}

static void look_through(lcomm_operation *operation, const void *result, uint64_t count) {
  const lcomm_run *run = operation->run;
  if (lcomm_plan_is_lossy(run->plan)) {
    operation->not_finite = lcomm_vector_not_finite(run->comm, result, run->plan->dtype, count);
    run->comm->stats.not_finite += operation->not_finite;
  }
}

static void amend(lcomm_operation *operation, void *result) {
  if (operation->amend) {
    operation->amend(operation, result);
  }
}

static void end_allreduce(lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  if (operation->status == LCOMM_OK) {
    amend(operation, run->vector);
    look_through(operation, run->vector, run->plan->count);
    stage_out(run, operation->op, run->vector, run->plan->count, operation->receive);
  }
}

static void end_reduce_scatter(lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  lcomm_span part = lcomm_plan_part(run->plan, run->comm->rank);
  if (operation->status != LCOMM_OK || part.count == 0) {
    return;
  }
  uint8_t *mine = run->own_vector + part.first * run->plan->element_size;
  amend(operation, mine);
  look_through(operation, mine, part.count);
  stage_out(run, operation->op, mine, part.count, operation->receive);
}

lcomm_operation_end lcomm_call_end(lcomm_collective collective) {
  if (collective == LCOMM_COLLECTIVE_ALLREDUCE) {
    return end_allreduce;
  }
  return lcomm_collective_scatters(collective) ? end_reduce_scatter : NULL;
}

void lcomm_call_finish(const lcomm_run *run, const lcomm_call *call) {
  if (run->plan->collective == LCOMM_COLLECTIVE_ALLREDUCE) {
    /* exact: in its place */
    stage_out(run, call->request.op, call->receive, run->plan->count, call->receive);
  }
}
