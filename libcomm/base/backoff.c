/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/backoff.h"

#include <sched.h>
#include <time.h>

bool lcomm_backoff_awake(lcomm_backoff *it) {
  int step = it->steps;
  if (step < it->spins) {
    it->steps++;
    return true;
  }
  if (step - it->spins >= it->yields) {
    return false;
  }
  it->steps += it->yields < LCOMM_BACKOFF_ALWAYS;
  sched_yield();
  return true;
}

void lcomm_backoff_step(lcomm_backoff *it) {
  const struct timespec pause = {.tv_nsec = it->sleep_ns};
  if (!lcomm_backoff_awake(it)) {
    nanosleep(&pause, NULL);
  }
}
