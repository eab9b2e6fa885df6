/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_OPTIONS_H
#define LCOMM_TOOLS_PERF_PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libcomm.h"
#include "tools/common/tool_options.h"
#include "tools/perf/perf_collective.h"

enum { LCOMM_PERF_POLICIES_MAX = 16, LCOMM_PERF_DTYPES_MAX = 16, LCOMM_PERF_OPS_MAX = 4 };
enum { LCOMM_PERF_ROOT_ALL = -1 };

typedef enum lcomm_perf_boot {
  LCOMM_PERF_BOOT_MPI, /* mpirun starts the ranks, MPI carries barriers and results */
  LCOMM_PERF_BOOT_ENV  /* lcomm_create_env() brings them together; MPI is never called */
} lcomm_perf_boot;

/* From one size to the next: times the factor, or plus the step if that is not 0. */
typedef struct lcomm_perf_sizes {
  uint64_t min_bytes, max_bytes, step_bytes;
  double factor;
} lcomm_perf_sizes;

typedef struct lcomm_perf_sampling {
  int iterations, warmups;
  int batch;     /* operations in a row that are one sample; 0: by their time */
  double late_s; /* in each sample one rank calls so much later; 0: none */
} lcomm_perf_sampling;

/* Measure what hides behind a computation. */
typedef struct lcomm_perf_computation {
  bool wanted;
  double share;   /* of the operation's time, or, if 0, ... */
  double seconds; /* ... of this length */
} lcomm_perf_computation;

/* What the command line asks for. Strings point into argv. */
typedef struct lcomm_perf_options {
  const lcomm_perf_collective *collective;
  lcomm_perf_sizes sizes;
  lcomm_perf_sampling sampling;
  lcomm_op ops[LCOMM_PERF_OPS_MAX];
  int op_count;
  lcomm_dtype dtypes[LCOMM_PERF_DTYPES_MAX];
  int dtype_count;
  int root; /* LCOMM_PERF_ROOT_ALL: each rank in turn */
  const char *policies[LCOMM_PERF_POLICIES_MAX];
  int policy_count;
  bool in_place;
  bool libcomm_memory; /* buffers of lcomm_memory_alloc(), else of malloc */
  bool against_mpi;    /* measure MPI's call in turn with the others */
  bool through_mpi;    /* measure what comes of MPI's call instead of policies */
  bool tensors;        /* every policy through the tensor interface */
  int tensor_count;    /* the buffer in so many tensors, at least 1 */
  bool check;          /* compare results with the exact ones */
  bool percentiles;    /* columns p10, p90, p99 */
  lcomm_perf_computation overlap;
  const char *transport; /* NULL: the library's choice */
  lcomm_progress_mode progress;
  lcomm_perf_boot boot;
  const char *csv_path;       /* NULL: none */
  const char *json_path;      /* NULL: none */
  const char *data_path;      /* NULL: built-in numbers */
  const char *interface_name; /* NULL: none */
} lcomm_perf_options;

/* Read the command line. On TOOL_USAGE `error` (TOOL_ERROR_MAX bytes) holds one sentence. What
 * was read of `boot` is in `options` in any case. */
tool_parse lcomm_perf_options_parse(int argc, char **argv, const lcomm_perf_collective *collective,
                                    lcomm_perf_options *options, char *error);

/* Why the options do not go together, in one sentence; NULL if they do. */
const char *lcomm_perf_options_conflict(const lcomm_perf_options *options);

void lcomm_perf_help(FILE *file, const lcomm_perf_collective *collective);

/* The size after `size_bytes`; more than the largest one when there is none. */
uint64_t lcomm_perf_next_size(const lcomm_perf_options *options, uint64_t size_bytes);

/* "sum", ...; "none" for a collective without. */
const char *lcomm_perf_op_name(lcomm_op op);

#endif
