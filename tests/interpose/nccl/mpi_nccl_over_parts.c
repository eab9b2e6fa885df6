/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Over an NCCL: parts of communicators, split off or shrunk, have libcomm's beside them. */

#include "tests/interpose/nccl/nccl_over_world.h"

static void a_part_has_sums_of_its_own(void) {
  world it = begin_over(lossy);
  ncclComm_t part = NULL, reversed = NULL, none = NULL;
  int mine = mpi_rank % 2, ranks = (mpi_size - mine + 1) / 2;
  fine(ncclCommSplit(it.comm, mine, mpi_rank, &part, NULL));
  sums_are(part, &it, mine, 2, ranks > 1);
  fine(ncclCommSplit(it.comm, mpi_rank == 0 ? -1 : 0, -mpi_rank, &none, NULL));
  fine(ncclCommSplit(it.comm, 0, -mpi_rank, &reversed, NULL));
  sums_are(reversed, &it, 0, 1, mpi_size > 1);
  sums_are(it.comm, &it, 0, 1, mpi_size > 1);
  fine(ncclCommDestroy(part));
  fine(ncclCommDestroy(reversed));
  require((none == NULL) == (mpi_rank == 0), "who takes no part has a communicator");
  if (none) {
    fine(ncclCommDestroy(none));
  }
  end(&it);
}

/* NCCL tells a part when it has made it, at the place that the call named. */
static void parts_of_one_that_does_not_block_are_told_later(void) {
  world it = begin_over(lossy);
  ncclComm_t comm = make_without_waiting(), part = NULL, other = NULL;
  int mine = mpi_rank % 2, ranks = (mpi_size - mine + 1) / 2;
  require(ncclCommSplit(comm, mine, mpi_rank, &part, NULL) == ncclInProgress && !part,
          "a part is there at once");
  wait_until_ready(comm);
  wait_until_ready(part);
  sums_are(part, &it, mine, 2, ranks > 1);
  require(ncclCommSplit(comm, mpi_rank == 0 ? -1 : 0, 0, &other, NULL) == ncclInProgress,
          "it blocks");
  wait_until_ready(comm);
  require((other == NULL) == (mpi_rank == 0), "who takes no part has a communicator");
  if (other) {
    sums_are(other, &it, 1, 1, mpi_size > 2);
    fine(ncclCommDestroy(other));
  }
  sums_are(comm, &it, 0, 1, mpi_size > 1);
  fine(ncclCommDestroy(part));
  fine(ncclCommDestroy(comm));
  end(&it);
}

/* A rank is lost, or taken out: those that are left have a communicator without it. */
static void what_is_left_after_a_shrink_has_sums_of_its_own(void) {
  world it = begin_over(lossy);
  ncclComm_t rest = NULL;
  int without = 0;
  sums_are(it.comm, &it, 0, 1, mpi_size > 1);
  pose_as_nodes(mpi_size - 1);
  if (mpi_rank != without) {
    fine(ncclCommShrink(it.comm, &without, 1, &rest, NULL, 0));
    sums_are(rest, &it, 1, 1, mpi_size > 2);
  }
  sums_are(it.comm, &it, 0, 1, mpi_size > 1);
  if (rest) {
    fine(ncclCommDestroy(rest));
  }
  end(&it);
}

static void one_that_does_not_block_is_shrunk(void) {
  world it = begin_over(lossy);
  ncclComm_t comm = make_without_waiting(), rest = NULL;
  int without = mpi_size - 1;
  pose_as_nodes(mpi_size - 1);
  if (mpi_rank != without) {
    require(ncclCommShrink(comm, &without, 1, &rest, NULL, 0) == ncclInProgress, "it blocks");
    wait_until_ready(comm);
    wait_until_ready(rest);
    sums_are(rest, &it, 0, 1, mpi_size > 2);
    fine(ncclCommDestroy(rest));
  }
  fine(ncclCommDestroy(comm));
  end(&it);
}

/* A part of a communicator has its name where ranks agree on it. */
static void rules_know_names_and_sizes(void) {
  char name[16] = "data";
  world it = begin_over("net=int8 min=1K match=comm=data&ranks>=2");
  ncclConfig_t config = {.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .commName = name};
  ncclComm_t part = NULL, other = NULL;
  config.blocking = 1;
  fine(ncclCommSplit(it.comm, 0, mpi_rank, &part, &config));
  sums_are(part, &it, 0, 1, mpi_size > 1);
  snprintf(name, sizeof(name), "data%d", mpi_rank);
  fine(ncclCommSplit(it.comm, 0, mpi_rank, &other, &config));
  sums_are(other, &it, 0, 1, false);
  sums_are(it.comm, &it, 0, 1, false);
  fine(ncclCommDestroy(part));
  fine(ncclCommDestroy(other));
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(a_part_has_sums_of_its_own),
    PROPERTY(parts_of_one_that_does_not_block_are_told_later),
    PROPERTY(what_is_left_after_a_shrink_has_sums_of_its_own),
    PROPERTY(one_that_does_not_block_is_shrunk),
    PROPERTY(rules_know_names_and_sizes),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(over_main, properties)
