/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_GROUP_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_GROUP_H

/* Runs that differ in seed and repetition only, together. */

#include "tools/experiment/experiment_runs.h"

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
  double step_s, compute_s, encode_s, decode_s, wait_s; /* of a step */
  size_t epoch_count;
  experiment_epoch epochs[EXPERIMENT_EPOCHS_MAX];                   /* means */
  double least[EXPERIMENT_EPOCHS_MAX], most[EXPERIMENT_EPOCHS_MAX]; /* of their accuracies */

  size_t row_count; /* of collectives, by size */
  experiment_row rows[EXPERIMENT_ROWS_MAX];

  double speedup; /* against exact in the same place: time per epoch, or of the largest size;
                     0: not known */
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

/* Bits per second of a rate; 0: not limited. */
double experiment_rate_bits(const char *rate);

bool experiment_group_is_exact(const experiment_group *of);

/* "4 hosts x 1, mlp, 20 ms". Returns text. */
const char *experiment_place_name(const experiment_group *of, char *text, size_t size);

#endif
