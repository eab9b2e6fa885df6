/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What a residual says of itself: what it keeps, the calls with it, the parts of a reduce-scatter.
 */

#include <string.h>

#include "libcomm/engine/entry.h"
#include "libcomm/tensor/residual.h"

/* What is carried to the next result is the same on all ranks, or on one alone where parts are
 * received: one rank answers for it, as a residual of its own. */
static void add_carried(const lcomm_ef *ef, float *values) {
  bool answers = lcomm_ef_scatters(ef) || ef->comm->rank == 0;
  for (uint64_t i = 0; ef->state.carried && answers && i < ef->result.count; i++) {
    values[ef->result.first + i] += lcomm_ef_units(ef) * ef->state.carried[i];
  }
}

lcomm_status lcomm_residual_get(const lcomm_residual *residual, float *values) {
  LCOMM_TRY(lcomm_residual_check_lives(residual, "lcomm_residual_get"));
  if (!values) {
    return lcomm_refuse_null(residual->ef.comm, "lcomm_residual_get", "values");
  }
  LCOMM_TRY(lcomm_check_process(residual->ef.comm));
  LCOMM_TRY(lcomm_residual_join(residual));
  LCOMM_TRY(lcomm_residual_check_idle(residual, "lcomm_residual_get"));
  const lcomm_ef *ef = &residual->ef;
  const lcomm_feedback_state *feedback = ef->state.feedback;
  memset(values, 0, ef->request.count * sizeof(float));
  for (int i = 0; i < lcomm_ef_part_count(ef); i++) {
    lcomm_span part = lcomm_ef_part(ef, feedback, i);
    if (part.count > 0) {
      memcpy(values + part.first, feedback->residual.now + (part.first - feedback->first),
             part.count * sizeof(float));
    }
  }
  add_carried(ef, values);
  return LCOMM_OK;
}

lcomm_status lcomm_residual_calls(const lcomm_residual *residual, uint64_t *calls) {
  LCOMM_TRY(lcomm_residual_check_lives(residual, "lcomm_residual_calls"));
  if (!calls) {
    return lcomm_refuse_null(residual->ef.comm, "lcomm_residual_calls", "calls");
  }
  LCOMM_TRY(lcomm_check_process(residual->ef.comm));
  LCOMM_TRY(lcomm_residual_join(residual));
  *calls = residual->ended;
  return LCOMM_OK;
}

lcomm_status lcomm_residual_counts(const lcomm_residual *residual, uint64_t *counts) {
  LCOMM_TRY(lcomm_residual_check_lives(residual, "lcomm_residual_counts"));
  lcomm_comm *comm = residual->ef.comm;
  if (!counts) {
    return lcomm_refuse_null(comm, "lcomm_residual_counts", "counts");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  if (!residual->part_counts) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_residual_counts: residual %llu is of all-reduces, whose result all "
                        "ranks receive",
                        (unsigned long long)residual->number);
  }
  memcpy(counts, residual->part_counts, (size_t)comm->size * sizeof *counts);
  return LCOMM_OK;
}
