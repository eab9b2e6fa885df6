/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_EXPERIMENT_MADE_H
#define LCOMM_TESTS_EXPERIMENT_MADE_H

/* An experiment of a file's text, all of whose runs are over and have no figures yet. End it with
 * experiment_end(). Included after cmocka.h. */

#include <stdlib.h>
#include <string.h>

#include "tools/experiment/experiment_runs.h"

static inline void make_experiment(const char *text, const experiment_options *options,
                                   experiment *made) {
  char error[EXPERIMENT_ERROR_MAX];
  memset(made, 0, sizeof *made);
  made->options = options;
  if (!experiment_file_parse(text, strlen(text), &made->file, error)) {
    fail_msg("%s", error);
  }
  made->cases = experiment_matrix_make(&made->file, &made->count);
  made->results = calloc(made->count, sizeof *made->results);
  assert_true(made->cases && made->results);
  for (size_t i = 0; i < made->count; i++) {
    made->results[i].state = EXPERIMENT_GOOD;
  }
}

#endif
