/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which run a step takes, and the state that it works with. */

#include "libcomm/engine/backend.h"
#include "libcomm/feedback/ef.h"
#include "libcomm/feedback/ef_memory.h"
#include "libcomm/plan/warmup.h"

/* ----------------------------------------------------------------- state */

static lcomm_status prepare_velocity(lcomm_ef *ef, const lcomm_plan *plan) {
  if (lcomm_ef_needs_velocity(ef, plan) && !ef->state.velocity.now) {
    ef->state.velocity.now = lcomm_ef_memory_get(ef->comm, ef->request.location, ef->result.count);
    return ef->state.velocity.now ? LCOMM_OK : lcomm_ef_out_of_memory(ef);
  }
  return LCOMM_OK;
}

/* The momentum of applied sums, the same on all ranks, goes over into contributions: of an
 * all-reduce each rank that keeps an element takes its share; of a reduce-scatter the one that
 * receives the sum has all. */
static void take_over(lcomm_ef *ef, const lcomm_plan *plan) {
  const lcomm_comm *comm = ef->comm;
  const lcomm_feedback_state *feedback = ef->state.feedback;
  bool scatters = lcomm_ef_scatters(ef);
  int holders = plan->shape.hierarchical ? comm->topo.nodes : comm->size;
  float factor = ef->request.op == LCOMM_AVG ? 1.0f / (float)comm->size : 1.0f;
  float share = 1.0f / (factor * (float)holders);
  uint64_t first = scatters ? ef->result.first : feedback->first;
  uint64_t count = scatters ? ef->result.count : feedback->count;
  float *momentum = feedback->momentum.now + (first - feedback->first);
  const float *velocity = ef->state.velocity.now + (first - ef->result.first);
  for (uint64_t i = 0; i < count; i++) {
    momentum[i] = scatters ? velocity[i] / factor : share * velocity[i];
  }
}

/* Before the first lossy step; other stages of a density warm-up keep it. */
static lcomm_status make_feedback(lcomm_ef *ef, const lcomm_plan *plan) {
  if (lcomm_ef_corrects_sum(ef, plan)) {
    return LCOMM_OK;
  }
  if (lcomm_feedback_create(ef->comm, plan, ef->momentum, &ef->state.feedback) != LCOMM_OK) {
    return lcomm_ef_out_of_memory(ef);
  }
  if (ef->beta1 > 0) { /* what the sums have stays with them */
    return LCOMM_OK;
  }
  if (ef->state.velocity.now && ef->state.feedback) {
    take_over(ef, plan);
  }
  ef->spent.velocity = ef->state.velocity;
  ef->state.velocity = (lcomm_ef_array){NULL, NULL};
  return LCOMM_OK;
}

