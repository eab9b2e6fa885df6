/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_OPTIONS_H
#define LCOMM_TOOLS_PERF_OPTIONS_H

#include <stdint.h>

#include "libcomm.h"

enum { PERF_POLICIES_MAX = 16 };

/* What the command line asks for. Strings point into argv. */
typedef struct perf_options {
  uint64_t size_min_bytes;
  uint64_t size_max_bytes;
  double factor; /* next size = size * factor */
  int iterations;
  int warmups;
  lcomm_op op;
  lcomm_dtype dtype;
  const char *policies[PERF_POLICIES_MAX];
  int policy_count;
  int against_mpi; /* measure MPI_Allreduce in turn with the policies */
  int tensors;     /* every policy through the tensor interface */
  int check;
  const char *json_path;      /* NULL: none */
  const char *data_path;      /* NULL: built-in numbers */
  const char *interface_name; /* NULL: none */
} perf_options;

typedef enum perf_parse { PERF_RUN, PERF_HELP, PERF_USAGE } perf_parse;

/* Read the command line. On PERF_USAGE `error` holds one sentence. */
perf_parse perf_options_parse(int argc, char **argv, perf_options *options, char *error,
                              size_t error_size);

extern const char perf_help[];

#endif
