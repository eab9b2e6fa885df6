/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cuda/cuda_work.h"

enum { LAUNCH, COPY, VARIANTS };

/* Launches only join a queue, so a time is that of many and of waiting for the
 * last; the clock is the host's. */
typedef struct worker {
  lcomm_gpu_work *work;
  uint64_t launches;
  size_t copy_size;
  bool broken;
} worker;

static void run(void *argument, size_t variant) {
  worker *own = argument;
  lcomm_gpu_fixture *fixture = own->work->fixture;
  const lcomm_device_table *table = fixture->table;
  if (own->broken) {
    return;
  }
  int error = table->use(fixture->device);
  for (uint64_t i = 0; i < own->launches && error == 0; i++) {
    error = variant == LAUNCH ? lcomm_gpu_work_launch(own->work)
                              : table->copy(fixture->copy_destination, fixture->copy_source,
                                            own->copy_size, fixture->stream);
  }
  own->broken = !lcomm_gpu_good(fixture, error, variant == LAUNCH ? "a launch" : "a copy") ||
                !lcomm_gpu_finish(fixture);
}

size_t lcomm_gpu_copy_size(const lcomm_gpu_case *what, uint64_t count) {
  return (size_t)(lcomm_gpu_case_bytes(what) * (double)count / 2.0) / 16 * 16 + 16;
}

static tool_spread launch_seconds(const tool_timing *timing, const double *seconds,
                                  uint64_t launches) {
  double own[TOOL_REPETITIONS_MAX];
  for (size_t i = 0; i < timing->repetitions; i++) {
    own[i] = seconds[i * VARIANTS + LAUNCH] / (double)launches;
  }
  return tool_spread_of(own, timing->repetitions);
}

static void fill_in(const tool_timing *timing, const double *seconds, const worker *own,
                    lcomm_gpu_figure *figure) {
  double launches = (double)own->launches;
  double moved = figure->bytes * (double)own->work->fixture->count * launches;
  figure->seconds = launch_seconds(timing, seconds, own->launches);
  figure->gb_s = tool_timing_rate(timing, seconds, LAUNCH, 1e-9 * moved);
  figure->copy_gb_s =
      tool_timing_rate(timing, seconds, COPY, 2e-9 * (double)own->copy_size * launches);
  figure->of_copy = tool_timing_ratio(timing, seconds, LAUNCH, COPY);
  if (figure->what->target > 0.0) {
    figure->verdict =
        figure->of_copy.median >= figure->what->target ? LCOMM_GPU_MET : LCOMM_GPU_MISSED;
  }
}

static bool time_it(lcomm_gpu_work *work, size_t samples, uint64_t launches,
                    lcomm_gpu_figure *figure) {
  worker own = {.work = work,
                .launches = launches,
                .copy_size = lcomm_gpu_copy_size(work->what, work->fixture->count)};
  void *const workers[] = {&own};
  tool_timing timing = {.threads = 1,
                        .variants = VARIANTS,
                        .repetitions = samples,
                        .turns = 1,
                        .workers = workers,
                        .run = run};
  double *seconds = malloc(samples * VARIANTS * sizeof *seconds);
  lcomm_status status = seconds ? tool_timing_run(&timing, seconds) : LCOMM_ERR_MEMORY;
  if (status != LCOMM_OK) {
    snprintf(work->fixture->why, sizeof work->fixture->why, "the host cannot time it: %s",
             lcomm_status_string(status));
  } else if (!own.broken) {
    fill_in(&timing, seconds, &own, figure);
  }
  free(seconds);
  return status == LCOMM_OK && !own.broken;
}

/* The kernels alone, for a profiler that looks at each. */
static bool launch_only(lcomm_gpu_work *work, uint64_t launches) {
  int error = 0;
  for (uint64_t i = 0; i < launches && error == 0; i++) {
    error = lcomm_gpu_work_launch(work);
  }
  return lcomm_gpu_good(work->fixture, error, "a launch") && lcomm_gpu_finish(work->fixture);
}

static bool check_and_time(lcomm_gpu_work *work, size_t samples, uint64_t launches,
                           lcomm_gpu_figure *figure) {
  if (samples == 0) {
    return launch_only(work, launches);
  }
  return lcomm_gpu_work_check(work) && time_it(work, samples, launches, figure) &&
         lcomm_gpu_work_check_end(work);
}

lcomm_gpu_figure lcomm_gpu_measure(lcomm_gpu_fixture *fixture, const lcomm_gpu_case *what,
                                   size_t samples, uint64_t launches) {
  lcomm_gpu_figure figure = {
      .what = what, .bytes = lcomm_gpu_case_bytes(what), .verdict = LCOMM_GPU_NO_TARGET};
  lcomm_gpu_work work;
  fixture->why[0] = '\0';
  bool good = lcomm_gpu_work_create(&work, fixture, what) &&
              check_and_time(&work, samples, launches, &figure);
  lcomm_gpu_work_destroy(&work);
  if (!good) {
    figure.verdict = LCOMM_GPU_WRONG;
    memcpy(figure.why, fixture->why, sizeof figure.why);
  }
  return figure;
}

const char *lcomm_gpu_verdict_name(lcomm_gpu_verdict verdict) {
  static const char *const names[] = {[LCOMM_GPU_MET] = "met",
                                      [LCOMM_GPU_MISSED] = "missed",
                                      [LCOMM_GPU_NO_TARGET] = "",
                                      [LCOMM_GPU_WRONG] = "not measured"};
  return names[verdict];
}
