/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_OPTIONS_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_OPTIONS_H

#include "tools/common/tool_options.h"
#include "tools/experiment/experiment_programs.h"

typedef struct experiment_options {
  const char *file;
  const char *out_asked;         /* NULL: build/experiments/NAME of the file */
  char out[EXPERIMENT_PATH_MAX]; /* the folder of results, as an absolute path */
  bool estimate_only;
  bool report_only;
  bool mix_machines;
} experiment_options;

tool_parse experiment_options_parse(int argc, char **argv, experiment_options *o, char *error);
void experiment_options_help(void);

#endif
