/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SLOW_H
#define TRAINER_TRAIN_SLOW_H

#include <stdint.h>

/* Ranks that are slow on purpose (--late): to try out what policies make of them. They sleep, so
 * that ranks on the same processors are not slowed down, too. */
typedef struct slowness {
  int rank;       /* that takes `factor` times as long to compute; factor 0: none is slow */
  double factor;  /* 1 to 100 */
  double pause_s; /* of each rank besides, */
  double share;   /* in so many of its steps, 0 to 1 */
} slowness;

/* Add "rank=3:x3" or "pause=200ms:5%". Returns 0, or -1 if it is neither. */
int slow_read(const char *text, slowness *made);

/* How long a rank sleeps in a step, whose computation takes so long. */
double slow_sleep_s(const slowness *of, int rank, uint64_t step, double computed_s);

#endif
