/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What each computation of a tape waits for: its lane, messages, computations of other lanes. */

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda.h"
#include "libcomm/engine/tape_internal.h"
#include "libcomm/sched/lane_group.h"

enum { ALONE_BYTES = 4 << 20, ALONE_PARTS = 8 }; /* of a group, see elements_max */

/* What a step that comes later has to do with one that it waits for. */
static void relate(const lcomm_schedule *schedule, lcomm_tape_step *steps, uint32_t index,
                   uint32_t later) {
  lcomm_tape_step *one = &steps[index], *other = &steps[later];
  bool sent = lcomm_step_is_message(&schedule->steps[index]),
       needed = lcomm_step_is_message(&schedule->steps[later]);
  other->awaits |= sent && !needed;
  one->announces |= !sent && needed;
  if (!sent && !needed) {
    other->follows[one->lane] = one->last; /* in program order, so the last one stays */
  }
}

/* ------------------------------------------------------------ lanes and groups */

/* What crosses of one chunk overlaps with messages of others; where there is one only, its pieces
 * overlap with each other's, but for those of top-k, which are short. Those of a sum whose payloads
 * are so short that it has one chunk are some parts of it. */
static uint64_t elements_max(const lcomm_plan *plan, bool sparse) {
  bool sums = plan->collective == LCOMM_COLLECTIVE_ALLREDUCE;
  uint64_t few = ALONE_BYTES / plan->element_size, part = plan->vector_count / ALONE_PARTS;
  if (sparse || (sums && plan->shape.chunks > 1)) {
    return UINT64_MAX;
  }
  return sums && part > few ? part : few;
}

/* Payloads of dense codecs can be made in groups, and all can be read so. */
static lcomm_group_limits limits_of(const lcomm_plan *plan) {
  lcomm_group_limits limits = {.steps_max = LCOMM_CUDA_LIST_MAX};
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    bool sparse = lcomm_format_is_sparse(&plan->stages[i].format);
    limits.made[i] = !sparse;
    limits.read[i] = true;
    limits.elements_max[i] = elements_max(plan, sparse);
  }
  return limits;
}

/* Staging out is in the last lane. */
static lcomm_status find_lanes(const lcomm_plan *plan, lcomm_tape_step *steps) {
  const lcomm_schedule *schedule = &plan->schedule;
  lcomm_group_limits limits = limits_of(plan);
  lcomm_lane *lanes = calloc((size_t)schedule->step_count + 1, sizeof *lanes);
  uint32_t *last = calloc((size_t)schedule->step_count + 1, sizeof *last);
  lcomm_status status = lanes && last ? LCOMM_OK : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    lcomm_schedule_lanes(schedule, lanes);
    status = lcomm_schedule_groups(schedule, lanes, &limits, last);
    lanes[schedule->step_count] = LCOMM_LANE_DECODE;
    last[schedule->step_count] = schedule->step_count;
  }
  for (uint32_t i = 0; status == LCOMM_OK && i <= schedule->step_count; i++) {
    steps[i].lane = lanes[i];
    steps[i].last = last[i];
  }
  free(lanes);
  free(last);
  return status;
}

uint32_t lcomm_tape_group_first(const lcomm_schedule *schedule, const lcomm_tape_step *steps,
                                uint32_t last) {
  uint32_t first = last;
  for (uint32_t i = last; i-- > 0;) {
    if (lcomm_step_is_message(&schedule->steps[i])) {
      continue;
    }
    if (steps[i].last != last) {
      break;
    }
    first = i;
  }
  return first;
}

/* ----------------------------------------------------------------- waiting */

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

/* How long payloads of top-k are is known when they are made: the proxy waits for that. */
static void announce_sparse(const lcomm_plan *plan, lcomm_tape_step *steps) {
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    steps[i].announces |=
        step->kind == LCOMM_STEP_ENCODE &&
        lcomm_format_is_sparse(&plan->stages[plan->schedule.slots[step->slot].stage].format);
  }
}

/* A group waits as a whole, so for the last of all that its members wait for: its first one does.
 */
static void join_waits(const lcomm_schedule *schedule, lcomm_tape_step *steps) {
  lcomm_tape_step *first = NULL;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    lcomm_tape_step *step = &steps[i];
    if (lcomm_step_is_message(&schedule->steps[i])) {
      continue;
    }
    first = first && first->last == step->last ? first : step;
    for (int lane = 0; first != step && lane < LCOMM_LANE_COUNT; lane++) {
      int64_t of = step->follows[lane];
      first->follows[lane] = first->follows[lane] < of ? of : first->follows[lane];
      step->follows[lane] = LCOMM_TAPE_NONE;
    }
  }
}

