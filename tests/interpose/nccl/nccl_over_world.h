/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_OVER_WORLD_H
#define LCOMM_TESTS_NCCL_OVER_WORLD_H

/* Programs that call a small NCCL (stand_in_nccl_small.c) through libcomm. Included by one program
 * each. */

#include <dlfcn.h>

#include "tests/interpose/nccl/nccl_float_sums.h"
#include "tests/interpose/nccl/stand_in_nccl_small.h"

static stand_in_small_data *small; /* data of the NCCL below */

/* The library beside this program is the NCCL below. */
static inline void find_small(void) {
  static char path[4200];
  ssize_t length = readlink("/proc/self/exe", path, 4000);
  path[length > 0 ? length : 0] = '\0';
  strcpy(strrchr(path, '/'), "/stand_in_nccl_small.so");
  setenv("LCOMM_NCCL_LIBRARY", path, 1);
  unsetenv("LCOMM_NCCL");
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  small = handle ? dlsym(handle, "stand_in_small") : NULL;
}

/* What the program calls first, decides; a policy has to be there. */
static inline int over_main(int *argc, char ***argv, const mpi_property *all, int count) {
  find_small();
  if (!small) {
    printf("FAIL there is no stand_in_nccl_small.so beside this program\n");
    return 1;
  }
  setenv("LCOMM_POLICY", "net=int8 min=1K", 1);
  return pausing_device_main(argc, argv, all, count);
}

static inline world begin_over_on(int nodes, const char *policy) {
  small->device = device;
  return begin_on(nodes, policy);
}

static inline world begin_over(const char *policy) {
  return begin_over_on(mpi_size, policy);
}

/* Calls of the NCCL below in this process since the last time. */
static inline int sums_below(void) {
  return atomic_exchange(&small->sums, 0);
}

static inline void is_equal_everywhere(uint64_t hash) {
  uint64_t first = hash;
  MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, MPI_COMM_WORLD);
  require(hash == first, "other bits than on rank 0");
}

/* A sum of `from`, which put_floats() has filled: to the bit, or within the bound of int8. */
static inline void sum_is_right(const world *it, int *to, bool exact) {
  fine(ncclAllReduce(it->from, to, SUM_COUNT, ncclFloat32, ncclSum, it->comm, it->stream));
  is_equal_everywhere(holds_sum(it->stream, to, 0, SUM_COUNT, mpi_size, exact));
}

/* ------------------------------------------------------------ communicators */

static const char lossy[] = "net=int8 min=1K";

/* A long sum of a communicator; libcomm's, or NCCL's. */
static inline void sums_are(ncclComm_t comm, world *it, int first_rank, int step, bool libcomms) {
  int ranks = 0;
  static float values[SUM_COUNT];
  fine(ncclCommCount(comm, &ranks));
  (void)sums_below();
  for (int i = 0; i < SUM_COUNT; i++) { /* as if these were ranks 0, 1, ... */
    values[i] = value_of((mpi_rank - first_rank) / step, i);
  }
  to_device(it->from, values, sizeof(values));
  fine(ncclAllReduce(it->from, it->to, SUM_COUNT, ncclFloat32, ncclSum, comm, it->stream));
  (void)holds_sum(it->stream, it->to, 0, SUM_COUNT, ranks, !libcomms);
  require((sums_below() == 0) == libcomms, "who has made it?");
}

static inline void wait_until_ready(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    fine(ncclCommGetAsyncError(comm, &state));
    usleep(100);
  }
  fine(state);
}

static inline ncclComm_t make_without_waiting(void) {
  ncclComm_t comm = NULL;
  ncclConfig_t config = {.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = 0};
  ncclUniqueId id = share_id();
  ncclResult_t result = ncclCommInitRankConfig(&comm, mpi_size, id, mpi_rank, &config);
  require(result == ncclInProgress, "it blocks");
  wait_until_ready(comm);
  return comm;
}

#endif
