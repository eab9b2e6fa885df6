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
  LCOMM_LANE_ENCODE, /* what is sent first */
  LCOMM_LANE_REDUCE, /* complete sums, and what is made of them */
  LCOMM_LANE_DECODE, /* results become values, and what is made of these */
  LCOMM_LANE_COUNT
} lcomm_lane;

/* The lane of each step of a linked schedule: lanes[step_count]. No computation is in a lane before
 * that of another one which it waits for, so lanes wait for lanes before them only. Messages are in
 * no lane; what is written for them means nothing. */
void lcomm_schedule_lanes(const lcomm_schedule *schedule, lcomm_lane *lanes);

#endif
