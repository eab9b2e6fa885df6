/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/door_property.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mpi_rank, mpi_size, mpi_threads;

static char first_failure[512];
static char skip_reason[256];

void require(bool holds, const char *format, ...) {
  va_list arguments;
  if (holds || first_failure[0]) {
    return;
  }
  int used = snprintf(first_failure, sizeof(first_failure), "rank %d of %d: ", mpi_rank, mpi_size);
  va_start(arguments, format);
  vsnprintf(first_failure + used, sizeof(first_failure) - (size_t)used, format, arguments);
  va_end(arguments);
}

void skip_property(const char *why) {
  snprintf(skip_reason, sizeof(skip_reason), "%s", why);
}

bool all_well(void) {
  return first_failure[0] == '\0';
}

bool same_on(MPI_Comm comm, const void *bytes, size_t size) {
  const unsigned char *mine = bytes;
  uint64_t hash = UINT64_C(1469598103934665603), first;
  for (size_t i = 0; i < size; i++) {
    hash = (hash ^ mine[i]) * UINT64_C(1099511628211);
  }
  first = hash;
  PMPI_Bcast(&first, 1, MPI_UINT64_T, 0, comm);
  int same = hash == first, all = 0;
  PMPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, comm);
  return all;
}

bool same_everywhere(const void *bytes, size_t size) {
  return same_on(MPI_COMM_WORLD, bytes, size);
}

bool equal_everywhere(int64_t value) {
  return same_everywhere(&value, sizeof(value));
}

void fill_gradient(float *values, uint64_t count, uint64_t seed) {
  uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 88172645463325252u;
  for (uint64_t i = 0; i < count; i++) {
    double sum = -2;
    for (int k = 0; k < 4; k++) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      sum += (double)(state >> 11) * 0x1p-53;
    }
    values[i] = (float)(sum * ((state & 63) == 0 ? 1e-2 : 1e-3));
  }
}

/* ------------------------------------------------------------- environment */

void set_default(const char *variable, const char *value) {
  setenv(variable, value, 0);
}

static int number_of(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

int launched_ranks(void) {
  return number_of("OMPI_COMM_WORLD_SIZE", 1);
}

int launched_rank(void) {
  return number_of("OMPI_COMM_WORLD_RANK", 0);
}

bool door_is_there(void) {
  return dlsym(RTLD_DEFAULT, "lcomm_version") != NULL;
}

bool door_is_open(void) {
  const char *door = getenv("LCOMM_DOOR"), *policy = getenv("LCOMM_POLICY");
  bool on = !door || !*door || strcmp(door, "on") == 0;
  return on && policy && *policy && door_is_there();
}

int node_of(int world_rank) {
  return mpi_size > 1 && world_rank >= (mpi_size + 1) / 2;
}

/* ------------------------------------------------------------------ the run */

/* The failure of the lowest rank that has one, on every rank. */
static bool share_failure(void) {
  int mine = first_failure[0] ? mpi_rank : mpi_size, lowest = mpi_size;
  PMPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (lowest == mpi_size) {
    return false;
  }
  PMPI_Bcast(first_failure, sizeof(first_failure), MPI_CHAR, lowest, MPI_COMM_WORLD);
  return true;
}

static int run_property(const door_property *property) {
  first_failure[0] = skip_reason[0] = '\0';
  property->run();
  bool failed = share_failure();
  if (mpi_rank == 0 && failed) {
    printf("FAIL %s: %s\n", property->name, first_failure);
  } else if (mpi_rank == 0 && skip_reason[0]) {
    printf("SKIP %s: %s\n", property->name, skip_reason);
  } else if (mpi_rank == 0) {
    printf("PASS %s\n", property->name);
  }
  fflush(stdout);
  return failed;
}

/* Ranks share processors with each other and with the queue's thread: who waits yields. */
static void set_environment(void (*before)(void)) {
  if (before) {
    before();
  }
  set_default("OMPI_MCA_mpi_yield_when_idle", "1");
  set_default("LCOMM_NODES", launched_ranks() > 1 ? "2" : "1");
  set_default("LCOMM_TRANSPORT", "shm,mpi");
}

static int run_all(char **argv, const door_property *properties, int count) {
  int failures = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
  for (int i = 0; i < count; i++) {
    if (!argv[1] || strstr(properties[i].name, argv[1])) {
      failures += run_property(&properties[i]);
    }
  }
  MPI_Finalize();
  return failures > 0;
}

int door_property_main(int *argc, char ***argv, void (*before)(void),
                       const door_property *properties, int count) {
  set_environment(before);
  MPI_Init(argc, argv);
  MPI_Query_thread(&mpi_threads);
  return run_all(*argv, properties, count);
}

int door_property_main_threads(int *argc, char ***argv, void (*before)(void), int level,
                               const door_property *properties, int count) {
  set_environment(before);
  MPI_Init_thread(argc, argv, level, &mpi_threads);
  return run_all(*argv, properties, count);
}
