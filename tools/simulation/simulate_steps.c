/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_steps.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t more(uint32_t room) {
  return room > 0 ? 2 * room : 64;
}

uint32_t simulate_steps_add(simulate_steps *steps, simulate_step step) {
  if (steps->count == steps->room) {
    uint32_t room = more(steps->room);
    simulate_step *longer = realloc(steps->steps, room * sizeof *longer);
    if (!longer) {
      steps->broken = true;
      return 0;
    }
    steps->steps = longer;
    steps->room = room;
  }
  steps->steps[steps->count] = step;
  return steps->count++;
}

void simulate_steps_order(simulate_steps *steps, uint32_t earlier, uint32_t later) {
  if (steps->pair_count == steps->pair_room) {
    uint32_t room = more(steps->pair_room);
    uint32_t *longer = realloc(steps->pairs, 2 * room * sizeof *longer);
    if (!longer) {
      steps->broken = true;
      return;
    }
    steps->pairs = longer;
    steps->pair_room = room;
  }
  steps->pairs[2 * steps->pair_count] = earlier;
  steps->pairs[2 * steps->pair_count + 1] = later;
  steps->pair_count++;
}

/* The steps that wait for a step lie together. false: a step waits for too many. */
static bool link_steps(simulate_steps *it, uint32_t *next) {
  bool fits = true;
  for (uint32_t i = 0; i < it->pair_count; i++) {
    simulate_step *later = &it->steps[it->pairs[2 * i + 1]];
    it->steps[it->pairs[2 * i]].next_count++;
    fits &= later->waits_for < UINT16_MAX;
    later->waits_for++;
  }
  uint32_t first = 0;
  for (uint32_t i = 0; i < it->count; i++) {
    it->steps[i].next_first = first;
    first += it->steps[i].next_count;
    it->steps[i].next_count = 0;
  }
  for (uint32_t i = 0; i < it->pair_count; i++) {
    simulate_step *earlier = &it->steps[it->pairs[2 * i]];
    next[earlier->next_first + earlier->next_count++] = it->pairs[2 * i + 1];
  }
  return fits;
}

bool simulate_steps_finish(simulate_steps *steps, simulate_program *program, char *why) {
  uint32_t *next = malloc(((size_t)steps->pair_count + 1) * sizeof *next);
  bool whole = next && !steps->broken;
  bool good = whole && link_steps(steps, next);
  if (!good) {
    snprintf(why, SIMULATE_WHY_MAX,
             whole ? "a step waits for more than %u others" : "out of memory for %u steps",
             whole ? (unsigned)UINT16_MAX : steps->count);
    free(next);
    free(steps->steps);
  } else {
    program->steps = steps->steps;
    program->step_count = steps->count;
    program->next = next;
  }
  free(steps->pairs);
  *steps = (simulate_steps){0};
  return good;
}
