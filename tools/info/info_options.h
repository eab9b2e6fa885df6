/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_OPTIONS_H
#define LCOMM_TOOLS_INFO_INFO_OPTIONS_H

/* What libcomm-info was asked. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm.h"

enum {
  INFO_BAD_INPUT = 2,
  INFO_SIZES_MAX = 32,
  INFO_NUMBER_MAX = 1 << 20,
  INFO_SIDE_MAX = 1 << 30,     /* rows, or columns, of a matrix */
  INFO_ELEMENTS_MAX = 1 << 30, /* of it */
};

typedef struct info_options {
  const char *policy, *topology_file;
  int ranks, nodes, rank;
  uint64_t sizes[INFO_SIZES_MAX];
  size_t size_count;
  uint64_t rows, columns; /* of a matrix; 0: none is asked for */
  lcomm_dtype dtype;
  bool tensor, only_env, only_topology, only_plan, json, measure, device;
} info_options;

/* 0 to go on, INFO_BAD_INPUT with a sentence, or -1 when all has been said. */
int info_parse_options(int argc, char **argv, info_options *o);

/* Say what is wrong with an option; INFO_BAD_INPUT. */
int info_complain(const char *what, const char *value);

#endif
