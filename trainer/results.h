/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_RESULTS_H
#define TRAINER_RESULTS_H

#include <stdint.h>

#include "trainer/traffic.h"

/* What one epoch, or the whole run, has come to; the same on all ranks. */
typedef struct results {
  int epoch;             /* 1 for the first; of a run, the last */
  uint64_t steps;        /* since the start of the run */
  double loss;           /* mean over the training images of the epoch */
  double accuracy;       /* on the test images, 0..1 */
  double samples_per_s;  /* of training, all ranks together */
  double seconds;        /* with the test */
  traffic moved;         /* by training, all ranks together */
  uint64_t weights_hash; /* the same on all ranks, or the run has failed */
} results;

#endif
