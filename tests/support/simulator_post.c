/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/simulator_post.h"

#include <stdlib.h>

void sim_posts_make(sim_posts *posts, const sim_world *world) {
  size_t messages = 0;
  for (int rank = 0; rank < world->size; rank++) {
    const lcomm_schedule *schedule = &world->schedules[rank];
    for (uint32_t i = 0; i < schedule->step_count; i++) {
      messages += lcomm_step_is_message(&schedule->steps[i]);
    }
  }
  posts->room = 16;
  while (posts->room < messages + messages / 4) { /* both sides may post another one */
    posts->room *= 2;
  }
  posts->table = calloc(posts->room, sizeof *posts->table);
}

void sim_posts_free(sim_posts *posts) {
  for (size_t i = 0; i < posts->room; i++) {
    free(posts->table[i].mail);
  }
  free(posts->table);
}

static size_t place_of(const sim_posts *posts, int from, int to, uint32_t message) {
  uint64_t mixed = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) * UINT64_C(0x9e3779b97f4a7c15);
  mixed = (mixed ^ mixed >> 29 ^ message) * UINT64_C(0xbf58476d1ce4e5b9);
  return (size_t)(mixed >> 20) & (posts->room - 1);
}

sim_post *sim_posts_find(sim_posts *posts, int from, int to, uint32_t message) {
  size_t at = place_of(posts, from, to, message);
  for (;; at = (at + 1) & (posts->room - 1)) {
    sim_post *it = &posts->table[at];
    if (!it->used) {
      *it =
          (sim_post){from, to, message, .used = true, .send = SIM_NO_STEP, .receive = SIM_NO_STEP};
      return it;
    }
    if (it->from == from && it->to == to && it->message == message) {
      return it;
    }
  }
}

const sim_post *sim_posts_lost(const sim_posts *posts) {
  for (size_t i = 0; i < posts->room; i++) {
    const sim_post *it = &posts->table[i];
    if (it->used && it->send != SIM_NO_STEP && !it->over) {
      return it;
    }
  }
  return NULL;
}
