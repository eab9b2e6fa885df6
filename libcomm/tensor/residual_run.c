/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The runs of calls with a residual; what they find in it and leave there. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "codecs/codec_residual.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/feedback/ef_memory.h"
#include "libcomm/plan/warmup.h"
#include "libcomm/tensor/residual.h"

static const lcomm_policy *policy_of(const lcomm_residual *residual) {
  return &residual->comm->settings.policy;
}

static bool is_exempt(const lcomm_residual *residual) {
  return residual->name[0] && lcomm_policy_exempts(policy_of(residual), residual->name);
}

double lcomm_residual_momentum(const lcomm_residual *residual) {
  return residual->name[0] ? policy_of(residual)->momentum : 0;
}

/* Sums without error feedback get their momentum after the sum. */
static bool needs_velocity(const lcomm_residual *residual, const lcomm_plan *plan) {
  return lcomm_residual_momentum(residual) > 0 && !plan->stages[LCOMM_STAGE_NET].error_feedback;
}

/* ------------------------------------------------------------------ parts */

int lcomm_residual_part_count(const lcomm_residual *residual) {
  return residual->part_counts ? residual->comm->size : 1;
}

lcomm_span lcomm_residual_part(const lcomm_residual *residual, const lcomm_feedback_state *feedback,
                               int index) {
  const lcomm_topo *topo = &residual->comm->topo;
  int me = residual->comm->rank;
  if (!feedback) {
    return lcomm_span_whole(0, 0);
  }
  if (!residual->part_counts) {
    return lcomm_span_whole(feedback->first, feedback->count);
  }
  uint64_t first = 0;
  for (int i = 0; i < index; i++) {
    first += residual->part_counts[i];
  }
  bool mine = lcomm_reduce_scatter_collector(topo, topo->node[me], index) == me;
  return lcomm_span_whole(first, mine ? residual->part_counts[index] : 0);
}

/* ------------------------------------------------------------------ plans */

static lcomm_plan_request request_of(const lcomm_residual *residual, bool exact, double density) {
  bool scatters = residual->part_counts != NULL;
  return (lcomm_plan_request){.collective = scatters ? LCOMM_COLLECTIVE_REDUCE_SCATTERV
                                                     : LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = residual->count,
                              .part_counts = residual->part_counts,
                              .dtype = LCOMM_FLOAT32,
                              .op = residual->op,
                              .error_feedback = true,
                              .exact = exact || is_exempt(residual),
                              .density = density};
}

lcomm_status lcomm_residual_make_run(const lcomm_residual *residual, bool exact, double density,
                                     lcomm_run **run) {
  lcomm_plan_request request = request_of(residual, exact, density);
  return lcomm_run_make(residual->comm, &request, run);
}

static lcomm_status out_of_memory(const lcomm_residual *residual) {
  return lcomm_fail(residual->comm, LCOMM_ERR_MEMORY,
                    "out of memory for what a residual of %llu elements holds",
                    (unsigned long long)residual->count);
}

lcomm_status lcomm_residual_feedback(const lcomm_residual *residual,
                                     lcomm_feedback_state **feedback) {
  lcomm_comm *comm = residual->comm;
  lcomm_plan_request request = request_of(residual, false, 0);
  lcomm_plan *plan = NULL;
  char why[256];
  *feedback = NULL;
  lcomm_status status = lcomm_plan_create(&request, &comm->settings.policy, &comm->topo, comm->rank,
                                          &plan, why, sizeof(why));
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, status, "no plan can be made for a residual of %llu elements: %s",
                      (unsigned long long)residual->count, why);
  }
  status = lcomm_feedback_create(plan, lcomm_residual_momentum(residual), feedback);
  lcomm_plan_destroy(plan);
  return status == LCOMM_OK ? status : out_of_memory(residual);
}

/* --------------------------------------------------------------- feedback */

static lcomm_status prepare_velocity(lcomm_residual *residual, const lcomm_plan *plan) {
  if (needs_velocity(residual, plan) && !residual->velocity) {
    residual->velocity = lcomm_ef_memory_get(0, residual->result.count);
    return residual->velocity ? LCOMM_OK : out_of_memory(residual);
  }
  return LCOMM_OK;
}

/* The momentum of exact calls goes over into contributions: of an all-reduce each rank that
 * keeps an element takes its share; of a reduce-scatter the one that receives the sum has all. */
