/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What each computation of a tape waits for: its lane, messages, computations of other lanes. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/tape_internal.h"

/* What a step that comes later has to do with one that it waits for. */
static void relate(const lcomm_schedule *schedule, lcomm_tape_step *steps, uint32_t index,
                   uint32_t later) {
  lcomm_tape_step *one = &steps[index], *other = &steps[later];
  bool sent = lcomm_step_is_message(&schedule->steps[index]),
       needed = lcomm_step_is_message(&schedule->steps[later]);
  other->awaits |= sent && !needed;
  one->announces |= !sent && needed;
  if (!sent && !needed) {
    other->follows[one->lane] = index; /* in program order, so the last one stays */
  }
}

/* Staging out is in the last lane. False without memory. */
static bool find_lanes(const lcomm_schedule *schedule, lcomm_tape_step *steps) {
  lcomm_lane *lanes = calloc((size_t)schedule->step_count + 1, sizeof *lanes);
  if (!lanes) {
    return false;
  }
  lcomm_schedule_lanes(schedule, lanes);
  lanes[schedule->step_count] = LCOMM_LANE_DECODE;
  for (uint32_t i = 0; i <= schedule->step_count; i++) {
    steps[i].lane = lanes[i];
  }
  free(lanes);
  return true;
}

static void relate_all(const lcomm_schedule *schedule, lcomm_tape_step *steps) {
  for (uint32_t i = 0; i <= schedule->step_count; i++) {
    for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
      steps[i].follows[lane] = LCOMM_TAPE_NONE;
    }
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    for (uint32_t k = 0; k < step->next_count; k++) {
      relate(schedule, steps, i, schedule->next[step->next_first + k]);
    }
    if (!lcomm_step_is_message(step)) { /* staging out comes after all */
      steps[schedule->step_count].follows[steps[i].lane] = i;
    }
  }
}

/* A lane has waited already for what it is to wait for, or that is in the lane itself. */
static void drop_needless(const lcomm_schedule *schedule, lcomm_tape_step *steps) {
  int64_t seen[LCOMM_LANE_COUNT][LCOMM_LANE_COUNT];
  memset(seen, 0xff, sizeof(seen)); /* NONE */
  for (uint32_t i = 0; i <= schedule->step_count; i++) {
    lcomm_tape_step *step = &steps[i];
    for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
      int64_t *last = &seen[step->lane][lane], of = step->follows[lane];
      bool waits = lane != (int)step->lane && of > *last;
      step->follows[lane] = waits ? of : LCOMM_TAPE_NONE;
      if (waits) {
        *last = of;
        steps[of].is_joined = true;
      }
    }
  }
}

bool lcomm_tape_relate(const lcomm_schedule *schedule, lcomm_tape_step *steps) {
  if (!find_lanes(schedule, steps)) {
    return false;
  }
  relate_all(schedule, steps);
  drop_needless(schedule, steps);
  return true;
}
