/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The memory of a run: everything it will need is allocated here; its slots are
 * made in run_slots.c. */

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/base/log.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/flow.h"
#include "libcomm/engine/operation.h"

/* One context for all slots of a stage; they are packed one after another. */
static lcomm_status make_lossless(lcomm_run *run) {
  size_t largest[LCOMM_STAGE_COUNT] = {0};
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    lcomm_stage stage = run->plan->schedule.slots[i].stage;
    size_t bound = run->plan->slot_sizes[i].bound;
    largest[stage] = bound > largest[stage] ? bound : largest[stage];
  }
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    const lcomm_format *format = &run->plan->stages[i].format;
    if (format->zstd) {
      LCOMM_TRY(lcomm_lossless_create(format, largest[i], &run->codecs.lossless[i]));
    }
  }
  return LCOMM_OK;
}

static lcomm_status make_encoder(lcomm_run *run, uint32_t index,
                                 const lcomm_segment_scratch *scratch) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  if (step->kind != LCOMM_STEP_ENCODE) {
    return LCOMM_OK;
  }
  lcomm_stage stage = run->plan->schedule.slots[step->slot].stage;
  if (!lcomm_format_is_sparse(&run->plan->stages[stage].format)) {
    return LCOMM_OK;
  }
  lcomm_topk_shape shape;
  lcomm_plan_topk_shape(run->plan, stage, step->span, step->slot_count, scratch, &shape);
  LCOMM_TRY(lcomm_topk_create(&shape, &run->codecs.encoders[index]));
  run->codecs.picks[index] = lcomm_topk_total(run->codecs.encoders[index]);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (lcomm_topk_output_bound(run->codecs.encoders[index], i) >
        run->slots[step->slot + i].capacity) {
      return LCOMM_ERR_INTERNAL;
    }
  }
  return LCOMM_OK;
}

static lcomm_status make_encoders(lcomm_run *run) {
  uint32_t steps = run->plan->schedule.step_count;
  run->codecs.encoders = calloc((size_t)steps + 1, sizeof *run->codecs.encoders);
  run->codecs.picks = calloc((size_t)steps + 1, sizeof *run->codecs.picks);
  lcomm_segment_scratch scratch;
  if (!run->codecs.encoders || !run->codecs.picks ||
      lcomm_plan_scratch_make(run->plan, &scratch) != LCOMM_OK) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_status status = LCOMM_OK;
  for (uint32_t i = 0; status == LCOMM_OK && i < steps; i++) {
    status = make_encoder(run, i, &scratch);
  }
  lcomm_plan_scratch_free(&scratch);
  return status;
}

static lcomm_status make_scratch(lcomm_run *run) {
  size_t most = 1;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    size_t slots = run->plan->schedule.steps[i].slot_count;
    most = slots > most ? slots : most;
  }
  run->scratch.payloads = calloc(most, sizeof *run->scratch.payloads);
  run->scratch.sizes = calloc(most, sizeof *run->scratch.sizes);
  run->scratch.sources = calloc(most, sizeof *run->scratch.sources);
  run->scratch.summands = calloc(most, sizeof *run->scratch.summands);
  return run->scratch.payloads && run->scratch.sizes && run->scratch.sources &&
                 run->scratch.summands
             ? LCOMM_OK
             : LCOMM_ERR_MEMORY;
}

static lcomm_status make_progress_state(lcomm_run *run) {
  size_t steps = run->plan->schedule.step_count;
  run->steps.waiting = calloc(steps + 1, sizeof *run->steps.waiting);
  run->steps.ready = calloc(steps / 64 + 1, sizeof *run->steps.ready);
  run->steps.throttled = calloc(steps / 64 + 1, sizeof *run->steps.throttled);
  run->messages.of_step = calloc(steps + 1, sizeof *run->messages.of_step);
  run->messages.in_flight = calloc(steps + 1, sizeof *run->messages.in_flight);
  run->messages.due = calloc(steps + 1, sizeof *run->messages.due);
  return run->steps.waiting && run->steps.ready && run->steps.throttled && run->messages.of_step &&
                 run->messages.in_flight && run->messages.due
             ? LCOMM_OK
             : LCOMM_ERR_MEMORY;
}

void lcomm_run_key(lcomm_run *run, const lcomm_operation_data *data) {
  lcomm_run_terms terms = {.plan = run->plan->hash,
                           .residual = data->residual,
                           .before = data->before,
                           .after = data->after,
                           .factors = data->factors,
                           .op = data->op,
                           .op_kind = data->op_kind};
  if (run->hash.key == 0 || memcmp(&run->terms, &terms, sizeof(terms)) != 0) {
    run->hash.key = (uint32_t)XXH3_64bits(&terms, sizeof(terms)) | 1;
    run->terms = terms;
  }
  uint32_t before =
      run->series.channel > 0
          ? run->series.channel * UINT32_C(0x9e3779b1)
          : run->comm->operations.history[lcomm_op_kind_sequence_space(terms.op_kind)];
  run->hash.parameters = run->hash.key ^ before;
}

