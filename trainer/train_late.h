/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_LATE_H
#define TRAINER_TRAIN_LATE_H

#include <libcomm.h>
#include <stdbool.h>
#include <stdint.h>

/* A training whose steps do not wait for the slowest rank (quorum= of the policy).
 *
 *   step      1     2     3     4     5
 *   others    [ 1 ] [ 2 ] [ 3 ] [ 4 ] [ 5 ]
 *   slow      [      1        ] 2 3 4 [      5        ]
 *
 * When the slow rank has its averages of step 1, those of 2 and 3 are there, and 4 is under way. It
 * computes nothing for these three: it brings zeros, and libcomm sends with them, in step 4, what
 * it computed for step 1. It takes every step, so its weights are those of the others. */
typedef struct late_steps {
  bool may_be;       /* the policy has a quorum */
  uint64_t left_out; /* steps for which this rank has computed nothing */
} late_steps;

struct training;

/* Ranks tell each other of signals only where they wait for each other anyway: in steps that are
 * logged, and where every step waits for all. */
bool late_asks_all(const struct training *self);

/* Does this rank compute nothing for the next step? */
bool late_leaves_out(const struct training *self);

/* The step without samples of this rank. Returns the status of the whole step. Collective. */
lcomm_status late_average(struct training *self);

/* In the end: one line of each rank that has left out steps. */
void late_report(const struct training *self);

#endif
