/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_TAPE_COUNT_H
#define LCOMM_ENGINE_TAPE_COUNT_H

/* What an operation asks of its device, without one: the tape of a plan is played to a table that
 * only counts. */

#include "libcomm/plan/plan.h"

/* Calls of CUDA. */
typedef struct lcomm_tape_calls {
  uint64_t launches;
  uint64_t copies;  /* and fills */
  uint64_t numbers; /* batches of waits and writes */
  uint64_t events;  /* recorded, and waited for */
} lcomm_tape_calls;

/* Those of the caller for one operation of the plan in a stream, over buffers that need no copy.
 * Without error feedback. Of top-k as many launches as its kernels may be (kernels/cuda.h), which
 * are fewer for short payloads. The plan's slots are parted, as those of a run are that plays tapes
 * (lcomm_plan_part_slots). MEMORY. */
lcomm_status lcomm_tape_count(lcomm_plan *plan, lcomm_tape_calls *calls);

static inline uint64_t lcomm_tape_calls_all(const lcomm_tape_calls *calls) {
  return calls->launches + calls->copies + calls->numbers + calls->events;
}

#endif
