/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_TAPE_INTERNAL_H
#define LCOMM_ENGINE_TAPE_INTERNAL_H

/* What the files of tapes share: tape.c makes one, tape_steps.c says what its steps wait for,
 * tape_play.c puts it into lanes. */

#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"

/* Fill in the steps of a schedule, which are zero, and that of staging out. False without memory.
 */
bool lcomm_tape_relate(const lcomm_schedule *schedule, lcomm_tape_step *steps);

static inline void *lcomm_tape_stream(const lcomm_run *run, lcomm_lane lane) {
  return run->tape->lanes->stream[lane];
}

/* What is computed from here on is computed in this lane. */
static inline void lcomm_tape_turn_to(lcomm_run *run, lcomm_lane lane) {
  run->device->stream = lcomm_tape_stream(run, lane);
}

#endif
