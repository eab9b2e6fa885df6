/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/property.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

/* The first looks are quick, because ranks with a processor each are ready then. */
static void wait_asleep(MPI_Request request) {
  const struct timespec nap = {.tv_nsec = 50000};
  for (int done = 0, looks = 0; !done; looks++) {
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done && looks > 10) {
      nanosleep(&nap, NULL);
    }
  }
}

void sum_over(MPI_Comm comm, double *values, uint64_t count) {
  MPI_Request request;
  PMPI_Iallreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, MPI_SUM, comm, &request);
  wait_asleep(request);
}

void sum_everywhere(double *values, uint64_t count) {
  sum_over(MPI_COMM_WORLD, values, count);
}

/* All have one hash if its largest value is its smallest. */
bool same_on(MPI_Comm comm, const void *bytes, size_t size) {
  const unsigned char *mine = bytes;
  uint64_t hash = UINT64_C(1469598103934665603);
  for (size_t i = 0; i < size; i++) {
    hash = (hash ^ mine[i]) * UINT64_C(1099511628211);
  }
  uint64_t both[2] = {hash, ~hash}, largest[2];
  MPI_Request request;
  PMPI_Iallreduce(both, largest, 2, MPI_UINT64_T, MPI_MAX, comm, &request);
  wait_asleep(request);
  return largest[0] == ~largest[1];
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
    double sum = -6;
    for (int k = 0; k < 12; k++) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      sum += (double)(state >> 11) * 0x1p-53;
    }
    values[i] = (float)(sum * ((state & 63) == 0 ? 1e-2 : 1e-3));
  }
}

/* The failure of the lowest rank that has one, on every rank. */
static bool share_failure(void) {
  int mine = first_failure[0] ? mpi_rank : mpi_size, lowest = mpi_size;
  MPI_Request request;
  PMPI_Iallreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  wait_asleep(request);
  if (lowest == mpi_size) {
    return false;
  }
  PMPI_Bcast(first_failure, sizeof(first_failure), MPI_CHAR, lowest, MPI_COMM_WORLD);
  return true;
}

static bool is_possible(const mpi_property *property) {
  if (mpi_size < property->ranks) {
    snprintf(skip_reason, sizeof(skip_reason), "needs %d ranks", property->ranks);
    return false;
  }
  return !property->is_possible || property->is_possible();
}

static int run_property(const mpi_property *property) {
  first_failure[0] = skip_reason[0] = '\0';
  if (is_possible(property)) {
    property->run();
  }
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

/* MPI_Finalize is the program's call, which a library in between must see. */
int run_properties(char **argv, const mpi_property *properties, int count) {
  int failures = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
  for (int i = 0; i < count; i++) {
    if (!argv[1] || strstr(properties[i].name, argv[1])) {
      failures += run_property(&properties[i]);
    }
  }
  MPI_Finalize();
  return failures > 0;
}
