/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/sched/lane_group.h"

#include <stdlib.h>

/* The group that is open: computations first .. last of the schedule, and messages between. */
typedef struct open_group {
  uint32_t first, last, steps;
  uint64_t elements;
} open_group;

typedef struct grouping {
  const lcomm_schedule *schedule;
  const lcomm_lane *lanes;
  const lcomm_group_limits *limits;
  const bool *hears; /* per step: it waits for a message */
} grouping;

static bool is_alike(const grouping *g, uint32_t one, uint32_t other) {
  const lcomm_schedule *schedule = g->schedule;
  const lcomm_step *a = &schedule->steps[one], *b = &schedule->steps[other];
  return a->kind == b->kind && g->lanes[one] == g->lanes[other] && a->feedback == b->feedback &&
         schedule->slots[a->slot].stage == schedule->slots[b->slot].stage;
}

/* Can a group begin with it, or go on? */
static bool is_of_groups(const grouping *g, uint32_t index) {
  const lcomm_step *step = &g->schedule->steps[index];
  if (step->kind == LCOMM_STEP_REDUCE) {
    return false;
  }
  lcomm_stage stage = g->schedule->slots[step->slot].stage;
  if (step->kind == LCOMM_STEP_DECODE) {
    return g->limits->read[stage];
  }
  return g->limits->made[stage] && step->slot_count == 1 && g->lanes[index] == LCOMM_LANE_ENCODE;
}

/* What goes out must not wait for what comes in, nor what something waits for, for more. In the
 * first lane an ENCODE without messages waits for nothing that the lane has not done. */
static bool may_follow(const grouping *g, uint32_t before, uint32_t index) {
  const lcomm_step *step = &g->schedule->steps[index];
  return step->kind == LCOMM_STEP_ENCODE ? !g->hears[index]
                                         : g->schedule->steps[before].next_count == 0;
}

static bool overlaps(const grouping *g, const open_group *group, lcomm_span span) {
  bool any = false;
  for (uint32_t i = group->first; i <= group->last && !any; i++) {
    const lcomm_step *step = &g->schedule->steps[i];
    any = !lcomm_step_is_message(step) && lcomm_span_overlap(step->span, span);
  }
  return any;
}

static bool joins(const grouping *g, const open_group *group, uint32_t index) {
  const lcomm_step *step = &g->schedule->steps[index];
  lcomm_span span = step->span;
  if (step->kind == LCOMM_STEP_REDUCE) {
    return false;
  }
  uint64_t elements = group->elements + lcomm_span_count(span);
  lcomm_stage stage = g->schedule->slots[step->slot].stage;
  return group->steps > 0 && group->steps < g->limits->steps_max &&
         elements <= g->limits->elements_max[stage] && is_of_groups(g, group->first) &&
         is_of_groups(g, index) && is_alike(g, group->first, index) &&
         may_follow(g, group->last, index) && !overlaps(g, group, span);
}

static void close_group(const grouping *g, const open_group *group, uint32_t *last) {
  for (uint32_t i = group->first; group->steps > 0 && i <= group->last; i++) {
    if (!lcomm_step_is_message(&g->schedule->steps[i])) {
      last[i] = group->last;
    }
  }
}

static void find_groups(const grouping *g, uint32_t *last) {
  open_group group = {0};
  for (uint32_t i = 0; i < g->schedule->step_count; i++) {
    last[i] = i;
    if (lcomm_step_is_message(&g->schedule->steps[i])) {
      continue;
    }
    if (!joins(g, &group, i)) {
      close_group(g, &group, last);
      group = (open_group){.first = i};
    }
    group.last = i;
    group.steps++;
    group.elements += lcomm_span_count(g->schedule->steps[i].span);
  }
  close_group(g, &group, last);
}

lcomm_status lcomm_schedule_groups(const lcomm_schedule *schedule, const lcomm_lane *lanes,
                                   const lcomm_group_limits *limits, uint32_t *last) {
  bool *hears = calloc((size_t)schedule->step_count + 1, sizeof *hears);
  if (!hears) {
    return LCOMM_ERR_MEMORY;
  }
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    for (uint32_t k = 0; lcomm_step_is_message(step) && k < step->next_count; k++) {
      hears[schedule->next[step->next_first + k]] = true;
    }
  }
  grouping g = {schedule, lanes, limits, hears};
  find_groups(&g, last);
  free(hears);
  return LCOMM_OK;
}
