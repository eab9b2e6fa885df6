/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_OPTIONS_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_OPTIONS_H

/* The command line of fidelity_bench. */

#include "tools/common/tool_options.h"
#include "tools/fidelity/fidelity_case.h"

typedef struct fidelity_options {
  fidelity_grid grid;
  const char *data;    /* folder of images; NULL: looked for */
  const char *results; /* file of results, which is read and added to */
  const char *csv;     /* NULL: none */
  const char *plot;    /* beginning of the names of pictures; NULL: none */
  int jobs;            /* trainings at once */
  bool train;          /* else only what is in the file is shown */
} fidelity_options;

/* Views of the arguments. `error` has TOOL_ERROR_MAX bytes. */
tool_parse fidelity_options_parse(int argc, char **argv, fidelity_options *made, char *error);

void fidelity_options_help(void);

#endif