static lcomm_status prepare_feedback(lcomm_ef *ef, lcomm_run *run) {
  LCOMM_TRY(ef->state.feedback ? LCOMM_OK : make_feedback(ef, run->plan));
  if (!lcomm_feedback_fits(ef->state.feedback, run->plan)) {
    return lcomm_fail(ef->comm, LCOMM_ERR_INTERNAL,
                      "the error feedback of %llu elements does not fit its plan",
                      (unsigned long long)ef->request.count);
  }
  run->feedback = ef->state.feedback;
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ runs */

lcomm_status lcomm_ef_make_run(const lcomm_ef *ef, bool exact, double density, lcomm_run **run) {
  lcomm_plan *plan = NULL;
  LCOMM_TRY(lcomm_ef_make_plan(ef, exact, density, &plan));
  lcomm_sequence_space space =
      ef->background ? LCOMM_SEQUENCE_SPACE_BUCKETS : LCOMM_SEQUENCE_SPACE_CALLS;
  lcomm_status status = lcomm_run_create(ef->comm, plan, space, run);
  if (status != LCOMM_OK) {
    return lcomm_fail(ef->comm, status, "%s", lcomm_error_thread_text());
  }
  return LCOMM_OK;
}

/* Another stage of a density warm-up takes another plan and keeps the feedback. */
static lcomm_status make_lossy(lcomm_ef *ef, double density) {
  lcomm_run *made = NULL;
  lcomm_run_retire(ef->comm, ef->run);
  ef->run = NULL;
  LCOMM_TRY(lcomm_ef_make_run(ef, false, density, &made));
  lcomm_status status = prepare_feedback(ef, made);
  if (status != LCOMM_OK) {
    lcomm_run_retire(ef->comm, made);
    return status;
  }
  ef->run = made;
  ef->density = density;
  return LCOMM_OK;
}

static void free_spent(lcomm_ef *ef) {
  lcomm_ef_state_free(ef->comm, ef->request.location, &ef->spent);
}

static bool has_spent(const lcomm_ef *ef) {
  const lcomm_ef_state *spent = &ef->spent;
  return spent->feedback || spent->velocity.now || spent->basis.now || spent->carried;
}

/* Nothing has to be made for a run, or freed before it. A flush takes the velocity away. */
static bool is_ready(const lcomm_ef *ef, const lcomm_run *run) {
  bool whole = run && (ef->state.velocity.now || !lcomm_ef_needs_velocity(ef, run->plan));
  return whole && !has_spent(ef) && lcomm_ef_can_undo(ef);
}

/* What is left to be made for a run that is there. */
static lcomm_status prepare(lcomm_ef *ef, const lcomm_run *run) {
  LCOMM_TRY(prepare_velocity(ef, run->plan));
  return lcomm_ef_prepare_undo(ef);
}

static bool is_stage(const lcomm_ef *ef, double density) {
  return ef->run && !(density < ef->density || density > ef->density);
}

static lcomm_status make_stage(lcomm_ef *ef, double density) {
  free_spent(ef);
  if (!is_stage(ef, density)) {
    LCOMM_TRY(make_lossy(ef, density));
  }
  return prepare(ef, ef->run);
}

static lcomm_status take_lossy(lcomm_ef *ef, uint64_t step) {
  double density = lcomm_warmup_density(&ef->comm->settings.policy, step);
  bool is_made = is_stage(ef, density) && is_ready(ef, ef->run);
  return is_made ? LCOMM_OK : make_stage(ef, density);
}

/* Of low rank the first of two runs is taken. */
static lcomm_status make_factored(lcomm_ef *ef) {
  free_spent(ef);
  LCOMM_TRY(lcomm_ef_lowrank_prepare(ef));
  return prepare(ef, ef->lowrank.left.run);
}

static lcomm_status take_factored(lcomm_ef *ef) {
  bool is_made = lcomm_ef_lowrank_is_made(ef) && is_ready(ef, ef->lowrank.left.run);
  return is_made ? LCOMM_OK : make_factored(ef);
}

static lcomm_status make_exact(lcomm_ef *ef) {
  free_spent(ef);
  return ef->exact_run ? LCOMM_OK : lcomm_ef_make_run(ef, true, 0, &ef->exact_run);
}

static lcomm_status prepare_exact(lcomm_ef *ef) {
  LCOMM_TRY(make_exact(ef));
  return prepare(ef, ef->exact_run);
}

static lcomm_status take_exact(lcomm_ef *ef) {
  return is_ready(ef, ef->exact_run) ? LCOMM_OK : prepare_exact(ef);
}

/* What compresses momentum are tensors. */
static bool is_exact_step(const lcomm_ef *ef, uint64_t step) {
  const lcomm_policy *policy = &ef->comm->settings.policy;
  return ef->beta1 > 0 ? lcomm_warmup_tensors_are_exact(policy, step)
                       : lcomm_warmup_is_exact(policy, step);
}

lcomm_status lcomm_ef_take_run(lcomm_ef *ef, uint64_t step, lcomm_run **run) {
  bool exact = ef->exact || ef->flushes || is_exact_step(ef, step);
  lcomm_ef_remember(ef);
  if (!exact && ef->lowrank.rank > 0) {
    LCOMM_TRY(take_factored(ef));
    *run = ef->lowrank.left.run;
    return LCOMM_OK;
  }
  ef->sends_momentum =
      ef->beta1 > 0 && lcomm_warmup_sends_momentum(&ef->comm->settings.policy, step);
  lcomm_status status = exact ? take_exact(ef) : take_lossy(ef, step);
  *run = exact ? ef->exact_run : ef->run;
  return status;
}

/* A flush ends the momentum of exact sums, so it needs none. */
static lcomm_status prepare_flush(lcomm_ef *ef) {
  LCOMM_TRY(make_exact(ef));
  return lcomm_ef_prepare_undo(ef);
}

lcomm_status lcomm_ef_take_flush_run(lcomm_ef *ef, lcomm_run **run) {
  lcomm_status status = LCOMM_OK;
  lcomm_ef_remember(ef);
  if (!ef->exact_run || has_spent(ef) || !lcomm_ef_can_undo(ef)) {
    status = prepare_flush(ef);
  }
  *run = ef->exact_run;
  return status;
}
