/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_OPTIONS_H
#define LCOMM_TOOLS_CUDA_CUDA_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/tool_options.h"

typedef struct lcomm_gpu_options {
  uint64_t count;             /* values */
  uint64_t samples, launches; /* no samples: only launches */
  uint64_t limit_s;           /* for a case, then the program ends by SIGALRM; 0: none */
  int device;
  const char *only;         /* cases whose name has this; NULL: all */
  const char *torch_script; /* NULL: no comparison with PyTorch */
  const char *json_path, *csv_path;
  bool list; /* say what would be measured, and stop */
} lcomm_gpu_options;

/* Read the command line; strings point into argv. On USAGE `error` (TOOL_ERROR_MAX
 * bytes) holds one sentence. Changes the order of argv. */
tool_parse lcomm_gpu_options_parse(int argc, char **argv, lcomm_gpu_options *options, char *error);

/* Write the text of --help. */
void lcomm_gpu_help(void);

#endif
