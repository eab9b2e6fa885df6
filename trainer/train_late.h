/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_LATE_H
#define TRAINER_TRAIN_LATE_H

#include <libcomm.h>
#include <stdbool.h>
#include <stdint.h>

#include "trainer/train_peers.h"

/* A training whose steps do not wait for the slowest rank (quorum= of the policy), or not for their
 * own averages (stale=).
 *
 *   step      1     2     3     4     5
 *   others    [ 1 ] [ 2 ] [ 3 ] [ 4 ] [ 5 ]
 *   slow      [      1        ] 2 3 4 [      5        ]
 *
 * When the slow rank has its averages of step 1, those of 2 and 3 are there, and 4 is under way. It
 * computes nothing for these three: it brings zeros, and libcomm sends with them, in step 4, what
 * it computed for step 1. It takes every step, so its weights are those of the others.
 *
 * With stale= averages come in the order of the steps, each once: none after one step, two after
 * another. Each is one update of the weights, by the learning rate of the step that it is of, so
 * the weights of all ranks go through the same values. */
enum { LATE_UNDER_WAY_MOST = 8 /* stale=7, and the step itself */ };

typedef struct late_steps {
  bool may_be;               /* the policy has a quorum, or stale= */
  bool is_stale;             /* it has stale= */
  uint64_t left_out;         /* steps for which this rank has computed nothing */
  uint64_t brought, updates; /* with stale=: steps that were made, and of which weights are */
  float rates[LATE_UNDER_WAY_MOST]; /* of these steps, by number */
  uint64_t age_most;                /* of the gradients of all ranks, */
  double began_s, computed_s;       /* of a step that is slow on purpose: see train_slow.h */
  double age_mean;                  /* see lcomm_staleness */
} late_steps;

struct training;

/* Ranks tell each other of signals only where they wait for each other anyway: in steps that are
 * logged, and where every step waits for all. */
bool late_asks_all(const struct training *self);

/* Does this rank compute nothing for the next step? */
bool late_leaves_out(const struct training *self);

/* A step begins to compute, after a sleep where --late asks for one; it has computed. */
void late_begin(struct training *self);
void late_computed(struct training *self);

/* The step without samples of this rank. Returns the status of the whole step. Collective. */
lcomm_status late_average(struct training *self);

/* What follows the averages of a step: one update, or one of each that is there. With stale= those
 * that are under way, too: before weights are compared, tested or saved. Collective with stale=;
 * 0, or -1 with `why`. */
int late_update(struct training *self, bool spoilt, failure *why);
int late_sync(struct training *self, failure *why);

/* How old gradients were on all ranks so far. Collective; 0, or -1 with `why`. */
int late_gather_ages(struct training *self, failure *why);

/* In the end: one line of each rank that has left out steps. */
void late_report(const struct training *self);

#endif
