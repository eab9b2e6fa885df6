/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tools/perf/perf_bench.h"
#include "tools/perf/perf_check.h"
#include "tools/perf/perf_mpi_call.h"
#include "tools/perf/perf_world.h"

void lcomm_perf_sleep_until(double time_s) {
  double seconds = floor(time_s);
  struct timespec end = {(time_t)seconds, (long)((time_s - seconds) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
  }
}

int lcomm_perf_is_stopped(lcomm_perf_bench *bench) {
  double signal = lcomm_perf_interrupt_signal();
  lcomm_perf_world_max(&bench->world, &signal, 1);
  bench->signal = (int)signal;
  return bench->signal > 0;
}

static double timeval_s(struct timeval t) {
  return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

double lcomm_perf_cpu_s(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return timeval_s(usage.ru_utime) + timeval_s(usage.ru_stime);
}

void lcomm_perf_expect(lcomm_perf_bench *bench, const lcomm_perf_backend *backend,
                       lcomm_status status) {
  if (status == LCOMM_OK) {
    return;
  }
  char sentence[TOOL_ERROR_MAX];
  const char *text = lcomm_last_error(backend->comm);
  snprintf(sentence, sizeof sentence, "the %s under policy '%s' failed: %s",
           bench->options->collective->name, backend->label,
           text[0] != '\0' ? text : lcomm_status_string(status));
  lcomm_perf_world_stop_together(&bench->world, sentence);
}

static void make_backends(lcomm_perf_stage *stage, lcomm_perf_bench *bench) {
  const lcomm_perf_options *o = bench->options;
  char error[TOOL_ERROR_MAX];
  if (o->against_mpi && lcomm_perf_mpi_can(stage->call)) {
    stage->backends[stage->count++] = lcomm_perf_backend_against(o, stage->call);
  }
  if (o->through_mpi && lcomm_perf_mpi_can(stage->call)) {
    stage->backends[stage->count++] = lcomm_perf_backend_through(stage->call);
  }
  for (int p = 0; p < o->policy_count; p++) {
    lcomm_perf_backend *backend = &stage->backends[stage->count++];
    if (lcomm_perf_backend_make(backend, &bench->world, o, o->policies[p], stage->call,
                                lcomm_perf_buffers_place(&stage->buffers, 0), error,
                                sizeof error) != LCOMM_OK) {
      lcomm_perf_world_stop_together(&bench->world, error);
    }
  }
}

void lcomm_perf_stage_begin(lcomm_perf_stage *stage, lcomm_perf_bench *bench,
                            const lcomm_perf_call *call, int slots) {
  lcomm_perf_input input = {lcomm_perf_pattern_make(call->dtype, bench->world.ranks),
                            &bench->recording, bench->world.rank};
  memset(stage, 0, sizeof *stage);
  stage->call = call;
  if (!lcomm_perf_buffers_make(&stage->buffers, call, &input, slots)) {
    lcomm_perf_world_stop(&bench->world, "there is no memory for buffers of this size");
  }
  make_backends(stage, bench);
  for (int c = 0; c < stage->count; c++) {
    if (!lcomm_perf_samples_make(&stage->samples[c], bench->options->sampling.iterations)) {
      lcomm_perf_world_stop(&bench->world, "there is no memory for so many samples");
    }
  }
}

void lcomm_perf_stage_end(lcomm_perf_stage *stage) {
  for (int c = 0; c < stage->count; c++) {
    lcomm_perf_samples_free(&stage->samples[c]);
    lcomm_perf_backend_destroy(&stage->backends[c]);
  }
  lcomm_perf_buffers_free(&stage->buffers);
}

lcomm_perf_difference lcomm_perf_stage_check(lcomm_perf_stage *stage, const lcomm_perf_bench *bench,
                                             int backend) {
  const lcomm_perf_backend *c = &stage->backends[backend];
  lcomm_perf_place place = lcomm_perf_buffers_place(&stage->buffers, 0);
  return lcomm_perf_check_result(&bench->world, &stage->buffers.input.pattern, stage->call,
                                 c->is_exact, lcomm_perf_backend_result(c, stage->call, place));
}
