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
  const lcomm_race *race;
  gate *gate;
  size_t number;       /* of the thread */
  interval *intervals; /* of this thread, [repetition * rivals + rival], warm-up first */
} track;

enum { SPINS = 1000 };

/* Returns false when the race is off. */
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

size_t lcomm_race_processors(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return 1;
  }
  return (size_t)CPU_COUNT(&allowed);
}

static void *run_track(void *argument) {
  const track *t = argument;
  const lcomm_race *race = t->race;
  void *lane = race->lanes[t->number];
  pin(t->number);
  uint32_t environment = lcomm_fp_enter();
  for (size_t i = 0; i < (race->repetitions + 1) * race->rivals; i++) {
    if (!pass(t->gate, race->threads)) {
      break;
    }
    t->intervals[i].begin = now();
    for (uint64_t turn = 0; turn < race->turns; turn++) {
      race->run(lane, i % race->rivals);
    }
    t->intervals[i].end = now();
  }
  lcomm_fp_leave(environment);
  return NULL;
}

static lcomm_status run_all(const lcomm_race *race, track *tracks, pthread_t *threads, gate *g) {
  size_t started = 0;
  while (started < race->threads &&
         pthread_create(&threads[started], NULL, run_track, &tracks[started]) == 0) {
    started++;
  }
  if (started < race->threads) {
    atomic_store(&g->broken, true);
  }
  for (size_t i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
  }
  return started == race->threads ? LCOMM_OK : LCOMM_ERR_SYSTEM;
}

/* The warm-up is left out. */
static void collect(const lcomm_race *race, const track *tracks, double *seconds) {
  for (size_t i = 0; i < race->repetitions * race->rivals; i++) {
    double begin = INFINITY, end = -INFINITY;
    for (size_t t = 0; t < race->threads; t++) {
      const interval *run = &tracks[t].intervals[race->rivals + i];
      begin = fmin(begin, run->begin);
      end = fmax(end, run->end);
    }
    seconds[i] = fmax((end - begin) / (double)race->turns, 1e-12);
  }
}

lcomm_status lcomm_race_run(const lcomm_race *race, double *seconds) {
  size_t per_thread = (race->repetitions + 1) * race->rivals;
  gate g = {0};
  lcomm_status status = LCOMM_ERR_MEMORY;
  track *tracks = calloc(race->threads, sizeof *tracks);
  pthread_t *threads = calloc(race->threads, sizeof *threads);
  interval *intervals = calloc(race->threads * per_thread, sizeof *intervals);
  if (tracks && threads && intervals) {
    for (size_t i = 0; i < race->threads; i++) {
      tracks[i] = (track){race, &g, i, intervals + i * per_thread};
    }
    status = run_all(race, tracks, threads, &g);
    if (status == LCOMM_OK) {
      collect(race, tracks, seconds);
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

lcomm_spread lcomm_spread_of(double *values, size_t n) {
  qsort(values, n, sizeof *values, compare);
  return (lcomm_spread){values[0], 0.5 * (values[(n - 1) / 2] + values[n / 2]), values[n - 1]};
}

lcomm_spread lcomm_race_rate(const lcomm_race *race, const double *seconds, size_t rival,
                             double amount) {
  double values[LCOMM_RACE_REPETITIONS_MAX] = {0};
  for (size_t i = 0; i < race->repetitions; i++) {
    values[i] = amount / seconds[i * race->rivals + rival];
  }
  return lcomm_spread_of(values, race->repetitions);
}

lcomm_spread lcomm_race_ratio(const lcomm_race *race, const double *seconds, size_t rival,
                              size_t other) {
  double values[LCOMM_RACE_REPETITIONS_MAX] = {0};
  for (size_t i = 0; i < race->repetitions; i++) {
    values[i] = seconds[i * race->rivals + other] / seconds[i * race->rivals + rival];
  }
  return lcomm_spread_of(values, race->repetitions);
}
