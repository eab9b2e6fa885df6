/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/mpi_property.h"

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

static void no_communicator(void) {
  fprintf(stderr, "cannot make a communicator: %s\n", lcomm_last_error(NULL));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

lcomm_comm *make_comm(const char *policy, int nodes) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.policy = policy;
  config.nodes = nodes;
  if (lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm) != LCOMM_OK) {
    no_communicator();
  }
  return comm;
}

lcomm_comm *make_comm_if_possible(const lcomm_config *config) {
  lcomm_comm *comm = NULL;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, config, &comm);
  const char *why = lcomm_last_error(NULL);
  if (status == LCOMM_OK) {
    return comm;
  }
  if (status != LCOMM_ERR_TRANSPORT && !strstr(why, "is no transport")) {
    no_communicator();
  }
  skip_property(why);
  return NULL;
}

bool same_everywhere(const void *bytes, size_t size) {
  const unsigned char *mine = bytes;
  uint64_t hash = UINT64_C(1469598103934665603), first;
  for (size_t i = 0; i < size; i++) {
    hash = (hash ^ mine[i]) * UINT64_C(1099511628211);
  }
  first = hash;
  MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  int same = hash == first, all = 0;
  MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return all;
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
  MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (lowest == mpi_size) {
    return false;
  }
  MPI_Bcast(first_failure, sizeof(first_failure), MPI_CHAR, lowest, MPI_COMM_WORLD);
  return true;
}

static int run_property(const mpi_property *property) {
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

static int run_all(char **argv, const mpi_property *properties, int count) {
  int failures = 0;
  MPI_Query_thread(&mpi_threads);
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

int mpi_property_main(int *argc, char ***argv, const mpi_property *properties, int count) {
  MPI_Init(argc, argv);
  return run_all(*argv, properties, count);
}

int mpi_property_main_threads(int *argc, char ***argv, const mpi_property *properties, int count) {
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  return run_all(*argv, properties, count);
}
