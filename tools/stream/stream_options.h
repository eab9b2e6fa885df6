/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_STREAM_STREAM_OPTIONS_H
#define LCOMM_TOOLS_STREAM_STREAM_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/common/tool_options.h"

typedef struct stream_options {
  const char *only; /* NULL: all cases */
  const char *policy, *json_path;
  uint64_t samples, limit_s;
  int nodes;
  bool list;
} stream_options;

tool_parse stream_options_parse(int argc, char **argv, stream_options *options, char *error);
void stream_help(void);

#endif