/* A group begins as a whole. */
static bool is_group_late(const lcomm_schedule *schedule, const lcomm_tape_step *steps,
                          uint32_t index, const bool *late) {
  bool any = false;
  for (uint32_t i = index; i <= steps[index].last; i++) {
    bool member = !lcomm_step_is_message(&schedule->steps[i]) && steps[i].last == steps[index].last;
    any |= member && late[i];
  }
  return any;
}

/* One pass in program order; how many are late. */
static uint32_t spread_late(const lcomm_schedule *schedule, const lcomm_tape_step *steps,
                            bool *late) {
  uint32_t count = 0;
  bool queue = false; /* lanes may share one */
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (!lcomm_step_is_message(step)) {
      late[i] |= queue || is_group_late(schedule, steps, i, late);
      queue = late[i];
    }
    for (uint32_t k = 0; k < step->next_count; k++) {
      late[schedule->next[step->next_first + k]] |= late[i] || step->kind == LCOMM_STEP_SEND;
    }
    count += late[i];
  }
  return count;
}

void lcomm_tape_find_late(const lcomm_schedule *schedule, const lcomm_tape_step *steps,
                          bool *late) {
  uint32_t before = 0, now = spread_late(schedule, steps, late);
  while (now > before) {
    before = now;
    now = spread_late(schedule, steps, late);
  }
}

/* What lanes have waited for: of each lane, and of each when a step was over, the last step of the
 * others. */
typedef int64_t lane_marks[LCOMM_LANE_COUNT];

static void learn(lane_marks mine, const lane_marks theirs) {
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    mine[lane] = mine[lane] < theirs[lane] ? theirs[lane] : mine[lane];
  }
}

/* A lane has waited already for what it is to wait for, itself or by waiting for a lane that had,
 * or that is in the lane itself. Whether a lane has waited for the first one when it begins, it
 * tells in begins_late. */
static lcomm_status drop_needless(const lcomm_schedule *schedule, lcomm_tape_step *steps,
                                  bool begins_late[LCOMM_LANE_COUNT]) {
  lane_marks seen[LCOMM_LANE_COUNT], *then = calloc((size_t)schedule->step_count + 1, sizeof *then);
  bool begun[LCOMM_LANE_COUNT] = {false};
  if (!then) {
    return LCOMM_ERR_MEMORY;
  }
  memset(seen, 0xff, sizeof(seen)); /* NONE */
  for (uint32_t i = 0; i <= schedule->step_count; i++) {
    lcomm_tape_step *step = &steps[i];
    if (i < schedule->step_count && lcomm_step_is_message(&schedule->steps[i])) {
      continue;
    }
    for (int lane = LCOMM_LANE_COUNT - 1; lane >= 0; lane--) {
      int64_t of = step->follows[lane];
      bool waits = lane != (int)step->lane && of > seen[step->lane][lane];
      step->follows[lane] = waits ? of : LCOMM_TAPE_NONE;
      if (waits) {
        seen[step->lane][lane] = of;
        learn(seen[step->lane], then[of]);
        steps[of].is_joined = true;
      }
    }
    if (!begun[step->lane]) {
      begun[step->lane] = true;
      begins_late[step->lane] = seen[step->lane][LCOMM_LANE_ENCODE] != LCOMM_TAPE_NONE;
    }
    memcpy(then[i], seen[step->lane], sizeof(then[i]));
  }
  free(then);
  return LCOMM_OK;
}

lcomm_status lcomm_tape_relate(const lcomm_plan *plan, lcomm_tape_step *steps,
                               bool waits_for_staging[LCOMM_LANE_COUNT]) {
  bool begins_late[LCOMM_LANE_COUNT] = {false};
  LCOMM_TRY(find_lanes(plan, steps));
  relate_all(&plan->schedule, steps);
  announce_sparse(plan, steps);
  join_waits(&plan->schedule, steps);
  LCOMM_TRY(drop_needless(&plan->schedule, steps, begins_late));
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    waits_for_staging[lane] = false;
  }
  for (uint32_t i = 0; i <= plan->schedule.step_count; i++) {
    bool is_message =
        i < plan->schedule.step_count && lcomm_step_is_message(&plan->schedule.steps[i]);
    lcomm_lane lane = steps[i].lane;
    waits_for_staging[lane] |= !is_message && lane != LCOMM_LANE_ENCODE && !begins_late[lane];
  }
  return LCOMM_OK;
}
