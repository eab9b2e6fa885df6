/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* The thread level is the one that was asked for, whatever the interposer needs for itself.
 * The first argument says which to ask for (single, funneled, serialized, multiple);
 * without one it is MPI_Init. script_interposer_policies.sh runs them all. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"

enum { THREADS = 3, COUNT = 20000, ROUNDS = 5 };

static int asked = -1; /* -1: MPI_Init */

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=64K");
}

static void the_level_is_the_one_asked_for(void) {
  int level = -1, wanted = asked < 0 ? MPI_THREAD_SINGLE : asked;
  require(mpi_threads == wanted, "level %d, not %d", mpi_threads, wanted);
  MPI_Query_thread(&level);
  require(level == wanted, "MPI_Query_thread says %d, not %d", level, wanted);
}

static void this_is_the_main_thread(void) {
  int is_main = 0, initialised = 0, finalised = 1;
  MPI_Is_thread_main(&is_main);
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  require(is_main && initialised && !finalised, "main %d, initialised %d, finalised %d", is_main,
          initialised, finalised);
}

static void sums_work_at_every_level(void) {
  for (int function = 0; function <= INTERPOSER_REDUCE_SCATTER_BLOCK; function++) {
    interposer_call call =
        float_sum((interposer_function)function, MPI_COMM_WORLD, mpi_size * COUNT);
    if (interposer_function_exists(call.function)) {
      require(is_compressed(&call) == compresses(MPI_COMM_WORLD), "%s",
              interposer_function_names[function]);
    }
  }
}

/* --------------------------------------------------------- several threads */

typedef struct worker {
  pthread_t thread;
  MPI_Comm comm;
  float expected[COUNT], values[COUNT];
  int wrong;
} worker;

static void sum_here(worker *w, float *values, int round) {
  MPI_Request request;
  fill_probe(values, COUNT, (uint64_t)mpi_rank + 1);
  if (round % 2) {
    MPI_Iallreduce(MPI_IN_PLACE, values, COUNT, MPI_FLOAT, MPI_SUM, w->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Allreduce(MPI_IN_PLACE, values, COUNT, MPI_FLOAT, MPI_SUM, w->comm);
  }
}

static void *work(void *argument) {
  worker *w = argument;
  for (int round = 0; round < ROUNDS; round++) {
    sum_here(w, w->values, round);
    w->wrong += memcmp(w->values, w->expected, sizeof(w->values)) != 0;
  }
  return NULL;
}

static void threads_sum_on_communicators_of_their_own(void) {
  static worker workers[THREADS];
  if (asked != MPI_THREAD_MULTIPLE) {
    skip_property("that needs MPI_THREAD_MULTIPLE");
    return;
  }
  for (int i = 0; i < THREADS; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    sum_here(&workers[i], workers[i].expected, 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(workers[i].thread, NULL);
    require(workers[i].wrong == 0, "thread %d had %d wrong sums", i, workers[i].wrong);
    MPI_Comm_free(&workers[i].comm);
  }
}

/* Take the level from the arguments, which then look as those of other tests. */
static void take_level(int *argc, char **argv) {
  static const struct {
    const char *name;
    int level;
  } levels[] = {{"single", MPI_THREAD_SINGLE},
                {"funneled", MPI_THREAD_FUNNELED},
                {"serialized", MPI_THREAD_SERIALIZED},
                {"multiple", MPI_THREAD_MULTIPLE}};
  for (size_t i = 0; *argc > 1 && i < sizeof(levels) / sizeof(levels[0]); i++) {
    if (strcmp(argv[1], levels[i].name) == 0) {
      asked = levels[i].level;
      memmove(&argv[1], &argv[2], (size_t)(*argc - 1) * sizeof *argv);
      --*argc;
      return;
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(the_level_is_the_one_asked_for),
    PROPERTY(this_is_the_main_thread),
    PROPERTY(sums_work_at_every_level),
    PROPERTY(threads_sum_on_communicators_of_their_own),
};

int main(int argc, char **argv) {
  take_level(&argc, argv);
  return asked < 0 ? interposer_property_main(&argc, &argv, before, WITH_COUNT(properties))
                   : interposer_property_main_threads(&argc, &argv, before, asked,
                                                      WITH_COUNT(properties));
}
