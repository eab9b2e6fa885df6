/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/sched/lane.h"

static lcomm_lane lane_of_kind(lcomm_step_kind kind) {
  switch (kind) {
  case LCOMM_STEP_REDUCE:
    return LCOMM_LANE_REDUCE;
  case LCOMM_STEP_DECODE:
    return LCOMM_LANE_DECODE;
  case LCOMM_STEP_ENCODE:
  case LCOMM_STEP_SEND:
  case LCOMM_STEP_RECV:
    break;
  }
  return LCOMM_LANE_ENCODE;
}

/* An ENCODE of what the step wrote waits for it, and perhaps for peers. */
static void encode_beside(const lcomm_schedule *schedule, const lcomm_step *step,
                          lcomm_lane *lanes) {
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t later = schedule->next[step->next_first + i];
    if (schedule->steps[later].kind == LCOMM_STEP_ENCODE) {
      lanes[later] = LCOMM_LANE_REDUCE;
    }
  }
}

void lcomm_schedule_lanes(const lcomm_schedule *schedule, lcomm_lane *lanes) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    lanes[i] = lane_of_kind(schedule->steps[i].kind);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    encode_beside(schedule, &schedule->steps[i], lanes);
  }
}

bool lcomm_lane_joins(const lcomm_schedule *schedule, uint32_t before, uint32_t step) {
  const lcomm_step *first = &schedule->steps[before], *second = &schedule->steps[step];
  return first->kind == LCOMM_STEP_DECODE && second->kind == LCOMM_STEP_DECODE &&
         first->next_count == 0;
}
