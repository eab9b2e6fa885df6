/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_FEEDBACK_STATE_H
#define LCOMM_ENGINE_FEEDBACK_STATE_H

/* The error-feedback memory that a run reads and writes. Who owns it, and what becomes of it, is
 * in libcomm/feedback/. */

#include "libcomm/device/memory_location.h"

typedef struct lcomm_feedback_state {
  uint64_t first, count; /* elements of the vector */
  float *residual;       /* count of them */
  float *momentum;       /* count of them, or NULL without momentum correction */
  float momentum_factor;
  lcomm_memory_location location; /* of both, see ef_memory.h */
} lcomm_feedback_state;

#endif
