/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SCHED_LANE_GROUP_H
#define LCOMM_SCHED_LANE_GROUP_H

/* Groups: computations that a lane (lane.h) does as one, because one call of a device for many
 * costs what one call for one does. A group begins when all that one of it waits for is over, and
 * is over as a whole. tests/sched/test_lanes.c shows that all collectives still end. */

#include "libcomm/sched/lane.h"

typedef struct lcomm_group_limits {
  /* Whose payloads can be made, and read, in groups. */
  bool made[LCOMM_STAGE_COUNT], read[LCOMM_STAGE_COUNT];
  uint32_t steps_max;
  uint64_t elements_max[LCOMM_STAGE_COUNT];
} lcomm_group_limits;

/* last[i]: the last step of the group of computation i, which may be itself. last[step_count]; what
 * is written for messages means nothing. Members are of one lane, kind and stage, with nothing but
 * messages between them in program order; their spans do not overlap. Of a group with more than
 * one member, only the first may wait for messages where it is of ENCODEs, and nothing waits for
 * any but the last where it is of DECODEs. MEMORY. */
lcomm_status lcomm_schedule_groups(const lcomm_schedule *schedule, const lcomm_lane *lanes,
                                   const lcomm_group_limits *limits, uint32_t *last);

#endif