static void take_over(lcomm_residual *residual, const lcomm_plan *plan) {
  const lcomm_comm *comm = residual->comm;
  lcomm_feedback_state *feedback = residual->feedback;
  float factor = residual->op == LCOMM_AVG ? 1.0f / (float)comm->size : 1.0f;
  if (!residual->part_counts) {
    int holders = plan->shape.hierarchical ? comm->topo.nodes : comm->size;
    lcomm_feedback_take_over(feedback, residual->velocity, holders, factor);
    return;
  }
  float *momentum = feedback->momentum + (residual->result.first - feedback->first);
  for (uint64_t i = 0; i < residual->result.count; i++) {
    momentum[i] = residual->velocity[i] / factor;
  }
}

/* Before the first lossy call; other stages of a density warm-up keep it. */
static lcomm_status make_feedback(lcomm_residual *residual, const lcomm_plan *plan) {
  if (needs_velocity(residual, plan)) {
    return prepare_velocity(residual, plan);
  }
  if (lcomm_feedback_create(plan, lcomm_residual_momentum(residual), &residual->feedback) !=
      LCOMM_OK) {
    return out_of_memory(residual);
  }
  if (residual->velocity && residual->feedback) {
    take_over(residual, plan);
  }
  lcomm_ef_memory_free(0, residual->velocity);
  residual->velocity = NULL;
  return LCOMM_OK;
}

