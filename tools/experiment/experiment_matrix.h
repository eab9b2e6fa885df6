/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_MATRIX_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_MATRIX_H

/* The runs of an experiment: every combination of what its lists name. */

#include "tools/experiment/experiment_file.h"

enum { EXPERIMENT_CASE_NAME_MAX = 192 };

typedef struct experiment_case {
  const experiment_workload *of;
  const char *policy; /* "": exact */
  const char *rate;   /* "": not limited */
  const char *model;  /* "": none */
  double delay_ms;
  experiment_world world;
  uint64_t seed;
  int repetition;                      /* from 1 */
  char name[EXPERIMENT_CASE_NAME_MAX]; /* of its folder: unique in the experiment */
} experiment_case;

/* All of them, in the order they run in: one repetition after the other, each in a random order of
 * its own that the seed decides, so that a disturbance of the machine does not meet one policy
 * alone. To be freed; they point into the file. NULL: no memory. */
experiment_case *experiment_matrix_make(const experiment_file *file, size_t *count);

/* How people read a policy: "exact" for "". */
const char *experiment_policy_name(const char *policy);

#endif
