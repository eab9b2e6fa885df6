/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/feedback/ef.h"

#include <stdlib.h>

#include "libcomm/engine/run_device.h"
#include "libcomm/feedback/ef_memory.h"
#include "libcomm/plan/milder.h"

/* ----------------------------------------------------------------- parts */

int lcomm_ef_part_count(const lcomm_ef *ef) {
  return lcomm_ef_scatters(ef) ? ef->comm->size : 1;
}

lcomm_span lcomm_ef_part(const lcomm_ef *ef, const lcomm_feedback_state *feedback, int index) {
  const lcomm_topo *topo = &ef->comm->topo;
  const uint64_t *counts = ef->request.part_counts;
  int me = ef->comm->rank;
  if (!feedback) {
    return lcomm_span_whole(0, 0);
  }
  if (!counts) {
    return lcomm_span_whole(feedback->first, feedback->count);
  }
  uint64_t first = 0;
  for (int i = 0; i < index; i++) {
    first += counts[i];
  }
  bool mine = lcomm_reduce_scatter_collector(topo, topo->node[me], index) == me;
  return lcomm_span_whole(first, mine ? counts[index] : 0);
}

/* ----------------------------------------------------------------- plans */

bool lcomm_ef_corrects_sum(const lcomm_ef *ef, const lcomm_plan *plan) {
  return ef->momentum > 0 && !plan->stages[LCOMM_STAGE_NET].error_feedback;
}

bool lcomm_ef_needs_velocity(const lcomm_ef *ef, const lcomm_plan *plan) {
  return ef->beta1 > 0 || lcomm_ef_corrects_sum(ef, plan);
}

lcomm_status lcomm_ef_out_of_memory(const lcomm_ef *ef) {
  return lcomm_fail(ef->comm, LCOMM_ERR_MEMORY,
                    "out of memory for the error feedback of %llu elements",
                    (unsigned long long)ef->request.count);
}

lcomm_status lcomm_ef_make_plan(const lcomm_ef *ef, bool exact, double density, lcomm_plan **plan) {
  lcomm_comm *comm = ef->comm;
  lcomm_plan_request request = ef->request;
  lcomm_why why;
  request.exact = exact || ef->exact;
  request.density = density;
  lcomm_policy policy = comm->settings.policy;
  if (ef->milder.format.codec) {
    lcomm_codecs_soften(&request.net, &policy.node, comm->topo.nodes, &ef->milder);
  }
  const lcomm_topo *topo = ef->background ? &comm->topo : lcomm_topo_of_calls(comm);
  lcomm_status status = lcomm_plan_create(&request, &policy, topo, comm->rank, plan, &why);
  if (status == LCOMM_OK) {
    return LCOMM_OK;
  }
  const char *name = lcomm_collective_name(request.collective);
  unsigned long long count = request.count;
  return status == LCOMM_ERR_MEMORY || ef->background
             ? lcomm_fail(comm, status, "%s of %llu elements: %s", name, count, why.text)
             : lcomm_refuse(comm, status, "%s of %llu elements: %s", name, count, why.text);
}