/* One rank's plan is enough to see what all do. */
static void log_plan(const lcomm_run *run) {
  char text[2048];
  if (run->comm->rank == 0 && lcomm_log_wants(LCOMM_LOG_DEBUG)) {
    lcomm_plan_describe(run->plan, &run->comm->topo, text, sizeof(text));
    lcomm_log(LCOMM_LOG_DEBUG, text);
  }
}

static lcomm_status make_all(lcomm_run *run) {
  LCOMM_TRY(lcomm_run_make_slots(run));
  LCOMM_TRY(make_encoders(run));
  LCOMM_TRY(make_lossless(run));
  LCOMM_TRY(make_scratch(run));
  LCOMM_TRY(run->backend->own_memory(run) ? LCOMM_OK : LCOMM_ERR_MEMORY);
  LCOMM_TRY(lcomm_flow_plan(run));
  return make_progress_state(run);
}

/* Lanes would wait for messages that leave the vector as it is. */
static lcomm_status make_parts(lcomm_run *run, lcomm_plan *plan) {
  if (run->backend == &lcomm_backend_taped) {
    LCOMM_TRY(lcomm_plan_part_slots(plan));
  }
  return run->backend->make(run, make_all);
}

lcomm_status lcomm_run_create(lcomm_comm *comm, lcomm_plan *plan, lcomm_sequence_space space,
                              lcomm_run **run) {
  lcomm_run *made = calloc(1, sizeof *made);
  if (!made) {
    lcomm_plan_destroy(plan);
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "out of memory for an operation");
  }
  made->plan = plan;
  made->comm = comm;
  made->series.space = space;
  made->backend = lcomm_backend_of(comm, plan);
  lcomm_status status = make_parts(made, plan);
  if (status == LCOMM_ERR_MEMORY) {
    lcomm_error_thread(status, "no memory for the buffers of %s of %llu elements",
                       lcomm_collective_name(plan->collective), (unsigned long long)plan->count);
  }
  if (status != LCOMM_OK) {
    lcomm_run_destroy(made); /* and the plan with it */
    return status;
  }
  if (lcomm_fastpath_fits(made)) { /* without memory for it, it takes the steps */
    made->fastpath.sends = calloc((size_t)comm->size, sizeof *made->fastpath.sends);
  }
  log_plan(made);
  *run = made;
  return LCOMM_OK;
}

/* Of a device whose work may not be over: they stay, reachable, to the end of the process. */
static lcomm_run *_Atomic kept_runs;

/* Its messages were in flight when it was given up. What they may still read stays until nobody
 * does, on a device for good; with the rest of it where it cannot be parted from that. */
static bool is_left(lcomm_run *run) {
  bool (*leave_sent)(lcomm_run *) = run->backend->leave_sent;
  if (!run->messages.abandoned || (leave_sent && leave_sent(run))) {
    return false;
  }
  if (!run->device) {
    run->cached.next = run->comm->runs.abandoned;
    run->comm->runs.abandoned = run;
    return true;
  }
  run->cached.next = atomic_load(&kept_runs);
  while (!atomic_compare_exchange_weak(&kept_runs, &run->cached.next, run)) {
  }
  return true;
}

static void free_run(lcomm_run *run) {
  for (uint32_t i = 0; run->codecs.encoders && i < run->plan->schedule.step_count; i++) {
    lcomm_topk_destroy(run->codecs.encoders[i]);
  }
  free(run->codecs.encoders);
  free(run->codecs.picks);
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    lcomm_lossless_destroy(run->codecs.lossless[i]);
  }
  for (uint32_t i = 0; run->slots && i < run->plan->schedule.slot_count; i++) {
    if (!lcomm_slot_is(&run->slots[i], LCOMM_SLOT_MEMORY)) { /* memory that it got later on */
      lcomm_links_memory_free(&run->comm->links, run->slots[i].own_wire);
    }
  }
  run->backend->free(run);
  free(run->slots);
  free(run->scratch.payloads);
  free(run->scratch.sizes);
  free(run->scratch.sources);
  free(run->scratch.summands);
  free(run->steps.waiting);
  free(run->steps.ready);
  free(run->steps.throttled);
  free(run->messages.of_step);
  free(run->messages.in_flight);
  free(run->messages.due);
  free(run->fastpath.sends);
  free(run->flow.parts);
  lcomm_plan_destroy((lcomm_plan *)run->plan);
  free(run);
}

void lcomm_run_destroy(lcomm_run *run) {
  if (run && !is_left(run)) {
    free_run(run);
  }
}

void lcomm_runs_free_abandoned(lcomm_comm *comm) {
  while (comm->runs.abandoned) {
    lcomm_run *run = comm->runs.abandoned;
    comm->runs.abandoned = run->cached.next;
    free_run(run);
  }
}
