/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What error feedback adds to a contribution and to a sum. */

#include "libcomm/feedback/ef.h"
#include "libcomm/feedback/ef_backend.h"

static bool is_flush(const lcomm_run *run) {
  return run->terms.op_kind == LCOMM_OP_KIND_FLUSH;
}

int lcomm_ef_clip(const lcomm_ef *ef, const lcomm_run *run, float *values, uint64_t count) {
  if (!(ef->clip > 0) || count == 0) {
    return 0;
  }
  uint32_t environment = lcomm_fp_enter();
  int error = lcomm_ef_backend_of(run)->clip(run, values, count, ef->clip);
  lcomm_fp_leave(environment);
  return error;
}

/* The unit of a residual is that of a contribution, of averages too. What is sent loses its
 * momentum after it has joined in once more, as in every step. */
static int flush_part(const lcomm_ef *ef, const lcomm_run *run, lcomm_span part) {
  const lcomm_feedback_state *feedback = ef->state.feedback;
  const lcomm_ef_backend *backend = lcomm_ef_backend_of(run);
  uint64_t at = part.first - feedback->first;
  float *values = lcomm_run_floats(run, part.first);
  int error = 0;
  if (feedback->momentum) {
    float *momentum = feedback->momentum + at;
    error = backend->scale(run, momentum, part.count, feedback->momentum_factor);
    error = error ? error : backend->fold(run, values, momentum, part.count);
  }
  return error ? error : backend->fold(run, values, feedback->residual + at, part.count);
}

int lcomm_ef_flush(lcomm_ef *ef, const lcomm_run *run) {
  int error = 0;
  if (!ef->flushes && !is_flush(run)) {
    return 0;
  }
  uint32_t environment = lcomm_fp_enter();
  for (int i = 0; i < lcomm_ef_part_count(ef) && !error; i++) {
    lcomm_span part = lcomm_ef_part(ef, ef->state.feedback, i);
    error = part.count > 0 ? flush_part(ef, run, part) : 0;
  }
  lcomm_fp_leave(environment);
  return error;
}

static int add_carried(const lcomm_ef *ef, const lcomm_run *run, void *result) {
  const lcomm_ef_backend *backend = lcomm_ef_backend_of(run);
  if (!ef->state.carried) { /* as of integers: loading a state refuses them */
    return 0;
  }
  return ef->request.dtype == LCOMM_FLOAT64
             ? backend->fold_doubles(run, result, ef->state.carried, ef->result.count)
             : backend->fold(run, result, ef->state.carried, ef->result.count);
}

int lcomm_ef_finish(lcomm_ef *ef, const lcomm_run *run, void *result) {
  int error = 0;
  if (ef->result.count == 0) {
    return 0;
  }
  uint32_t environment = lcomm_fp_enter();
  if (ef->state.velocity && (is_flush(run) || lcomm_ef_needs_velocity(ef, run->plan))) {
    error = lcomm_ef_backend_of(run)->momentum(run, (float)ef->momentum, ef->state.velocity, result,
                                               ef->result.count);
  }
  error = error ? error : add_carried(ef, run, result);
  lcomm_fp_leave(environment);
  return error;
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
