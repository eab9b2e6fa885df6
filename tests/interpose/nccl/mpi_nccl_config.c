/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Configurations, of communicators as programs of other versions of NCCL have them, and of calls.
 */

#include <stddef.h>

#include "tests/interpose/nccl/nccl_over_world.h"

/* ------------------------------------------------------------ of communicators */

/* As a version of NCCL has it whose structure is so long; the caller frees it. What this library
 * does not know is not zero. */
static ncclConfig_t *config_of(size_t size, int blocking) {
  ncclConfig_t known = {.size = size, .magic = NCCL_CONFIG_MAGIC, .blocking = blocking};
  void *config = malloc(size);
  require(config != NULL, "no memory");
  memset(config, 0x7f, size);
  memcpy(config, &known, size < sizeof(known) ? size : sizeof(known));
  return config;
}

static ncclResult_t try_config(ncclConfig_t *config, ncclComm_t *comm) {
  ncclUniqueId id = share_id();
  ncclResult_t result = ncclCommInitRankConfig(comm, mpi_size, id, mpi_rank, config);
  free(config);
  return result;
}

static void those_of_other_versions_are_read_as_far_as_they_go(void) {
  static const size_t sizes[] = {offsetof(ncclConfig_t, cgaClusterSize),
                                 offsetof(ncclConfig_t, splitShare),
                                 offsetof(ncclConfig_t, commName), sizeof(ncclConfig_t) + 64};
  pose_as_nodes(mpi_size);
  for (size_t i = 0; i < sizeof(sizes) / sizeof *sizes; i++) {
    ncclComm_t comm = NULL;
    ncclResult_t result = try_config(config_of(sizes[i], 0), &comm);
    require(result == ncclInProgress, "size %zu: %d", sizes[i], (int)result);
    wait_until_ready(comm);
    fine(ncclCommDestroy(comm));
    fine(try_config(config_of(sizes[i], 1), &comm));
    fine(ncclCommDestroy(comm));
  }
}

/* It ends before the word, or in the middle of it. */
static void one_that_does_not_say_waits(void) {
  for (size_t more = 0; more < sizeof(int); more++) {
    ncclComm_t comm = NULL;
    fine(try_config(config_of(offsetof(ncclConfig_t, blocking) + more, 0), &comm));
    fine(ncclCommDestroy(comm));
  }
}

static void what_is_none_is_refused(void) {
  ncclComm_t comm = NULL, part = NULL;
  ncclConfig_t zeros = {.size = 0}, other = {.size = sizeof(other), .magic = 7};
  ncclUniqueId id = share_id();
  refused(ncclCommInitRankConfig(&comm, mpi_size, id, mpi_rank, &zeros), ncclInvalidArgument,
          "ncclCommInitRankConfig: the configuration is none");
  refused(ncclCommInitRankScalable(&comm, mpi_size, mpi_rank, 1, &id, &other), ncclInvalidArgument,
          "ncclCommInitRankScalable: the configuration is none");
  require(!comm, "one was made");
  fine(ncclCommInitRank(&comm, mpi_size, id, mpi_rank));
  refused(ncclCommSplit(comm, 0, 0, &part, &other), ncclInvalidArgument,
          "ncclCommSplit: the configuration is none");
  fine(ncclCommDestroy(comm));
}

/* ----------------------------------------------------------------- names */

static void sum_is(const world *it, ncclComm_t comm, bool exact) {
  put_floats(it->from, mpi_rank, SUM_COUNT);
  fine(ncclAllReduce(it->from, it->to, SUM_COUNT, ncclFloat32, ncclSum, comm, it->stream));
  is_equal_everywhere(holds_sum(it->stream, it->to, 0, SUM_COUNT, mpi_size, exact));
}

