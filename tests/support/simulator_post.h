/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SIMULATOR_POST_H
#define LCOMM_TESTS_SIMULATOR_POST_H

/* Messages of the simulator, found by sender, receiver and number: a sender and a receiver that
 * have posted the same one. */

#include "tests/support/simulator.h"

enum { SIM_NO_STEP = UINT32_MAX };

typedef struct sim_post {
  int from, to;
  uint32_t message;
  bool used, over;        /* this place of the table; both sides are over */
  uint32_t send, receive; /* steps that have posted it; SIM_NO_STEP: none yet */
  uint64_t count;
  sim_element *mail; /* of an eager message: what was sent; mine */
} sim_post;

typedef struct sim_posts {
  sim_post *table;
  size_t room; /* a power of two */
} sim_posts;

/* Room for the messages of all schedules of a world. */
void sim_posts_make(sim_posts *posts, const sim_world *world);
void sim_posts_free(sim_posts *posts);

/* That message, new where nobody has posted it. */
sim_post *sim_posts_find(sim_posts *posts, int from, int to, uint32_t message);

/* One that was sent and is not over; NULL: none. */
const sim_post *sim_posts_lost(const sim_posts *posts);

#endif
