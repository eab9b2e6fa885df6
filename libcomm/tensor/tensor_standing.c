/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Where the tensors of a rank stand when ranks change, and how all come to stand at one step. */

#include <math.h>

#include "libcomm/tensor/residual_carry.h"

static double sum_squares(const float *values, uint64_t count) {
  double sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    sum += isfinite(values[i]) ? (double)values[i] * values[i] : 0;
  }
  return sum;
}

static void add_remembered(const lcomm_ef *ef, lcomm_remembered *it) {
  const lcomm_feedback_state *feedback = ef->state.feedback;
  int holders = 0;
  if (!feedback || lcomm_ef_holders(ef, &holders) != LCOMM_OK) {
    return;
  }
  it->all += (uint64_t)holders * ef->request.count;
  for (int i = 0; i < lcomm_ef_part_count(ef); i++) {
    lcomm_span part = lcomm_ef_part(ef, feedback, i);
    if (part.count > 0) {
      it->kept += part.count;
      it->squares +=
          sum_squares(feedback->residual.now + (part.first - feedback->first), part.count);
    }
  }
}

bool lcomm_carry_has_any(const lcomm_comm *comm) {
  return comm->tensors->count > 0 || comm->residuals->first;
}

lcomm_standing lcomm_standing_get(const lcomm_comm *comm) {
  const lcomm_tensor_set *tensors = comm->tensors;
  lcomm_standing it = {.steps = comm->deferred.step,
                       .complete = tensors->complete,
                       .blocks = lcomm_carry_has_any(comm),
                       .residuals = lcomm_residuals_count(comm),
                       .regrouping = tensors->regrouping,
                       .holds = comm->changes.held != NULL};
  const lcomm_carry_held *held = comm->changes.held;
  if (held) {
    it.blocks = held->count;
    it.remembered = held->remembered;
    return it;
  }
  for (size_t i = 0; i < tensors->bucket_count; i++) {
    add_remembered(&tensors->buckets[i].ef, &it.remembered);
  }
  for (const lcomm_residual *call = comm->residuals->first; call; call = call->next) {
    add_remembered(&call->ef, &it.remembered);
  }
  return it;
}

static void forget_ready(lcomm_comm *comm) {
  lcomm_tensor_set *tensors = comm->tensors;
  for (size_t i = 0; i < tensors->count; i++) {
    atomic_store(&tensors->list[i]->ready, false);
    atomic_store(&tensors->list[i]->returned, false);
    atomic_store(&tensors->list[i]->on_stream, false);
  }
  tensors->buckets_started = 0;
  tensors->not_finite.step = 0;
  tensors->complete = false;
  atomic_store(&comm->deferred.open, false);
}

bool lcomm_standing_settle(lcomm_comm *comm, uint64_t steps) {
  if (comm->tensors->complete && comm->deferred.step + 1 == steps) {
    lcomm_step_finish(comm);
    return true;
  }
  lcomm_step_undo(comm);
  forget_ready(comm);
  return comm->tensors->untold; /* what follows a step has failed */
}
