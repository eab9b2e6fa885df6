/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_RUNS_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_RUNS_H

/* All runs of an experiment, one after the other. */

#include "tools/experiment/experiment_options.h"
#include "tools/experiment/experiment_result.h"

typedef struct experiment {
  const experiment_options *options;
  experiment_file file;
  size_t count;
  experiment_case *cases;     /* in the order they run in */
  experiment_result *results; /* of each */
  char cluster[16];           /* the name of its emulated hosts */
} experiment;

typedef enum experiment_verdict {
  EXPERIMENT_COMPLETE = 0,
  EXPERIMENT_WITH_FAILURES = 1,
  EXPERIMENT_TROUBLE = 2,
  EXPERIMENT_NOT_HERE = 77,
  EXPERIMENT_INTERRUPTED = 130
} experiment_verdict;

/* The cases of a file, and the results that its folder has. false with a sentence. */
bool experiment_begin(experiment *made, const experiment_options *options, char *error);
void experiment_end(experiment *of);

/* The folder of a case, and the command that runs it as people read it. */
void experiment_case_folder(const experiment *of, size_t i, char folder[EXPERIMENT_PATH_MAX]);

/* Say what there is to run and how long it takes, about. */
void experiment_announce(const experiment *of);

/* Run what has no result. A sentence in `error` where one is due. */
experiment_verdict experiment_run_all(experiment *of, char *error);

#endif
