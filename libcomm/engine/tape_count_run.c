/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Runs that are counted: made as all runs that play tapes are, of nothing but what is looked at
 * while that is done. */

#include <stdlib.h>

#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape_count_internal.h"
#include "libcomm/engine/tape_internal.h"

/* Where arrays would be: nobody reads or writes there. */
static const uintptr_t VECTOR = (uintptr_t)1 << 44, ARENA = (uintptr_t)2 << 44,
                       FOUND = (uintptr_t)4 << 44, RESIDUAL = (uintptr_t)5 << 44,
                       MOMENTUM = (uintptr_t)6 << 44;

/* -------------------------------------------------------------- communicators */

/* How peers of its node are reached, and others. */
static const lcomm_transport_zero_copy zero_copy;
static const lcomm_transport_table near_table = {.name = "near", .zero_copy = &zero_copy},
                                   far_table = {.name = "far"};
static lcomm_transport near_link = {.table = &near_table}, far_link = {.table = &far_table};

/* Each rank is a process. */
static lcomm_status suppose_comm(lcomm_comm *comm, const lcomm_topo *topo, int rank) {
  comm->rank = comm->links.rank = rank;
  comm->size = comm->links.size = topo->size;
  comm->topo = *topo;
  comm->identity.processes = calloc((size_t)topo->size, sizeof *comm->identity.processes);
  comm->links.of = calloc((size_t)topo->size, sizeof *comm->links.of);
  if (!comm->identity.processes || !comm->links.of) {
    return LCOMM_ERR_MEMORY;
  }
  for (int peer = 0; peer < topo->size; peer++) {
    bool is_near = topo->node[peer] == topo->node[rank];
    comm->identity.processes[peer].pid = (uint64_t)peer + 1;
    comm->links.of[peer] = is_near ? &near_link : &far_link;
  }
  return LCOMM_OK;
}

/* ----------------------------------------------------------------------- runs */

static uint8_t *slots_memory(lcomm_run *run, size_t size) {
  (void)run, (void)size;
  return (uint8_t *)ARENA;
}

static lcomm_status stage_out(lcomm_run *run) {
  const lcomm_counted_run *it = run->data.owner;
  lcomm_ef_array velocity = {.now = (float *)MOMENTUM, .before = (float *)MOMENTUM};
  if (it->corrects_sum) {
    LCOMM_TRY(run->backend->vectors->momentum(run, 1.0f, velocity, (float *)VECTOR,
                                              run->plan->vector_count));
  }
  lcomm_buffer result = {run->data.vector, run->plan->vector_count,
                         lcomm_sum_dtype(run->plan->dtype), run->plan->location};
  return run->plan->lossy ? run->backend->vectors->count_not_finite(run, &result) : LCOMM_OK;
}

static lcomm_status make_plan(const lcomm_tape_case *of, int rank, lcomm_run *run) {
  lcomm_plan *plan = NULL;
  lcomm_why why;
  LCOMM_TRY(lcomm_plan_create(&of->request, of->policy, of->topo, rank, &plan, &why));
  run->plan = plan;
  return lcomm_plan_part_slots(plan);
}

/* Encoders of top-k are none of the host's. */
static lcomm_status make_parts(lcomm_counted_run *it) {
  lcomm_run *run = &it->run;
  size_t steps = (size_t)run->plan->schedule.step_count + 1, most = 1;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    size_t here = run->plan->schedule.steps[i].slot_count;
    most = here > most ? here : most;
  }
  run->device = calloc(1, sizeof *run->device);
  run->tape = calloc(1, sizeof *run->tape);
  run->scratch.summands = calloc(most, sizeof *run->scratch.summands);
  run->codecs.encoders = calloc(steps, sizeof *run->codecs.encoders);
  return run->device && run->tape && run->scratch.summands && run->codecs.encoders
             ? LCOMM_OK
             : LCOMM_ERR_MEMORY;
}

static void fill_parts(lcomm_counted_run *it, lcomm_tape_calls *calls) {
  lcomm_run *run = &it->run;
  it->backend = lcomm_backend_taped;
  it->backend.slots_memory = slots_memory;
  run->backend = &it->backend;
  run->factor = 1.0;
  run->data = (lcomm_operation_data){.vector = (uint8_t *)VECTOR, .stage_out = stage_out};
  run->data.input = (uint8_t *)VECTOR;
  run->data.owner = it;
  run->device->table = &lcomm_counting_table;
  run->device->can_share = true;
  run->device->found = (uint64_t *)FOUND;
  run->tape->lanes = &it->lanes;
  it->program.calls = calls;
  for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
    it->lane[i].calls = calls;
    it->lanes.stream[i] = &it->lane[i];
  }
}

/* What a tensor or a residual with a name has between its operations. */
static void suppose_feedback(lcomm_counted_run *it, const lcomm_policy *policy) {
  lcomm_feedback_state *feedback = &it->feedback;
  bool lasts = it->run.plan->error_feedback, moves = lasts && policy->momentum > 0;
  bool has = lasts && lcomm_plan_feedback(it->run.plan, &feedback->first, &feedback->count);
  it->corrects_sum = moves && !has;
  if (!has || feedback->count == 0) {
    return;
  }
  feedback->residual.now = (float *)RESIDUAL;
  feedback->momentum.now = moves ? (float *)MOMENTUM : NULL;
  feedback->momentum_factor = (float)policy->momentum;
  it->run.feedback = feedback;
}

/* In the order in which a run is made that computes (backend_cuda.c). */
static lcomm_status make_rest(lcomm_run *run) {
  LCOMM_TRY(lcomm_run_make_slots(run));
  lcomm_device_zcopy_find_exported(run);
  LCOMM_TRY(lcomm_run_device_make(run));
  LCOMM_TRY(lcomm_share_make(run));
  LCOMM_TRY(lcomm_tape_make(run));
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    run->device->topk[i] = (lcomm_cuda_topk *)(uintptr_t)run->plan->schedule.steps[i].slot_count;
  }
  return LCOMM_OK;
}

lcomm_status lcomm_counted_run_make(lcomm_counted_run *it, const lcomm_tape_case *of, int rank,
                                    lcomm_tape_calls *calls) {
  it->run.comm = &it->comm;
  LCOMM_TRY(suppose_comm(&it->comm, of->topo, rank));
  LCOMM_TRY(make_plan(of, rank, &it->run));
  LCOMM_TRY(make_parts(it));
  fill_parts(it, calls);
  suppose_feedback(it, of->policy);
  return make_rest(&it->run);
}

void lcomm_counted_run_free(lcomm_counted_run *it) {
  lcomm_run *run = &it->run;
  run->memory.arena = NULL;
  if (run->device) {
    run->device->table = &lcomm_counting_table;
    lcomm_share_free(run);
    lcomm_run_device_free(run);
  }
  free(run->tape); /* of one that was not made further */
  free(run->slots);
  free(run->codecs.encoders);
  free(run->scratch.summands);
  lcomm_plan_destroy((lcomm_plan *)(uintptr_t)run->plan); /* it is its own */
  free(it->comm.identity.processes);
  free(it->comm.links.of);
  free(it->comm.runs.tiles);
}
