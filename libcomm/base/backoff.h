/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_BACKOFF_H
#define LCOMM_BASE_BACKOFF_H

/* How a polling loop waits: it spins, then yields the core, then sleeps. One step for
 * each look at which nothing had moved. */

#include <limits.h>
#include <stdbool.h>

enum { LCOMM_BACKOFF_ALWAYS = INT_MAX };

/* Set the limits, leave the count 0. A loop that never sleeps yields LCOMM_BACKOFF_ALWAYS. */
typedef struct lcomm_backoff {
  int spins;     /* steps that return at once */
  int yields;    /* steps after these that yield the core */
  long sleep_ns; /* what a later step sleeps; below one second */
  int steps;     /* since the start or the last reset */
} lcomm_backoff;

/* Spin or yield, and return true. False when a sleep is due: the caller sleeps, for a
 * transport can wake it sooner. */
bool lcomm_backoff_awake(lcomm_backoff *it);

/* The same for a caller that nothing wakes: it sleeps here. */
void lcomm_backoff_step(lcomm_backoff *it);

/* Something moved: start again with spins. */
static inline void lcomm_backoff_reset(lcomm_backoff *it) {
  it->steps = 0;
}

#endif
