/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_FEEDBACK_STATE_H
#define LCOMM_ENGINE_FEEDBACK_STATE_H

/* The error-feedback memory that a run reads and writes. Who owns it, and what becomes of it, is
 * in libcomm/feedback/. */

#include <stddef.h>
#include <stdint.h>

#include "libcomm/device/memory_location.h"

/* Values that outlive an operation. Where it can be undone there are two arrays, whose roles change
 * when it begins: it reads `before` once and writes `now`. */
typedef struct lcomm_ef_array {
  float *now;
  float *before; /* NULL: the same array */
} lcomm_ef_array;

/* From element `at` on, `before` filled in; NULL stays NULL. */
static inline lcomm_ef_array lcomm_ef_array_at(lcomm_ef_array array, uint64_t at) {
  float *before = array.before ? array.before : array.now;
  return array.now ? (lcomm_ef_array){array.now + at, before + at} : array;
}

typedef struct lcomm_feedback_state {
  uint64_t first, count;   /* elements of the vector */
  lcomm_ef_array residual; /* count of them */
  lcomm_ef_array momentum; /* count of them, or NULL without momentum correction */
  float momentum_factor;
  lcomm_memory_location location; /* of all, see ef_memory.h */
} lcomm_feedback_state;

#endif
