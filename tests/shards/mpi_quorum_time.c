/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 8 */

/* The time of a step where some ranks are slow, for tools/bench/async. A rank sleeps in the place
 * of computing, so ranks that share a processor do not slow each other. Nothing is asserted of
 * times. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "libcomm/base/clock.h"
#include "tests/tensor/tensor_model.h"

static const uint64_t sizes[TENSORS] = {30000, 30000, 30000, 30000};
static const char *const names[TENSORS] = {"a", "b", "c", "d"};

enum { NODES = 4, SLOW = 5 };
static const double COMPUTE_S = 0.04, PAUSE_S = 0.2;

typedef struct trouble {
  double slow; /* times that rank SLOW takes */
  bool pauses; /* every rank, in 5 % of its steps */
} trouble;

static int step_count(void) {
  const char *given = getenv("QUORUM_STEPS");
  return given ? atoi(given) : 6;
}

static void sleep_s(double s) {
  struct timespec time = {.tv_sec = (time_t)s, .tv_nsec = (long)(1e9 * (s - (double)(time_t)s))};
  nanosleep(&time, NULL);
}

/* By numbers of ranks and steps, the same in every case. */
static bool pauses_now(int step) {
  uint64_t x = (uint64_t)step * 0x9e3779b97f4a7c15u + (uint64_t)mpi_rank * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 31) * 0x94d049bb133111ebu;
  return (x >> 33) % 20 == 0;
}

static void compute(const trouble *of, int step) {
  double time_s = COMPUTE_S * (mpi_rank == SLOW ? of->slow : 1);
  sleep_s(time_s + (of->pauses && pauses_now(step) ? PAUSE_S : 0));
}

/* With stale= some results of the last steps are still under way. */
static void take_results(const model *m, lcomm_status (*hand_out)(lcomm_comm *comm, int *there)) {
  for (int there = 1; there;) {
    there = 0;
    require_fine(m, hand_out(m->comm, &there));
  }
}

/* The first step, which makes everything, is not among those that are timed. Without a rank that
 * was skipped nothing waits in the end for the slow one. */
static double time_steps(model *m, const trouble *of, uint64_t *skipped) {
  uint64_t behind = 0;
  double begun_s = 0;
  int steps = step_count();
  for (int step = 0; step <= steps; step++) {
    bool skips = behind > 0;
    if (!skips && step > 0) {
      compute(of, step);
    }
    *skipped += skips;
    for (int t = 0; t < TENSORS && skips; t++) {
      memset(m->data[t], 0, sizes[t] * sizeof(float));
    }
    require_fine(m, step_model(m));
    take_results(m, step == 0 ? lcomm_tensors_sync : lcomm_tensors_next);
    require_fine(m, lcomm_behind(m->comm, &behind));
    if (step == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      begun_s = lcomm_clock_s();
    }
  }
  double mean_s = (lcomm_clock_s() - begun_s) / steps;
  take_results(m, lcomm_tensors_sync);
  return mean_s;
}

static void time_case(const char *title, const char *policy, trouble of) {
  model m;
  uint64_t skipped = 0;
  make_model(&m, policy, NODES, LCOMM_AVG);
  fill_model(&m, 0);
  double mean_s = time_steps(&m, &of, &skipped), slow_s = mean_s;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(&slow_s, 1, MPI_DOUBLE, SLOW, MPI_COMM_WORLD);
  MPI_Bcast(&skipped, 1, MPI_UINT64_T, SLOW, MPI_COMM_WORLD);
  if (mpi_rank == 0) {
    printf("TIME %s: %.2f ms, of rank %d %.2f ms, which skips %d of %d steps\n", title,
           1e3 * mean_s, SLOW, 1e3 * slow_s, (int)skipped, step_count());
    fflush(stdout);
  }
  free_model(&m);
}

static void steps_take_their_time(void) {
  const trouble none = {1, false}, slow = {3, false}, pauses = {1, true};
  time_case("undisturbed, all", "net=int8+ef min=1", none);
  time_case("undisturbed, quorum", "net=int8+ef min=1 quorum=7", none);
  time_case("slow rank, all", "net=int8+ef min=1", slow);
  time_case("slow rank, quorum", "net=int8+ef min=1 quorum=7 late=2", slow);
  time_case("pauses, all", "net=int8+ef min=1", pauses);
  time_case("pauses, quorum", "net=int8+ef min=1 quorum=75% late=2", pauses);
  time_case("undisturbed, stale", "net=int8+ef min=1 stale=2", none);
  time_case("slow rank, stale", "net=int8+ef min=1 stale=2 late=2", slow);
  time_case("slow rank, drop", "net=int8+ef min=1 stale=2:drop late=2", slow);
  time_case("pauses, stale", "net=int8+ef min=1 stale=2 late=2", pauses);
}

static const mpi_property properties[] = {PROPERTY(steps_take_their_time)};
RUN_PROPERTIES(mpi_property_main, properties)