static lcomm_status prepare_feedback(lcomm_residual *residual, lcomm_run *run) {
  lcomm_status status = residual->feedback ? LCOMM_OK : make_feedback(residual, run->plan);
  if (status != LCOMM_OK) {
    return status;
  }
  if (!lcomm_feedback_fits(residual->feedback, run->plan)) {
    return lcomm_fail(residual->comm, LCOMM_ERR_INTERNAL,
                      "what a residual holds does not fit its plan");
  }
  run->feedback = residual->feedback;
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ runs */

static lcomm_status prepare_lossy(lcomm_residual *residual) {
  double density = lcomm_warmup_density(policy_of(residual), residual->calls);
  if (residual->run && !(density < residual->density || density > residual->density)) {
    return LCOMM_OK;
  }
  lcomm_run *made = NULL;
  lcomm_status status = lcomm_residual_make_run(residual, false, density, &made);
  status = status == LCOMM_OK ? prepare_feedback(residual, made) : status;
  if (status != LCOMM_OK) {
    lcomm_run_destroy(made);
    return status;
  }
  lcomm_run_destroy(residual->run);
  residual->run = made;
  residual->density = density;
  return LCOMM_OK;
}

static lcomm_status prepare_exact(lcomm_residual *residual, bool flush) {
  lcomm_status status = residual->exact_run
                            ? LCOMM_OK
                            : lcomm_residual_make_run(residual, true, 0, &residual->exact_run);
  return status == LCOMM_OK && !flush ? prepare_velocity(residual, residual->exact_run->plan)
                                      : status;
}

static const char *name_of(const lcomm_residual *residual, lcomm_op_kind op_kind) {
  bool flush = op_kind == LCOMM_OP_KIND_FLUSH;
  if (residual->part_counts) {
    return flush ? "lcomm_reduce_scatter_flush" : "lcomm_reduce_scatter_ef";
  }
  return flush ? "lcomm_allreduce_flush" : "lcomm_allreduce_ef";
}

static lcomm_status find_run(void *owner, const lcomm_call *call, lcomm_run **run) {
  lcomm_residual *residual = owner;
  const char *name = name_of(residual, call->op_kind);
  lcomm_status status = lcomm_residual_check_idle(residual, name);
  if (status != LCOMM_OK) {
    return status;
  }
  if (call->request.place > 0) {
    return lcomm_refuse(residual->comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the buffers are on device %d, and residuals are for "
                        "host memory only; give buffers on the host, or make it a tensor",
                        name, (unsigned long long)residual->count, call->request.place - 1);
  }
  bool flush = call->op_kind == LCOMM_OP_KIND_FLUSH;
  bool exact =
      flush || residual->pays || lcomm_warmup_is_exact(policy_of(residual), residual->calls);
  status = exact ? prepare_exact(residual, flush) : prepare_lossy(residual);
  *run = exact ? residual->exact_run : residual->run;
  return status;
}

/* ------------------------------------------------------- before and after */

/* Each rank adds what it keeps to its contribution, so the sum is complete. The unit of
 * a residual is that of a contribution, of averages too. What is sent loses its momentum
 * after it has joined in once more, as in every call. */
static void pay(lcomm_residual *residual, lcomm_run *run) {
  lcomm_feedback_state *feedback = residual->feedback;
  const lcomm_kernels *kernels = residual->comm->kernels;
  for (int i = 0; i < lcomm_residual_part_count(residual); i++) {
    lcomm_span part = lcomm_residual_part(residual, feedback, i);
    if (part.count == 0) {
      continue;
    }
    uint64_t at = part.first - feedback->first;
    float *values = lcomm_run_floats(run, part.first);
    if (feedback->momentum) {
      float *momentum = feedback->momentum + at;
      kernels->f32_scale(momentum, feedback->momentum_factor, momentum, part.count);
      lcomm_residual_fold(kernels, values, momentum, part.count);
    }
    lcomm_residual_fold(kernels, values, feedback->residual + at, part.count);
  }
}

/* Of calls that are compressed, in their warm-up, too. */
static void clip(const lcomm_residual *residual, lcomm_run *run) {
  const lcomm_comm *comm = residual->comm;
  int parts = lcomm_residual_part_count(residual);
  uint64_t mean = (residual->count + (uint64_t)parts - 1) / (uint64_t)parts;
  if (!residual->name[0] || comm->settings.policy.clip <= 0 || is_exempt(residual) ||
      mean * sizeof(float) < comm->settings.policy.min_bytes) {
    return;
  }
  lcomm_feedback_clip(comm->kernels, lcomm_run_floats(run, 0), residual->count,
                      comm->settings.policy.clip / sqrt((double)comm->size));
}

/* Stochastic rounding depends on the name and on how many calls came before, so that a
 * restored run goes on with the same bits. */
static void seed(const lcomm_residual *residual, lcomm_run *run) {
  uint64_t hash = XXH3_64bits(residual->name, strlen(residual->name));
  uint32_t number = (uint32_t)(hash ^ hash >> 32) + (uint32_t)residual->calls;
  run->seed_shift = residual->name[0] ? number - run->sequence : 0;
}

static void amend(lcomm_operation *operation, void *result) {
  lcomm_residual_results(operation->owner, operation->run, result);
}

static void collected(lcomm_operation *operation) {
  lcomm_residual_end(operation->owner);
}

/* What is paid here is lost if the operation fails: the communicator has failed then,
 * and nothing could be sent any more. */
static void begin(void *owner, lcomm_operation *operation) {
  lcomm_residual *residual = owner;
  uint32_t environment = lcomm_fp_enter();
  operation->owner = residual;
  operation->amend = amend;
  operation->collected = collected;
  residual->in_flight = true;
  clip(residual, operation->run);
  bool flushes = operation->run->terms.op_kind == LCOMM_OP_KIND_FLUSH;
  if (flushes || residual->pays) {
    pay(residual, operation->run);
  }
  if (!flushes) {
    seed(residual, operation->run);
    residual->calls++;
  }
  lcomm_fp_leave(environment);
  if (residual->pays) {
    lcomm_feedback_free(residual->feedback);
    residual->feedback = NULL;
    residual->pays = false;
  }
}

/* A residual that was loaded and that nobody keeps, and the momentum of exact sums; a flush
 * leaves none of it. */
void lcomm_residual_results(lcomm_residual *residual, const lcomm_run *run, void *result) {
  const lcomm_kernels *kernels = residual->comm->kernels;
  uint64_t count = residual->result.count;
  bool flush = run->terms.op_kind == LCOMM_OP_KIND_FLUSH;
  uint32_t environment = lcomm_fp_enter();
  if (residual->velocity && (flush || needs_velocity(residual, run->plan))) {
    kernels->ef.f32_momentum((float)lcomm_residual_momentum(residual), residual->velocity, result,
                             count);
  }
  if (residual->carried) {
    lcomm_residual_fold(kernels, result, residual->carried, count);
  }
  lcomm_fp_leave(environment);
  lcomm_ef_memory_free(0, residual->carried);
  residual->carried = NULL;
  if (flush) {
    lcomm_ef_memory_free(0, residual->velocity);
    residual->velocity = NULL;
  }
}

const lcomm_call_keeper lcomm_residual_keeper = {.run = find_run, .begin = begin};
