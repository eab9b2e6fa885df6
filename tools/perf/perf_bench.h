/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_BENCH_H
#define LCOMM_TOOLS_PERF_PERF_BENCH_H

#include "tools/perf/perf_backend.h"
#include "tools/perf/perf_buffers.h"
#include "tools/perf/perf_options.h"
#include "tools/perf/perf_recording.h"
#include "tools/perf/perf_report.h"
#include "tools/perf/perf_world.h"

enum { LCOMM_PERF_BACKENDS_MAX = LCOMM_PERF_POLICIES_MAX + 1 };

/* One run of the program. */
typedef struct lcomm_perf_bench {
  const lcomm_perf_options *options;
  lcomm_perf_world world;
  int is_host_first;              /* reads the interface counter for its host */
  lcomm_perf_recording recording; /* of --data; empty: built-in numbers */
  lcomm_perf_report report;       /* of rank 0 */
  uint64_t wrong;
  int signal; /* that ends the run, on all ranks; 0: none */
} lcomm_perf_bench;

/* All backends at one size, in turn, so that what disturbs one disturbs all. */
void lcomm_perf_measure(lcomm_perf_bench *bench, const lcomm_perf_call *call);

/* The same of what hides behind computation. */
void lcomm_perf_measure_overlap(lcomm_perf_bench *bench, const lcomm_perf_call *call);

/* A size in preparation: memory and backends. Failures end the program. */
typedef struct lcomm_perf_stage {
  const lcomm_perf_call *call;
  lcomm_perf_buffers buffers;
  lcomm_perf_backend backends[LCOMM_PERF_BACKENDS_MAX];
  lcomm_perf_samples samples[LCOMM_PERF_BACKENDS_MAX];
  int count;
} lcomm_perf_stage;

void lcomm_perf_stage_begin(lcomm_perf_stage *stage, lcomm_perf_bench *bench,
                            const lcomm_perf_call *call, int slots);
void lcomm_perf_stage_end(lcomm_perf_stage *stage);

/* Ends the program if an operation of a backend failed; all ranks know. */
void lcomm_perf_expect(lcomm_perf_bench *bench, const lcomm_perf_backend *backend,
                       lcomm_status status);

/* Compare a backend's result in slot 0 with what it should be. */
lcomm_perf_difference lcomm_perf_stage_check(lcomm_perf_stage *stage, const lcomm_perf_bench *bench,
                                             int backend);

/* Has a signal come to any rank? Kept in bench->signal. Collective. */
int lcomm_perf_is_stopped(lcomm_perf_bench *bench);

/* Sleep until the monotonic clock says so. */
void lcomm_perf_sleep_until(double time_s);

/* Processor time of all threads of this process. */
double lcomm_perf_cpu_s(void);

#endif