lcomm_status lcomm_ef_feedback(const lcomm_ef *ef, lcomm_feedback_state **feedback) {
  lcomm_plan *plan = NULL;
  *feedback = NULL;
  if (ef->keeps_all) {
    lcomm_status made = lcomm_feedback_make(ef->comm, ef->request.location,
                                            lcomm_span_whole(0, ef->request.count), 0, feedback);
    return made == LCOMM_OK ? LCOMM_OK : lcomm_ef_out_of_memory(ef);
  }
  if (ef->exact) {
    return LCOMM_OK;
  }
  if (ef->lowrank.rank > 0) {
    return lcomm_ef_lowrank_feedback(ef, feedback);
  }
  LCOMM_TRY(lcomm_ef_make_plan(ef, false, 0, &plan));
  lcomm_status status = lcomm_feedback_create(ef->comm, plan, ef->momentum, feedback);
  lcomm_plan_destroy(plan);
  if (status != LCOMM_OK) {
    return lcomm_ef_out_of_memory(ef);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_ef_holders(const lcomm_ef *ef, int *holders) {
  lcomm_plan *plan = NULL;
  if (ef->lowrank.rank > 0 || ef->keeps_all) {
    *holders = ef->comm->size;
    return LCOMM_OK;
  }
  lcomm_status status = lcomm_ef_make_plan(ef, false, 0, &plan);
  if (status == LCOMM_OK) {
    *holders = plan->shape.hierarchical ? ef->comm->topo.nodes : ef->comm->size;
  }
  lcomm_plan_destroy(plan);
  return status;
}

/* ------------------------------------------------------------------ life */

static void retire_runs(lcomm_ef *ef) {
  lcomm_run_retire(ef->comm, ef->run);
  lcomm_run_retire(ef->comm, ef->exact_run);
  ef->run = ef->exact_run = NULL;
  lcomm_ef_lowrank_retire(ef);
}

void lcomm_ef_replace(lcomm_ef *ef, lcomm_ef_state *state) {
  lcomm_run_retire(ef->comm, ef->run);
  ef->run = NULL;
  lcomm_ef_state_free(ef->comm, ef->request.location, &ef->state);
  ef->state = *state;
  ef->past = (lcomm_ef_past){.exists = false};
  *state = (lcomm_ef_state){0};
}

void lcomm_ef_free(lcomm_ef *ef) {
  lcomm_run_destroy(ef->run);
  lcomm_run_destroy(ef->exact_run);
  ef->run = ef->exact_run = NULL;
  lcomm_ef_lowrank_free(ef);
  lcomm_ef_state_free(ef->comm, ef->request.location, &ef->state);
  lcomm_ef_state_free(ef->comm, ef->request.location, &ef->spent);
}

/* ---------------------------------------------------------------- moving */

static bool copy_feedback(lcomm_comm *comm, lcomm_memory_location location,
                          const lcomm_feedback_state *from, lcomm_feedback_state **copy) {
  *copy = from ? calloc(1, sizeof **copy) : NULL;
  if (!*copy) {
    return !from;
  }
  **copy = *from;
  (*copy)->location = location;
  (*copy)->residual = (*copy)->momentum = (lcomm_ef_array){NULL, NULL};
  return lcomm_ef_memory_copy(comm, location, from->residual.now, from->count,
                              &(*copy)->residual.now) &&
         lcomm_ef_memory_copy(comm, location, from->momentum.now, from->count,
                              &(*copy)->momentum.now);
}

static bool copy_state(const lcomm_ef *ef, lcomm_memory_location location, lcomm_ef_state *copy) {
  const lcomm_ef_state *from = &ef->state;
  uint64_t count = ef->result.count;
  return copy_feedback(ef->comm, location, from->feedback, &copy->feedback) &&
         lcomm_ef_memory_copy(ef->comm, location, from->velocity.now, count, &copy->velocity.now) &&
         lcomm_ef_memory_copy(ef->comm, location, from->carried, count, &copy->carried);
}

lcomm_status lcomm_ef_move(lcomm_ef *ef, lcomm_memory_location location) {
  lcomm_ef_state moved = {0};
  if (lcomm_memory_is_beside(location, ef->request.location)) {
    return LCOMM_OK;
  }
  if (!copy_state(ef, location, &moved)) {
    lcomm_ef_state_free(ef->comm, location, &moved);
    return lcomm_ef_out_of_memory(ef);
  }
  retire_runs(ef);
  lcomm_ef_state_free(ef->comm, ef->request.location, &ef->state);
  lcomm_ef_state_free(ef->comm, ef->request.location, &ef->spent);
  ef->state = moved;
  ef->past = (lcomm_ef_past){.exists = false};
  ef->request.location = location;
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- policy */

/* Can what is kept here stay under the new policy? */
static bool fits_policy(const lcomm_ef *ef, const lcomm_plan *plan) {
  lcomm_feedback_state *feedback = ef->state.feedback;
  if (!feedback || ef->keeps_all) {
    return true;
  }
  if (!lcomm_feedback_fits(feedback, plan) ||
      (feedback->momentum.now != NULL) != (ef->momentum > 0)) {
    return false;
  }
  feedback->momentum_factor = (float)ef->momentum;
  return true;
}

lcomm_status lcomm_ef_follow_policy(lcomm_ef *ef, bool *leaves) {
  lcomm_plan *plan = NULL;
  retire_runs(ef);
  lcomm_ef_state_free(ef->comm, ef->request.location, &ef->spent);
  lcomm_ef_forget_past(ef);
  if (!(ef->momentum > 0) && !(ef->beta1 > 0)) {
    lcomm_ef_array_free(ef->comm, ef->request.location, &ef->state.velocity);
  }
  lcomm_status status = lcomm_ef_make_plan(ef, false, 0, &plan);
  *leaves = status == LCOMM_OK && !fits_policy(ef, plan);
  lcomm_plan_destroy(plan);
  return status;
}
