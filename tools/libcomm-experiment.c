/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* libcomm-experiment: from one file to a report of when compression pays. */

#include <stdio.h>

#include "tools/common/tool_options.h"
#include "tools/experiment/experiment_report.h"
#include "tools/experiment/experiment_runs.h"

static const char program[] = "libcomm-experiment";

static int complain(int status, const char *sentence) {
  fprintf(stderr, "%s: %s\n", program, sentence);
  return status;
}

/* What there is is shown, however the runs ended. */
static int run(experiment *of) {
  char error[EXPERIMENT_ERROR_MAX] = "";
  experiment_verdict verdict = EXPERIMENT_COMPLETE;
  const experiment_options *options = of->options;
  experiment_announce(of);
  if (options->estimate_only) {
    return 0;
  }
  if (!options->report_only) {
    verdict = experiment_run_all(of, error);
  }
  if (error[0] != '\0') {
    complain(verdict, error);
  }
  if (verdict == EXPERIMENT_INTERRUPTED) {
    complain(verdict, "stopped; what was measured is kept, the same command goes on");
  }
  error[0] = '\0';
  if (!experiment_report_write(of, stdout, error)) {
    return complain(verdict == EXPERIMENT_COMPLETE ? EXPERIMENT_TROUBLE : (int)verdict, error);
  }
  return verdict;
}

int main(int argc, char **argv) {
  static experiment_options options;
  static experiment of;
  char error[TOOL_ERROR_MAX] = "";
  tool_parse parse = experiment_options_parse(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer(program, parse, experiment_options_help, error);
  }
  int status =
      experiment_begin(&of, &options, error) ? run(&of) : complain(EXPERIMENT_TROUBLE, error);
  experiment_end(&of);
  return status;
}
