/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* simulate: training steps on machines that are not there, event by event, over the schedules,
 * plans and policies of the library. The parts are in simulation/. */

#include <stdio.h>

#include "tools/common/tool_table.h"
#include "tools/simulation/simulate_report.h"

enum { FAILED = 1, TROUBLE = 2 };

static const char program[] = "simulate";

static int show(const simulate_study *study, int argc, char **argv) {
  bool json = study->options->json;
  bool good = json ? simulate_report_json(study, argc, argv, stdout)
                   : simulate_report_print(study, stdout, tool_table_colours(stdout));
  if (!good || fflush(stdout) != 0) {
    fprintf(stderr, "%s: not everything could be printed\n", program);
    return TROUBLE;
  }
  for (size_t i = 0; i < study->count; i++) {
    if (!study->cases[i].done) {
      fprintf(stderr, "%s: %s\n", program, study->cases[i].why);
      return FAILED;
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  static simulate_options options;
  char error[TOOL_ERROR_MAX] = "", why[SIMULATE_WHY_MAX] = "";
  simulate_study study;
  tool_parse parse = simulate_options_parse(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer(program, parse, simulate_options_help, error);
  }
  if (options.list_links) {
    simulate_links_list(stdout);
    return 0;
  }
  if (!simulate_study_run(&options, &study, why)) {
    fprintf(stderr, "%s: %s\n", program, why);
    return TROUBLE;
  }
  int status = show(&study, argc, argv);
  simulate_study_free(&study);
  return status;
}
