/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 */

/* Ten thousand communicators and requests leave nothing behind: memory, file
 * descriptors, threads and shared memory are as they were after the first thousand. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"
#include "tests/support/process_counts.h"

enum { WARM_UP = 1000, ROUNDS = 10000, FLOATS = 2048 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=4K");
}

/* Sanitizers keep freed memory, and are slow. */
static bool is_sanitized(void) {
  return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init");
}

typedef struct usage {
  long memory_kib, files, threads, shared;
} usage;

/* Mappings of shared memory, by whatever name. */
static int count_shared(void) {
  return count_mappings_of("memfd:") + count_mappings_of("/dev/shm/") + count_mappings_of("/SYSV");
}

static usage measure(void) {
  PMPI_Barrier(MPI_COMM_WORLD);
  return (usage){resident_kib(), count_files(), count_threads(), count_shared()};
}

/* Open MPI 4.1 itself keeps about 8 KB of each persistent collective call. */
static long memory_limit_kib(void) {
  return interposer_is_on() ? 6 * 1024 : 24 * 1024;
}

/* The last communicators may still wait for a rank that has not freed them yet. */
enum { FILES_OF_LAST = 8, SHARED_OF_LAST = 4 };

static void require_as_before(usage was, usage is) {
  require(is.files <= was.files + FILES_OF_LAST, "%ld files are open, not %ld", is.files,
          was.files);
  require(threads_fall_to((int)was.threads), "%ld threads run, not %ld", is.threads, was.threads);
  require(is.shared <= was.shared + SHARED_OF_LAST, "%ld shared memories, not %ld", is.shared,
          was.shared);
  require(is_sanitized() || is.memory_kib < was.memory_kib + memory_limit_kib(),
          "%ld KiB of memory, after %ld at first", is.memory_kib, was.memory_kib);
}

/* Run it often; what is left after that, beside what was after a tenth. */
static void run_often(void (*run)(int round)) {
  usage was = {0};
  int rounds = is_sanitized() ? ROUNDS / 20 : ROUNDS, warm_up = rounds / (ROUNDS / WARM_UP);
  for (int round = 0; round < rounds; round++) {
    if (round == warm_up) {
      was = measure();
    }
    run(round);
  }
  require_as_before(was, measure());
}

static void sum_on(MPI_Comm comm, int round) {
  static const interposer_function functions[] = {INTERPOSER_ALLREDUCE, INTERPOSER_IALLREDUCE,
                                                  INTERPOSER_ALLREDUCE_INIT};
  static float send[FLOATS], receive[FLOATS];
  if (round % 5 < 3 && interposer_function_exists(functions[round % 5])) {
    interposer_call call = float_sum(functions[round % 5], comm, FLOATS);
    require(interposer_make(&interposer_mpi_called, &call, send, receive) == MPI_SUCCESS,
            "round %d", round);
  }
}

static void make_and_free(int round) {
  MPI_Comm comm = MPI_COMM_NULL;
  if (round % 2) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  } else {
    MPI_Comm_split(MPI_COMM_WORLD, round % 3 ? 0 : mpi_rank, -mpi_rank, &comm);
  }
  sum_on(comm, round / 2);
  if (round % 7 == 0) {
    MPI_Comm_disconnect(&comm);
  } else {
    MPI_Comm_free(&comm);
  }
}

static void communicators_leave_nothing(void) {
  run_often(make_and_free);
}

static void start_and_end(int round) {
  static float values[4][FLOATS];
  MPI_Request requests[4];
  int done = 0;
  for (int i = 0; i < 4; i++) {
    int floats = (round + i) % 3 ? FLOATS : 10;
    MPI_Iallreduce(MPI_IN_PLACE, values[i], floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                   &requests[i]);
  }
  while (!done && round % 2) {
    MPI_Testall(4, requests, &done, MPI_STATUSES_IGNORE);
  }
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void requests_leave_nothing(void) {
  run_often(start_and_end);
}

static const mpi_property properties[] = {
    PROPERTY(communicators_leave_nothing),
    PROPERTY(requests_leave_nothing),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
