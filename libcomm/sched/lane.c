/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/sched/lane.h"

/* A part of a sum, whose other summands wait for nothing of peers, is as early as what is sent. */
static lcomm_lane first_lane_of(const lcomm_step *step) {
  if (step->kind == LCOMM_STEP_DECODE) {
    return LCOMM_LANE_DECODE;
  }
  return step->kind == LCOMM_STEP_REDUCE && step->summed ? LCOMM_LANE_REDUCE : LCOMM_LANE_ENCODE;
}

/* Steps come behind those that they wait for. */
static void follow(const lcomm_schedule *schedule, const lcomm_step *step, lcomm_lane lane,
                   lcomm_lane *lanes) {
  for (uint32_t i = 0; i < step->next_count; i++) {
    lcomm_lane *later = &lanes[schedule->next[step->next_first + i]];
    *later = *later < lane ? lane : *later;
  }
}

void lcomm_schedule_lanes(const lcomm_schedule *schedule, lcomm_lane *lanes) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    lanes[i] = first_lane_of(&schedule->steps[i]);
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    if (!lcomm_step_is_message(&schedule->steps[i])) {
      follow(schedule, &schedule->steps[i], lanes[i], lanes);
    }
  }
}
