/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 */

/* Ten thousand communicators and requests leave nothing behind: memory, file
 * descriptors, threads and shared memory are as they were after the first thousand. */

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"

enum { WARM_UP = 1000, ROUNDS = 10000, FLOATS = 2048 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=4K");
}

/* Sanitizers keep freed memory, and are slow. */
static bool is_sanitized(void) {
  return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init");
}

typedef struct usage {
  long memory_kb, files, threads, shared;
} usage;

static long count_entries(const char *folder) {
  long count = 0;
  DIR *dir = opendir(folder);
  while (dir && readdir(dir)) {
    count++;
  }
  if (dir) {
    closedir(dir);
  }
  return count;
}

static long memory_kb(void) {
  char line[256];
  long kb = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof(line), file)) {
    sscanf(line, "VmRSS: %ld", &kb);
  }
  if (file) {
    fclose(file);
  }
  return kb;
}

/* Mappings of shared memory, by whatever name. */
static long count_shared(void) {
  char line[512];
  long count = 0;
  FILE *file = fopen("/proc/self/maps", "r");
  while (file && fgets(line, sizeof(line), file)) {
    count += strstr(line, "memfd:") || strstr(line, "/dev/shm/") || strstr(line, "/SYSV");
  }
  if (file) {
    fclose(file);
  }
  return count;
}

static usage measure(void) {
  PMPI_Barrier(MPI_COMM_WORLD);
  return (usage){memory_kb(), count_entries("/proc/self/fd"), count_entries("/proc/self/task"),
                 count_shared()};
}

/* Open MPI 4.1 itself keeps about 8 KB of each persistent collective call. */
static long memory_limit_kb(void) {
  return interposer_is_on() ? 6 * 1024 : 24 * 1024;
}

/* The last communicators may still wait for a rank that has not freed them yet. */
enum { FILES_OF_LAST = 8, SHARED_OF_LAST = 4 };

static void require_as_before(usage was, usage is) {
  require(is.files <= was.files + FILES_OF_LAST, "%ld files are open, not %ld", is.files,
          was.files);
  require(is.threads == was.threads, "%ld threads run, not %ld", is.threads, was.threads);
  require(is.shared <= was.shared + SHARED_OF_LAST, "%ld shared memories, not %ld", is.shared,
          was.shared);
  require(is_sanitized() || is.memory_kb < was.memory_kb + memory_limit_kb(),
          "%ld kB of memory, after %ld at first", is.memory_kb, was.memory_kb);
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

int main(int argc, char **argv) {
  static const mpi_property properties[] = {
      {"communicators_leave_nothing", communicators_leave_nothing},
      {"requests_leave_nothing", requests_leave_nothing},
  };
  return interposer_property_main(&argc, &argv, before, properties,
                                  sizeof(properties) / sizeof(properties[0]));
}
