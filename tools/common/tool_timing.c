/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_timing.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/kernels.h"

/* A barrier for threads that own a processor each: nobody sleeps, so all are
 * off at the same moment. */
typedef struct gate {
  atomic_size_t arrived;
  atomic_size_t round;
  atomic_bool broken; /* a thread could not be started: nobody waits */
} gate;

typedef struct interval {
  double begin, end;
} interval;

typedef struct track {
  const tool_timing *timing;
  gate *gate;
  size_t number;       /* of the thread */
  interval *intervals; /* of this thread, [repetition * variants + variant], warm-up first */
} track;

enum { SPINS = 1000 };

/* Returns false when the timing is off. */
static bool pass(gate *g, size_t threads) {
  size_t round = atomic_load(&g->round);
  if (atomic_fetch_add(&g->arrived, 1) + 1 == threads) {
    atomic_store(&g->arrived, 0);
    atomic_fetch_add(&g->round, 1);
    return !atomic_load(&g->broken);
  }
  for (size_t spin = 0; atomic_load(&g->round) == round && !atomic_load(&g->broken); spin++) {
    if (spin > SPINS) {
      sched_yield();
    }
  }
  return !atomic_load(&g->broken);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The number-th processor this process may use, round and round. */
static void pin(size_t number) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return;
  }
  size_t skip = number % (size_t)CPU_COUNT(&allowed);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      pthread_setaffinity_np(pthread_self(), sizeof one, &one); /* a wish */
      return;
    }
  }
}

size_t tool_timing_processors(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return 1;
  }
  return (size_t)CPU_COUNT(&allowed);
}

static void *run_track(void *argument) {
  const track *t = argument;
  const tool_timing *timing = t->timing;
  void *worker = timing->workers[t->number];
  pin(t->number);
  uint32_t environment = lcomm_fp_enter();
  for (size_t i = 0; i < (timing->repetitions + 1) * timing->variants; i++) {
    if (!pass(t->gate, timing->threads)) {
      break;
    }
    t->intervals[i].begin = now();
    for (uint64_t turn = 0; turn < timing->turns; turn++) {
      timing->run(worker, i % timing->variants);
    }
    t->intervals[i].end = now();
  }
  lcomm_fp_leave(environment);
  return NULL;
}

static lcomm_status run_all(const tool_timing *timing, track *tracks, pthread_t *threads, gate *g) {
  size_t started = 0;
  while (started < timing->threads &&
         pthread_create(&threads[started], NULL, run_track, &tracks[started]) == 0) {
    started++;
  }
  if (started < timing->threads) {
    atomic_store(&g->broken, true);
  }
  for (size_t i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
  }
  return started == timing->threads ? LCOMM_OK : LCOMM_ERR_SYSTEM;
}

/* The warm-up is left out. */
static void collect(const tool_timing *timing, const track *tracks, double *seconds) {
  for (size_t i = 0; i < timing->repetitions * timing->variants; i++) {
    double begin = INFINITY, end = -INFINITY;
    for (size_t t = 0; t < timing->threads; t++) {
      const interval *run = &tracks[t].intervals[timing->variants + i];
      begin = fmin(begin, run->begin);
      end = fmax(end, run->end);
    }
    seconds[i] = fmax((end - begin) / (double)timing->turns, 1e-12);
  }
}

lcomm_status tool_timing_run(const tool_timing *timing, double *seconds) {
  size_t per_thread = (timing->repetitions + 1) * timing->variants;
  gate g = {0};
  lcomm_status status = LCOMM_ERR_MEMORY;
  track *tracks = calloc(timing->threads, sizeof *tracks);
  pthread_t *threads = calloc(timing->threads, sizeof *threads);
  interval *intervals = calloc(timing->threads * per_thread, sizeof *intervals);
  if (tracks && threads && intervals) {
    for (size_t i = 0; i < timing->threads; i++) {
      tracks[i] = (track){timing, &g, i, intervals + i * per_thread};
    }
    status = run_all(timing, tracks, threads, &g);
    if (status == LCOMM_OK) {
      collect(timing, tracks, seconds);
    }
  }
  free(intervals);
  free(threads);
  free(tracks);
  return status;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

tool_spread tool_spread_of(double *values, size_t n) {
  qsort(values, n, sizeof *values, compare);
  return (tool_spread){values[0], 0.5 * (values[(n - 1) / 2] + values[n / 2]), values[n - 1]};
}

tool_spread tool_timing_rate(const tool_timing *timing, const double *seconds, size_t variant,
                             double amount) {
  double values[TOOL_REPETITIONS_MAX] = {0};
  for (size_t i = 0; i < timing->repetitions; i++) {
    values[i] = amount / seconds[i * timing->variants + variant];
  }
  return tool_spread_of(values, timing->repetitions);
}

tool_spread tool_timing_ratio(const tool_timing *timing, const double *seconds, size_t variant,
                              size_t other) {
  double values[TOOL_REPETITIONS_MAX] = {0};
  for (size_t i = 0; i < timing->repetitions; i++) {
    values[i] = seconds[i * timing->variants + other] / seconds[i * timing->variants + variant];
  }
  return tool_spread_of(values, timing->repetitions);
}
