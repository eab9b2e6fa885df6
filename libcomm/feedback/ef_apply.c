/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What error feedback adds to a contribution and to a sum. */

#include "libcomm/engine/backend.h"
#include "libcomm/feedback/ef.h"

static bool is_flush(const lcomm_run *run) {
  return run->terms.op_kind == LCOMM_OP_KIND_FLUSH;
}

lcomm_status lcomm_ef_clip(const lcomm_ef *ef, lcomm_run *run, float *values, uint64_t count) {
  return ef->clip > 0 && count > 0 ? run->backend->vectors->clip(run, values, count, ef->clip)
                                   : LCOMM_OK;
}

/* The unit of a residual is that of a contribution, of averages too. What is sent loses its
 * momentum after it has joined in once more, as in every step. */
static lcomm_status flush_part(const lcomm_ef *ef, lcomm_run *run, lcomm_span part) {
  const lcomm_feedback_state *feedback = ef->state.feedback;
  const lcomm_backend_vectors *vectors = run->backend->vectors;
  uint64_t at = part.first - feedback->first;
  float *values = lcomm_run_floats(run, part.first);
  if (feedback->momentum) {
    float *momentum = feedback->momentum + at;
    lcomm_buffer all = {momentum, part.count, LCOMM_FLOAT32, feedback->location};
    LCOMM_TRY(lcomm_run_scale(run, &all, (double)feedback->momentum_factor));
    LCOMM_TRY(vectors->fold(run, values, momentum, part.count));
  }
  return vectors->fold(run, values, feedback->residual + at, part.count);
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
  if (!ef->state.carried) { /* as of integers: loading a state refuses them */
    return LCOMM_OK;
  }
  return ef->request.dtype == LCOMM_FLOAT64
             ? vectors->fold_f64(run, result, ef->state.carried, ef->result.count)
             : vectors->fold(run, result, ef->state.carried, ef->result.count);
}

lcomm_status lcomm_ef_finish(lcomm_ef *ef, lcomm_run *run, void *result) {
  if (ef->result.count == 0) {
    return LCOMM_OK;
  }
  if (ef->state.velocity && (is_flush(run) || lcomm_ef_needs_velocity(ef, run->plan))) {
    LCOMM_TRY(run->backend->vectors->momentum(run, (float)ef->momentum, ef->state.velocity, result,
                                              ef->result.count));
  }
  return add_carried(ef, run, result);
}

/* Memory of a device waits until no stream is held. */
void lcomm_ef_end(lcomm_ef *ef, const lcomm_run *run) {
  lcomm_ef_state *state = &ef->state;
  ef->spent.carried = state->carried;
  state->carried = NULL;
  if (is_flush(run)) {
    ef->spent.velocity = state->velocity;
    state->velocity = NULL;
  }
  if (ef->flushes) {
    ef->spent.feedback = state->feedback;
    state->feedback = NULL;
    ef->flushes = false;
  }
  if (!lcomm_memory_is_on_device(ef->request.location)) {
    lcomm_ef_state_free(ef->request.location, &ef->spent);
  }
}
