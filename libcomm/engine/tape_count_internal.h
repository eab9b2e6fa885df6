/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_TAPE_COUNT_INTERNAL_H
#define LCOMM_ENGINE_TAPE_COUNT_INTERNAL_H

/* What the files of tape_count.h share: tape_count_table.c is a device that counts,
 * tape_count_run.c makes runs on it, tape_count.c plays one of them. */

#include "libcomm/device/device.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/feedback_state.h"
#include "libcomm/engine/lanes.h"
#include "libcomm/engine/tape_count.h"

/* All functions that put something into a stream have it as an argument: it counts. */
typedef struct lcomm_counting_stream {
  lcomm_tape_calls *calls;
} lcomm_counting_stream;

/* Its memory is nowhere, but for pinned memory, and its encoders of top-k are the numbers of their
 * outputs. */
extern const lcomm_device_table lcomm_counting_table;

/* A run, and of its communicator what the making and playing of runs look at. */
typedef struct lcomm_counted_run {
  lcomm_comm comm;
  lcomm_run run;
  lcomm_backend backend; /* that of tapes, but for memory of slots, which is nowhere */
  lcomm_lanes lanes;
  lcomm_feedback_state feedback; /* of a plan with error feedback: arrays that are nowhere */
  bool corrects_sum;             /* momentum joins the sum, see ../feedback/ef_apply.c */
  lcomm_counting_stream lane[LCOMM_LANE_COUNT], program;
} lcomm_counted_run;

/* The run of a rank; what its streams do is added to `calls`. free: also of one that was made only
 * in part, or not at all. MEMORY, or what its plan met. */
lcomm_status lcomm_counted_run_make(lcomm_counted_run *it, const lcomm_tape_case *of, int rank,
                                    lcomm_tape_calls *calls);
void lcomm_counted_run_free(lcomm_counted_run *it);

#endif
