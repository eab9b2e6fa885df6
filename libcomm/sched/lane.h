/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SCHED_LANE_H
#define LCOMM_SCHED_LANE_H

/* Lanes: where computations are done one after the other, in program order, each when all that it
 * waits for is over. A device has a stream for each. Nothing overtakes in a lane: an ENCODE that
 * makes a contribution must not stand behind a sum that waits for peers, nor that sum behind the
 * DECODE of another piece. tests/sched/test_lanes.c shows that all collectives end so. */

#include "libcomm/sched/sched.h"

typedef enum lcomm_lane {
  LCOMM_LANE_ENCODE, /* what is there from the beginning is encoded: waits for no message */
  LCOMM_LANE_REDUCE, /* sums, and what is made of results */
  LCOMM_LANE_DECODE, /* results become values */
  LCOMM_LANE_COUNT
} lcomm_lane;

/* The lane of each step of a linked schedule: lanes[step_count]. Messages are in no lane; what is
 * written for them means nothing. */
void lcomm_schedule_lanes(const lcomm_schedule *schedule, lcomm_lane *lanes);

/* May `step` be done together with `before`, the computation before it in program order, when all
 * that either waits for is over? So many DECODEs can be one. Not when something waits for `before`,
 * which would then wait for more: that may be a message to the rank that `step` hears from. */
bool lcomm_lane_joins(const lcomm_schedule *schedule, uint32_t before, uint32_t step);

#endif
