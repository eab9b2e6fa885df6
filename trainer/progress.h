/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_PROGRESS_H
#define TRAINER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* How far an epoch is: a bar on a terminal, else a plain line now and then.
 * Prints on rank 0 only. */
typedef struct progress {
  bool talks;
  bool live;
  int epoch;
  int epochs;
  uint64_t steps;
  int images_per_step; /* of all ranks together */
  double began_s;
  double shown_s;
  double loss; /* of recent steps of this rank */
} progress;

double progress_now_s(void);

progress progress_begin(int rank, int epoch, int epochs, uint64_t steps, int images_per_step);

/* `step` steps are done, the last one with this loss. */
void progress_show(progress *self, uint64_t step, double loss);

/* Take the bar away. */
void progress_end(progress *self);

#endif
