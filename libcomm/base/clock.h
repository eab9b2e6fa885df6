/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_CLOCK_H
#define LCOMM_BASE_CLOCK_H

#include <time.h>

/* Seconds on a clock that never jumps. */
static inline double lcomm_clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
