/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_CONTENDER_H
#define LCOMM_TOOLS_PERF_CONTENDER_H

#include <stddef.h>
#include <stdint.h>

#include "libcomm.h"
#include "tools/perf/options.h"

/* One way to do the all-reduce: a policy of libcomm, or MPI_Allreduce. */
typedef struct perf_contender {
  const char *label;
  lcomm_comm *comm;     /* NULL: MPI_Allreduce */
  lcomm_tensor *tensor; /* NULL: plain calls */
  int is_exact;         /* the result must be the exact one */
} perf_contender;

/* Make a contender for in-place all-reduces of `count` elements in `buffer`,
 * which must outlive it. Collective. Returns 0 with a sentence in `error`, the
 * same on all ranks as far as libcomm's errors are. */
int perf_contender_policy(perf_contender *contender, const char *policy,
                          const perf_options *options, void *buffer, uint64_t count, char *error,
                          size_t error_size);
perf_contender perf_contender_mpi(void);

/* One all-reduce of the whole buffer. Returns 0 with a sentence in `error`. */
int perf_contender_run(perf_contender *contender, const perf_options *options, void *buffer,
                       uint64_t count, char *error, size_t error_size);

void perf_contender_destroy(perf_contender *contender);

#endif
