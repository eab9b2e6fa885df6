/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What error feedback adds to a contribution and to a sum. */

#include "libcomm/engine/backend.h"
#include "libcomm/feedback/ef.h"

static bool is_flush(const lcomm_run *run) {
  return run->terms.op_kind == LCOMM_OP_KIND_FLUSH;
}

lcomm_status lcomm_ef_clip(const lcomm_ef *ef, lcomm_run *run, void *values, uint64_t count) {
  lcomm_buffer all = {values, count, lcomm_sum_dtype(ef->request.dtype), ef->request.location};
  return ef->clip > 0 && count > 0 ? run->backend->vectors->clip(run, &all, ef->clip) : LCOMM_OK;
}

/* All ranks have the same momentum, of a sum that of all of them together. */
lcomm_status lcomm_ef_contribute(const lcomm_ef *ef, lcomm_run *run, float *values,
                                 uint64_t count) {
  lcomm_buffer all = {values, count, LCOMM_FLOAT32, ef->request.location};
  double share = ef->request.op == LCOMM_AVG ? ef->beta1 : ef->beta1 / (double)ef->comm->size;
  if (!ef->sends_momentum || count == 0) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_run_scale(run, &all, 1 - ef->beta1));
  return run->backend->vectors->momentum(run, (float)share,
                                         lcomm_ef_array_at(ef->state.velocity, 0), values, count);
}

/* The unit of a residual is that of a contribution, of averages too. What is sent loses its
 * momentum after it has joined in once more, as in every step. */
static lcomm_status flush_part(const lcomm_ef *ef, lcomm_run *run, lcomm_span part) {
  const lcomm_feedback_state *feedback = ef->state.feedback;
  const lcomm_backend_vectors *vectors = run->backend->vectors;
  lcomm_ef_array residual = lcomm_ef_array_at(feedback->residual, part.first - feedback->first);
  lcomm_ef_array momentum = lcomm_ef_array_at(feedback->momentum, part.first - feedback->first);
  float *values = lcomm_run_floats(run, part.first);
  if (momentum.now) {
    lcomm_buffer all = {momentum.before, part.count, LCOMM_FLOAT32, feedback->location};
    LCOMM_TRY(vectors->load(run, &all, (double)feedback->momentum_factor, momentum.now));
    momentum.before = momentum.now;
    LCOMM_TRY(vectors->fold(run, values, momentum, part.count));
  }
  return vectors->fold(run, values, residual, part.count);
}

lcomm_status lcomm_ef_flush(lcomm_ef *ef, lcomm_run *run) {
  if (!ef->flushes && !is_flush(run)) {
    return LCOMM_OK;
  }
  for (int i = 0; i < lcomm_ef_part_count(ef); i++) {
    lcomm_span part = lcomm_ef_part(ef, ef->state.feedback, i);
    LCOMM_TRY(part.count > 0 ? flush_part(ef, run, part) : LCOMM_OK);
  }
  return LCOMM_OK;
}

static lcomm_status add_carried(const lcomm_ef *ef, lcomm_run *run, void *result) {
  const lcomm_backend_vectors *vectors = run->backend->vectors;
  if (!ef->state.carried ||
      !lcomm_ef_takes_carried(ef)) { /* none as of integers: loading a state refuses them */
    return LCOMM_OK;
  }
  return ef->request.dtype == LCOMM_FLOAT64
             ? vectors->add_f64(run, result, ef->state.carried, ef->result.count)
             : vectors->add(run, result, ef->state.carried, ef->result.count);
}

/* The momentum of all ranks is the one that has arrived, or takes up the gradient that has. */
static lcomm_status keep_mean(const lcomm_ef *ef, lcomm_run *run, const float *result) {
  float keep = ef->sends_momentum ? 0 : (float)ef->beta1;
  float take = ef->sends_momentum ? 1 : (float)(1 - ef->beta1);
  return run->backend->vectors->mean(run, keep, lcomm_ef_array_at(ef->state.velocity, 0), take,
                                     result, ef->result.count);
}

lcomm_status lcomm_ef_finish(lcomm_ef *ef, lcomm_run *run, void *result) {
  if (ef->result.count == 0) {
    return LCOMM_OK;
  }
  if (ef->beta1 > 0) {
    LCOMM_TRY(add_carried(ef, run, result));
    return keep_mean(ef, run, result);
  }
  if (ef->state.velocity.now && (is_flush(run) || lcomm_ef_corrects_sum(ef, run->plan))) {
    lcomm_ef_array velocity = lcomm_ef_array_at(ef->state.velocity, 0);
    LCOMM_TRY(run->backend->vectors->momentum(run, (float)ef->momentum, velocity, result,
                                              ef->result.count));
  }
  return add_carried(ef, run, result);
}

/* Memory of a device waits until no stream is held, and what can be undone until the next
 * operation. */
void lcomm_ef_end(lcomm_ef *ef, const lcomm_run *run) {
  lcomm_ef_state *state = &ef->state;
  if (lcomm_ef_takes_carried(ef)) {
    ef->spent.carried = state->carried;
    state->carried = NULL;
  }
  if (is_flush(run)) {
    ef->spent.velocity = state->velocity;
    state->velocity = (lcomm_ef_array){NULL, NULL};
  }
  if (ef->flushes) {
    ef->spent.feedback = state->feedback;
    state->feedback = NULL;
    ef->flushes = false;
  }
  if (!lcomm_memory_is_on_device(ef->request.location) && !ef->undo) {
    lcomm_ef_state_free(ef->comm, ef->request.location, &ef->spent);
  }
}
