/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_EF_BACKEND_H
#define LCOMM_FEEDBACK_EF_BACKEND_H

/* The arithmetic of error feedback, on the host and on a device, in the stream of a run. Each
 * function returns the number of a call that failed, or 0; on the host nothing fails. */

#include "libcomm/engine/exec.h"

typedef struct lcomm_ef_backend {
  /* values = factor * values */
  int (*scale)(const lcomm_run *run, float *values, uint64_t n, float factor);
  /* values += residual; residual = 0 */
  int (*fold)(const lcomm_run *run, float *values, float *residual, uint64_t n);
  /* sums += carried, in float64 */
  int (*fold_doubles)(const lcomm_run *run, double *sums, const float *carried, uint64_t n);
  /* momentum = factor * momentum + values; values = momentum */
  int (*momentum)(const lcomm_run *run, float factor, float *momentum, float *values, uint64_t n);
  /* Scale values down to an L2 norm of at most `norm`. */
  int (*clip)(const lcomm_run *run, float *values, uint64_t n, double norm);
} lcomm_ef_backend;

/* Of the place where the run has its data. */
const lcomm_ef_backend *lcomm_ef_backend_of(const lcomm_run *run);

#endif