/* Where ranks give different names, it has none. */
static void rules_know_names(void) {
  char name[16] = "data";
  world it = begin("net=int8 min=1K match=comm=data");
  ncclConfig_t config = {
      .size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = 1, .commName = name};
  ncclComm_t comm = NULL, part = NULL, other = NULL;
  ncclUniqueId id = share_id();
  bool alone = mpi_size == 1;
  fine(ncclCommInitRankConfig(&comm, mpi_size, id, mpi_rank, &config));
  fine(ncclCommSplit(it.comm, 0, mpi_rank, &part, &config));
  snprintf(name, sizeof(name), mpi_rank == 0 ? "data" : "data%d", mpi_rank);
  fine(ncclCommSplit(it.comm, 0, mpi_rank, &other, &config));
  sum_is(&it, comm, alone);
  sum_is(&it, part, alone);
  sum_is(&it, other, true);
  sum_is(&it, it.comm, true);
  fine(ncclCommDestroy(other));
  fine(ncclCommDestroy(part));
  fine(ncclCommDestroy(comm));
  end(&it);
}

/* --------------------------------------------------------------- of calls */

enum { EACH = 700 };

static void sums_with_a_configuration(const world *it, const ncclCollConfig_t *config) {
  int sum = mpi_size * (mpi_size - 1) / 2;
  put(it->from, mpi_rank, 1, EACH * mpi_size);
  fine(ncclAllReduceConfig(it->from, it->to, EACH, ncclInt32, ncclSum, it->comm, it->stream,
                           config));
  holds(it, it->to, sum, mpi_size, EACH);
  fine(ncclReduceScatterConfig(it->from, it->to, EACH, ncclInt32, ncclSum, it->comm, it->stream,
                               config));
  holds(it, it->to, sum + mpi_size * EACH * mpi_rank, mpi_size, EACH);
  fine(ncclReduceConfig(it->from, it->to, EACH, ncclInt32, ncclMax, 0, it->comm, it->stream,
                        config));
  check(device->stream.finish(it->stream));
  if (mpi_rank == 0) {
    holds(it, it->to, mpi_size - 1, 1, EACH);
  }
}

static void moves_with_a_configuration(const world *it, const ncclCollConfig_t *config) {
  int last = mpi_size - 1;
  put(it->from, 10000 * mpi_rank, 1, EACH * mpi_size);
  fine(ncclBroadcastConfig(it->from, it->to, EACH, ncclInt32, last, it->comm, it->stream, config));
  holds(it, it->to, 10000 * last, 1, EACH);
  fine(ncclScatterConfig(it->from, it->to, EACH, ncclInt32, last, it->comm, it->stream, config));
  holds(it, it->to, 10000 * last + EACH * mpi_rank, 1, EACH);
  fine(ncclAlltoAllConfig(it->from, it->to, EACH, ncclInt32, it->comm, it->stream, config));
  for (int rank = 0; rank < mpi_size; rank++) {
    holds(it, it->to + rank * EACH, 10000 * rank + EACH * mpi_rank, 1, EACH);
  }
  put(it->to, -1, 0, EACH * mpi_size);
  fine(ncclAllGatherConfig(it->from, it->to, EACH, ncclInt32, it->comm, it->stream, config));
  for (int rank = 0; rank < mpi_size; rank++) {
    holds(it, it->to + rank * EACH, 10000 * rank, 1, EACH);
  }
  put(it->to, -1, 0, EACH * mpi_size);
  fine(ncclGatherConfig(it->from, it->to, EACH, ncclInt32, 0, it->comm, it->stream, config));
  for (int rank = 0; rank < mpi_size; rank++) {
    holds(it, it->to + rank * EACH, mpi_rank == 0 ? 10000 * rank : -1, mpi_rank == 0, EACH);
  }
}

/* What it says is about how NCCL makes them. */
static void calls_with_one_are_those_without(void) {
  static const char bytes[256] = {1, 2, 3};
  world it = begin("net=none");
  sums_with_a_configuration(&it, NULL);
  moves_with_a_configuration(&it, NULL);
  sums_with_a_configuration(&it, (const ncclCollConfig_t *)bytes);
  moves_with_a_configuration(&it, (const ncclCollConfig_t *)bytes);
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(those_of_other_versions_are_read_as_far_as_they_go),
    PROPERTY(one_that_does_not_say_waits),
    PROPERTY(what_is_none_is_refused),
    PROPERTY(rules_know_names),
    PROPERTY(calls_with_one_are_those_without),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(alone_main, properties)
