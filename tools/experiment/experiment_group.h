/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_GROUP_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_GROUP_H

/* Runs that differ in seed and repetition only, together. */

#include "tools/experiment/experiment_runs.h"

/* What a simulation says (experiment_simulation.h); 0: nothing. */
typedef struct experiment_simulated {
  bool tried;         /* these are emulated links */
  double step_s;      /* of trainings, the mean of all steps */
  double exact_share; /* of these steps, which policies with a warm-up begin with */
  double row_s[EXPERIMENT_ROWS_MAX];
  double speedup;               /* against exact, simulated too */
  char command[1536];           /* that gives the last of these times */
  char why[EXPERIMENT_WHY_MAX]; /* a sentence where there is none */
} experiment_simulated;

/* Means of the runs that have results. */
typedef struct experiment_group {
  const experiment_workload *of;
  experiment_world world;
  const char *policy, *rate, *model; /* pointers into the file */
  double delay_ms;
  size_t runs, failed;

  double epoch_s;                                 /* of trainings; 0: there is none */
  double to_s;                                    /* until the accuracy; 0: not by all seeds */
  double accuracy, accuracy_least, accuracy_most; /* at the end, over the seeds */
  double sent_bytes, interface_bytes;             /* of a run, all ranks, between nodes */
  double samples_per_s;                           /* 0: not known */
  double steps;                                   /* of a run */
  double step_s, compute_s, encode_s, decode_s, wait_s, wire_s; /* of a step */
  size_t epoch_count;
  experiment_epoch epochs[EXPERIMENT_EPOCHS_MAX];                   /* means */
  double least[EXPERIMENT_EPOCHS_MAX], most[EXPERIMENT_EPOCHS_MAX]; /* of their accuracies */

  size_t row_count; /* of collectives, by size */
  experiment_row rows[EXPERIMENT_ROWS_MAX];

  double speedup; /* against exact in the same place: time per epoch, or of the largest size;
                     0: not known */
  experiment_simulated simulated;
} experiment_group;

typedef struct experiment_groups {
  const experiment *of;
  size_t count;
  experiment_group *groups; /* policies of a place stand together, then rates from slow to fast */
} experiment_groups;

/* false: no memory. */
bool experiment_groups_make(const experiment *of, experiment_groups *made);
void experiment_groups_free(experiment_groups *of);

/* Everything but the policy and the rate: what a picture shows. */
bool experiment_same_place(const experiment_group *a, const experiment_group *b);

/* Is the run one of the group's? */
bool experiment_group_has(const experiment_group *of, const experiment_case *run);

/* Exact in the same place at the same rate, if it has results; else NULL. */
const experiment_group *experiment_find_exact(const experiment_groups *of,
                                              const experiment_group *as);

/* Simulated time over measured time of a training; 0: not known. */
double experiment_simulated_share(const experiment_group *of);

/* Bits per second of a rate; 0: not limited. */
double experiment_rate_bits(const char *rate);

bool experiment_group_is_exact(const experiment_group *of);

/* "4 hosts x 1, mlp, 20 ms". Returns text. */
const char *experiment_place_name(const experiment_group *of, char *text, size_t size);

#endif
