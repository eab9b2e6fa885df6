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

double tool_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ------------------------------------------------------------------ threads */

/* A barrier that spins: threads with a processor each leave it at the same moment. */
typedef struct barrier {
  atomic_size_t arrived;
  atomic_size_t round;
  atomic_bool broken; /* a thread could not be started: the others do not wait */
} barrier;

typedef struct interval {
  double begin, end;
} interval;

typedef struct thread_run {
  const tool_timing *timing;
  barrier *barrier;
  size_t number;       /* of the thread */
  interval *intervals; /* of this thread, [repetition * variants + variant], warm-up first */
} thread_run;

enum { SPINS = 1000 };

/* false when the timing is given up. */
static bool pass(barrier *g, size_t threads) {
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
      pthread_setaffinity_np(pthread_self(), sizeof one, &one); /* a hint */
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

static void *run_thread(void *argument) {
  const thread_run *t = argument;
  const tool_timing *timing = t->timing;
  void *worker = timing->workers[t->number];
  pin(t->number);
  if (timing->begin) {
    timing->begin();
  }
  for (size_t i = 0; i < (timing->repetitions + 1) * timing->variants; i++) {
    if (!pass(t->barrier, timing->threads)) {
      break;
    }
    t->intervals[i].begin = tool_now_s();
    for (uint64_t turn = 0; turn < timing->turns; turn++) {
      timing->run(worker, i % timing->variants);
    }
    t->intervals[i].end = tool_now_s();
  }
  return NULL;
}

static lcomm_status run_all(const tool_timing *timing, thread_run *runs, pthread_t *threads,
                            barrier *g) {
  size_t started = 0;
  while (started < timing->threads &&
         pthread_create(&threads[started], NULL, run_thread, &runs[started]) == 0) {
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
static void collect(const tool_timing *timing, const thread_run *runs, double *seconds) {
  for (size_t i = 0; i < timing->repetitions * timing->variants; i++) {
    double begin = INFINITY, end = -INFINITY;
    for (size_t t = 0; t < timing->threads; t++) {
      const interval *run = &runs[t].intervals[timing->variants + i];
      begin = fmin(begin, run->begin);
      end = fmax(end, run->end);
    }
    seconds[i] = fmax((end - begin) / (double)timing->turns, 1e-12);
  }
}

lcomm_status tool_timing_run(const tool_timing *timing, double *seconds) {
  size_t per_thread = (timing->repetitions + 1) * timing->variants;
  barrier g = {0};
  lcomm_status status = LCOMM_ERR_MEMORY;
  thread_run *runs = calloc(timing->threads, sizeof *runs);
  pthread_t *threads = calloc(timing->threads, sizeof *threads);
  interval *intervals = calloc(timing->threads * per_thread, sizeof *intervals);
  if (runs && threads && intervals) {
    for (size_t i = 0; i < timing->threads; i++) {
      runs[i] = (thread_run){timing, &g, i, intervals + i * per_thread};
    }
    status = run_all(timing, runs, threads, &g);
    if (status == LCOMM_OK) {
      collect(timing, runs, seconds);
    }
  }
  free(intervals);
  free(threads);
  free(runs);
  return status;
}

/* ----------------------------------------------------------- what times say */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double tool_percentile(const double *sorted, size_t n, double share) {
  double place = share * (double)(n - 1);
  size_t below = (size_t)place;
  if (below + 1 >= n) {
    return sorted[n - 1];
  }
  return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

double tool_median(double *values, size_t n) {
  return tool_spread_of(values, n).median;
}

tool_spread tool_spread_of(double *values, size_t n) {
  qsort(values, n, sizeof *values, compare);
  return (tool_spread){values[0], tool_percentile(values, n, 0.5), values[n - 1]};
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
