/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_TAPE_INTERNAL_H
#define LCOMM_ENGINE_TAPE_INTERNAL_H

/* What the files of tapes share: tape.c makes one, tape_steps.c says what its steps wait for,
 * tape_play.c puts it into lanes, tape_numbers.c what lanes do with numbers there. */

#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"

/* Fill in the steps of a plan's schedule, which are zero, and that of staging out; say which lanes
 * begin with something that waits for nothing in the first one, where data is staged in. MEMORY. */
lcomm_status lcomm_tape_relate(const lcomm_plan *plan, lcomm_tape_step *steps,
                               bool waits_for_staging[LCOMM_LANE_COUNT]);

/* SYSTEM, with a sentence that names the device, unless `error` of its table is 0. */
lcomm_status lcomm_tape_got(const lcomm_run *run, const char *what, int error);

/* Which steps may wait until a message of this rank is over, because they depend on it, or are put
 * into lanes behind one that does. */
void lcomm_tape_find_late(const lcomm_schedule *schedule, const lcomm_tape_step *steps, bool *late);

/* The first step of a group whose last one this is. */
uint32_t lcomm_tape_group_first(const lcomm_schedule *schedule, const lcomm_tape_step *steps,
                                uint32_t last);

static inline void *lcomm_tape_stream(const lcomm_run *run, lcomm_lane lane) {
  return run->tape->lanes->stream[lane];
}

/* What is computed from here on is computed in this lane. */
static inline void lcomm_tape_turn_to(lcomm_run *run, lcomm_lane lane) {
  run->device->stream = lcomm_tape_stream(run, lane);
  run->device->lane = lane;
}

/* -------------------------------------------------------------------- numbers */

/* What the lane in which things are played is to do with a number. It is told later: with what else
 * is put there, and at the latest before anything else is. All these: SYSTEM, and the communicator
 * has failed. */
lcomm_status lcomm_tape_put_number(lcomm_run *run, lcomm_device_number_task task, uint32_t *place);
lcomm_status lcomm_tape_tell(lcomm_run *run);

/* Of a recording, in its last lane: wait until the proxy has begun the replay; once. */
lcomm_status lcomm_tape_await_begun(lcomm_run *run);

/* Of the computations of a group, from first to last: wait for all messages that any of them needs;
 * write what messages need that wait for one, when all of it was put there. */
lcomm_status lcomm_tape_await(lcomm_run *run, uint32_t first, uint32_t last);
lcomm_status lcomm_tape_announce(lcomm_run *run, uint32_t first, uint32_t last);

/* From first to last, what is no message. */
typedef lcomm_status (*lcomm_tape_member)(lcomm_run *run, uint32_t index);
lcomm_status lcomm_tape_each(lcomm_run *run, uint32_t first, uint32_t last,
                             lcomm_tape_member function);

#endif
