/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Data of collective calls whose buffers are on a device: what call_stage.c does on the host, in
 * the stream of the run. */

#include "libcomm/call/call.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/typed_copy.h"

/* ----------------------------------------------------------- staging out */

static int stage_out(const lcomm_run *run, lcomm_op op, const void *result, uint64_t count,
                     void *receive) {
  const lcomm_plan *plan = run->plan;
  const lcomm_run_device *device = run->device;
  int error = 0;
  if (lcomm_plan_is_lossy(plan)) {
    error = lcomm_device_count_not_finite(device, result, plan->dtype, count);
  }
  error = error ? error : lcomm_device_store(device, result, plan->dtype, count, receive);
  if (op != LCOMM_AVG || error) {
    return error;
  }
  return lcomm_device_average(device, receive, plan->dtype, count, run->comm->size);
}

int lcomm_call_stage_out_device(const lcomm_run *run) {
  const lcomm_plan *plan = run->plan;
  lcomm_span part = lcomm_plan_part(plan, run->comm->rank);
  if (plan->collective == LCOMM_COLLECTIVE_ALLREDUCE) {
    return stage_out(run, run->terms.op, run->vector, plan->count, run->device->receive);
  }
  if (lcomm_collective_scatters(plan->collective) && part.count > 0) {
    return stage_out(run, run->terms.op, run->own_vector + part.first * plan->element_size,
                     part.count, run->device->receive);
  }
  return 0;
}

/* ------------------------------------------------------------ staging in */

static int copy_part(const lcomm_run *run, const lcomm_call *call) {
  const lcomm_plan *plan = run->plan;
  lcomm_span part = lcomm_plan_part(plan, run->comm->rank);
  uint8_t *place = (uint8_t *)call->receive + part.first * plan->element_size;
  if (part.count == 0 || place == call->send) {
    return 0;
  }
  return run->device->table->copy(place, call->send, part.count * plan->element_size,
                                  run->device->stream);
}

static int bring_sum(const lcomm_run *run, const lcomm_call *call, void *vector) {
  const lcomm_plan *plan = run->plan;
  const lcomm_run_device *device = run->device;
  int error =
      lcomm_device_load(device, call->send, plan->dtype, plan->vector_count, call->before, vector);
  if (run->comm->size > 1) {
    return error;
  }
  /* One rank alone makes no sum that `after` would go with. */
  return error ? error
               : lcomm_device_load(device, vector, lcomm_sum_dtype(plan->dtype), plan->vector_count,
                                   call->after, vector);
}

static int bring_input(const lcomm_run *run, const lcomm_call *call, lcomm_operation_data *data) {
  const lcomm_plan *plan = run->plan;
  data->input = call->send;
  if (!plan->in_place || plan->input_count == 0) {
    return 0;
  }
  data->input = run->own_input;
  return run->device->table->copy(run->own_input, call->send,
                                  plan->input_count * plan->element_size, run->device->stream);
}

/* The caller's stream first: the buffers are ready when it has come here. */
static int follow_stream(const lcomm_run_device *device, void *stream) {
  int error = device->table->event.record(device->begin, stream);
  return error ? error : device->table->stream.wait(device->stream, device->begin);
}

lcomm_status lcomm_call_stage_in_device(lcomm_run *run, const lcomm_call *call,
                                        lcomm_operation_data *data) {
  const lcomm_plan *plan = run->plan;
  *data = (lcomm_operation_data){.vector = run->own_vector ? run->own_vector : call->receive,
                                 .op = call->request.op,
                                 .before = call->before,
                                 .after = call->after};
  run->device->receive = call->receive;
  run->device->on_stream = call->on_stream;
  run->device->stage_out = lcomm_call_stage_out_device;
  run->device->owner = NULL;
  int before = lcomm_run_device_enter(run);
  int error = call->on_stream ? follow_stream(run->device, call->stream) : 0;
  switch (error ? LCOMM_COLLECTIVE_BARRIER : plan->collective) {
  case LCOMM_COLLECTIVE_ALLREDUCE:
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
  case LCOMM_COLLECTIVE_REDUCE_SCATTERV:
    error = bring_sum(run, call, data->vector);
    break;
  case LCOMM_COLLECTIVE_ALLGATHER:
  case LCOMM_COLLECTIVE_ALLGATHERV:
    error = copy_part(run, call);
    break;
  case LCOMM_COLLECTIVE_ALLTOALL:
    error = bring_input(run, call, data);
    break;
  default: /* a broadcast has one buffer, a barrier none */
    break;
  }
  lcomm_run_device_leave(run, before);
  return error ? lcomm_run_device_failed(run, "bringing in the data", error) : LCOMM_OK;
}

void lcomm_call_end_device(lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  if (operation->status == LCOMM_OK && lcomm_plan_is_lossy(run->plan)) {
    operation->not_finite = *run->device->found_here;
    run->comm->stats.not_finite += operation->not_finite;
  }
}
