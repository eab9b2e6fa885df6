/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SCHEDULE_H
#define TRAINER_TRAIN_SCHEDULE_H

#include <stdint.h>

/* The learning rate over a run: it rises linearly in the first steps, then follows a curve. Only
 * + - * /, which every processor rounds alike. */

typedef enum schedule_kind {
  SCHEDULE_COSINE,   /* a smooth fall to zero, of the shape of a half cosine */
  SCHEDULE_STEP,     /* a tenth from the middle of the run on, a hundredth from three quarters on */
  SCHEDULE_CONSTANT, /* the peak */
  SCHEDULE_COUNT
} schedule_kind;

typedef struct schedule {
  schedule_kind kind;
  float peak;
  float warmup; /* share of the steps in which the rate rises */
  uint64_t steps;
} schedule;

/* The rate of step 0 .. steps-1; 0 beyond, but where it is constant. */
float schedule_rate(const schedule *self, uint64_t step);

/* "cosine", and the kind of such a name; SCHEDULE_COUNT: none. */
const char *schedule_name(schedule_kind kind);
schedule_kind schedule_find(const char *name);

/* The rate of a cosine with a rise of a twentieth of the run. */
float optimizer_rate(float peak, uint64_t step, uint64_t steps);

#endif
