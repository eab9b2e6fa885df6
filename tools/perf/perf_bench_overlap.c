/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <stdlib.h>

#include "tools/common/tool_timing.h"
#include "tools/perf/perf_bench.h"

enum { PROBES = 5 };
#define SLICE_S 1e-3

/* How a computation is imitated: asleep, as a program is while its accelerator
 * works, in slices of equal length. A program's own progress comes between two
 * of them. A slice ends at its time, however long the program took for that: an
 * accelerator does not wait for a processor. */
typedef struct work {
  int slices;
  double slice_s;
} work;

/* Three times of each round. */
typedef struct times {
  int count; /* rounds */
  double *alone_s;
  double *compute_s;
  double *both_s;
} times;

static work make_computation(double seconds) {
  int slices = (int)fmin(ceil(seconds / SLICE_S), 1e6);
  slices = slices > 0 ? slices : 1;
  return (work){slices, seconds / slices};
}

/* Until slice i of a computation that began at begin_s is over. */
static void compute_slice(const work *computation, double begin_s, int i) {
  lcomm_perf_sleep_until(begin_s + (i + 1) * computation->slice_s);
}

static double time_alone(lcomm_perf_stage *stage, lcomm_perf_bench *bench, int c) {
  lcomm_perf_buffers_refill(&stage->buffers, 0);
  lcomm_perf_world_barrier(&bench->world);
  double begin_s = tool_now_s();
  lcomm_perf_expect(bench, &stage->backends[c],
                    lcomm_perf_backend_run(&stage->backends[c], stage->call,
                                           lcomm_perf_buffers_place(&stage->buffers, 0)));
  return tool_now_s() - begin_s;
}

static double time_computation(lcomm_perf_bench *bench, const work *computation) {
  lcomm_perf_world_barrier(&bench->world);
  double begin_s = tool_now_s();
  for (int i = 0; i < computation->slices; i++) {
    compute_slice(computation, begin_s, i);
  }
  return tool_now_s() - begin_s;
}

static lcomm_status run_both(lcomm_perf_stage *stage, const lcomm_perf_bench *bench,
                             lcomm_perf_backend *backend, const work *computation) {
  double begin_s = tool_now_s();
  int calls_progress = bench->options->progress != LCOMM_PROGRESS_THREAD;
  lcomm_status status =
      lcomm_perf_backend_start(backend, stage->call, lcomm_perf_buffers_place(&stage->buffers, 0));
  for (int i = 0; status == LCOMM_OK && i < computation->slices; i++) {
    status = lcomm_perf_backend_ready(backend, (double)i / computation->slices);
    if (status == LCOMM_OK && calls_progress) {
      status = lcomm_progress(backend->comm);
    }
    compute_slice(computation, begin_s, i);
  }
  return status == LCOMM_OK ? lcomm_perf_backend_finish(backend) : status;
}

static double time_both(lcomm_perf_stage *stage, lcomm_perf_bench *bench, int c,
                        const work *computation) {
  lcomm_perf_buffers_renew(&stage->buffers, 0);
  lcomm_perf_world_barrier(&bench->world);
  double begin_s = tool_now_s();
  lcomm_perf_expect(bench, &stage->backends[c],
                    run_both(stage, bench, &stage->backends[c], computation));
  return tool_now_s() - begin_s;
}

/* The computation of a backend: as long as was asked for, or as its own
 * operation takes, which some runs before tell. The first one makes the plan. */
static work prepare(lcomm_perf_stage *stage, lcomm_perf_bench *bench, int c) {
  const lcomm_perf_options *o = bench->options;
  double seconds[PROBES];
  for (int i = 0; i < o->sampling.warmups; i++) {
    (void)time_alone(stage, bench, c);
  }
  if (o->overlap.seconds > 0.0) {
    return make_computation(o->overlap.seconds);
  }
  for (int i = 0; i < PROBES; i++) {
    seconds[i] = time_alone(stage, bench, c);
  }
  double median_s = tool_median(seconds, PROBES);
  lcomm_perf_world_max(&bench->world, &median_s, 1);
  return make_computation(o->overlap.share * median_s);
}

static double slowest_median(const lcomm_perf_bench *bench, double *seconds, int count) {
  lcomm_perf_world_max(&bench->world, seconds, (size_t)count);
  return tool_median(seconds, (size_t)count);
}

static void report(lcomm_perf_stage *stage, lcomm_perf_bench *bench, int c, const times *t) {
  lcomm_perf_row row;
  if (!lcomm_perf_summarise(&bench->world, &stage->backends[c], stage->call, &stage->samples[c],
                            &row)) {
    lcomm_perf_world_stop(&bench->world, "there is no memory for the results");
  }
  lcomm_perf_overlap *overlap = &row.overlap;
  overlap->alone_s = slowest_median(bench, t->alone_s, t->count);
  overlap->compute_s = slowest_median(bench, t->compute_s, t->count);
  overlap->both_s = slowest_median(bench, t->both_s, t->count);
  overlap->hidden = lcomm_perf_hidden(overlap->alone_s, overlap->compute_s, overlap->both_s);
  if (bench->options->check && t->count == bench->options->sampling.iterations) {
    lcomm_perf_row_check(&bench->world, stage->samples[c].difference, &row);
  }
  bench->wrong += row.wrong;
  if (bench->world.rank == 0) {
    lcomm_perf_report_row(&bench->report, &row);
  }
  lcomm_perf_row_free(&row);
}

/* A round of all backends after the other, like any other measurement. */
static void take_rounds(lcomm_perf_stage *stage, lcomm_perf_bench *bench, const work *computations,
                        double *values) {
  int n = bench->options->sampling.iterations, rounds = 0;
  times all[LCOMM_PERF_BACKENDS_MAX];
  for (int round = 0; round < n && !lcomm_perf_is_stopped(bench); round++, rounds++) {
    for (int c = 0; c < stage->count; c++) {
      double *own = values + (ptrdiff_t)c * 3 * n;
      all[c] = (times){round + 1, own, own + n, own + 2 * n};
      all[c].alone_s[round] = time_alone(stage, bench, c);
      all[c].compute_s[round] = time_computation(bench, &computations[c]);
      all[c].both_s[round] = time_both(stage, bench, c, &computations[c]);
      if (bench->options->check && round == n - 1) {
        stage->samples[c].difference = lcomm_perf_stage_check(stage, bench, c);
      }
    }
  }
  for (int c = 0; rounds > 0 && c < stage->count; c++) {
    report(stage, bench, c, &all[c]);
  }
}

void lcomm_perf_measure_overlap(lcomm_perf_bench *bench, const lcomm_perf_call *call) {
  lcomm_perf_stage stage;
  work computations[LCOMM_PERF_BACKENDS_MAX];
  double *values = calloc((size_t)bench->options->sampling.iterations * 3 * LCOMM_PERF_BACKENDS_MAX,
                          sizeof *values);
  if (!values) {
    lcomm_perf_world_stop(&bench->world, "there is no memory for so many samples");
  }
  lcomm_perf_stage_begin(&stage, bench, call, 1);
  for (int c = 0; c < stage.count; c++) {
    computations[c] = prepare(&stage, bench, c);
  }
  take_rounds(&stage, bench, computations, values);
  lcomm_perf_stage_end(&stage);
  free(values);
}
