/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_CALL_H
#define LCOMM_TOOLS_PERF_PERF_CALL_H

#include "libcomm.h"
#include "tools/perf/perf_collective.h"

/* One operation, the same for everybody who is measured doing it. */
typedef struct lcomm_perf_call {
  const lcomm_perf_collective *collective;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  int root;
  int in_place;
  int libcomm_memory; /* buffers of lcomm_memory_alloc() */
} lcomm_perf_call;

/* Where it reads and writes. In place they lie in one buffer: the part that is
 * smaller is this rank's share of the larger one. */
typedef struct lcomm_perf_place {
  void *send;
  void *receive;
} lcomm_perf_place;

#endif
