/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Communicators of NCCL that libcomm makes. */

#include "tests/interpose/nccl/nccl_world.h"

static void a_communicator_knows_its_ranks(void) {
  ncclComm_t comm = make("net=none");
  int count = -1, rank = -1;
  ncclResult_t error = ncclInternalError;
  fine(ncclCommCount(comm, &count));
  fine(ncclCommUserRank(comm, &rank));
  fine(ncclCommGetAsyncError(comm, &error));
  require(count == mpi_size && rank == mpi_rank && error == ncclSuccess, "%d of %d, %d", rank,
          count, (int)error);
  fine(ncclCommFinalize(comm));
  fine(ncclCommDestroy(comm));
}

static void other_ways_to_make_one_are_the_same(void) {
  ncclComm_t comm = NULL;
  ncclUniqueId ids[2] = {share_id(), share_id()};
  ncclConfig_t config = {.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = 1};
  fine(ncclCommInitRankConfig(&comm, mpi_size, ids[0], mpi_rank, &config));
  fine(ncclCommDestroy(comm));
  fine(ncclCommInitRankScalable(&comm, mpi_size, mpi_rank, 1, &ids[1], NULL));
  fine(ncclCommDestroy(comm));
  ids[0] = share_id();
  comm = NULL;
  fine(ncclGroupStart());
  fine(ncclCommInitRank(&comm, mpi_size, ids[0], mpi_rank));
  require(!comm, "it is there before the group ends");
  fine(ncclGroupEnd());
  fine(ncclCommDestroy(comm));
}

static void a_part_sums_its_ranks(void) {
  world it = begin("net=none");
  ncclComm_t part = NULL;
  int size = -1, mine = mpi_rank % 2, expected = 0;
  setenv("LCOMM_NODES", "1", 1);
  fine(ncclCommSplit(it.comm, mine, mpi_rank, &part, NULL));
  for (int rank = mine; rank < mpi_size; rank += 2) {
    expected += rank;
  }
  fine(ncclCommCount(part, &size));
  require(size == (mpi_size - mine + 1) / 2, "%d ranks", size);
  put(it.from, mpi_rank, 0, 10);
  fine(ncclAllReduce(it.from, it.to, 10, ncclInt32, ncclSum, part, it.stream));
  holds(&it, it.to, expected, 0, 10);
  fine(ncclCommDestroy(part));
  fine(ncclCommSplit(it.comm, mpi_rank == 0 ? 0 : -1, 0, &part, NULL));
  require((part != NULL) == (mpi_rank == 0), "who takes no part has a communicator");
  fine(ncclCommDestroy(part));
  end(&it);
}

static void many_are_made_and_freed(void) {
  for (int i = 0; i < 40; i++) {
    fine(ncclCommDestroy(make("net=none")));
  }
}

static void ranks_meet_over_the_interface_that_is_named(void) {
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  ncclComm_t comm = make("net=none");
  unsetenv("NCCL_SOCKET_IFNAME");
  fine(ncclCommDestroy(comm));
}

static void ids_of_others_are_refused(void) {
  ncclComm_t comm = NULL;
  ncclUniqueId id;
  for (int byte = 0; byte < 256; byte += 51) {
    memset(&id, byte, sizeof(id));
    refused(ncclCommInitRank(&comm, mpi_size, id, mpi_rank), ncclInvalidArgument, "the id");
  }
}

/* ------------------------------------------------------------------ refusals */

static void what_libcomm_has_not_is_refused_on_all_ranks(void) {
  world it = begin("net=none");
  ncclComm_t made = NULL;
  ncclUniqueId id = share_id();
  refused(ncclAllReduce(it.from, it.to, 1, (ncclDataType_t)77, ncclSum, it.comm, it.stream),
          ncclInvalidArgument, "no type 77");
  refused(ncclAllReduce(it.from, it.to, 1, ncclInt32, ncclSum, NULL, it.stream),
          ncclInvalidArgument, "comm is NULL");
  refused(ncclCommInitAll(&made, 0, NULL), ncclInvalidArgument, "ncclCommInitAll: ");
  refused(ncclCommInitRank(&made, mpi_size, id, mpi_size), ncclInvalidArgument, "no rank");
  refused(ncclCommGrow(it.comm, 1, NULL, 0, &made, NULL), ncclInvalidUsage, "ncclCommGrow: ");
  require(!made, "one was made");
  put(it.from, 1, 0, 10);
  fine(ncclAllReduce(it.from, it.to, 10, ncclInt32, ncclSum, it.comm, it.stream));
  holds(&it, it.to, mpi_size, 0, 10);
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(a_communicator_knows_its_ranks),
    PROPERTY(other_ways_to_make_one_are_the_same),
    PROPERTY(a_part_sums_its_ranks),
    PROPERTY(many_are_made_and_freed),
    PROPERTY(ranks_meet_over_the_interface_that_is_named),
    PROPERTY(ids_of_others_are_refused),
    PROPERTY(what_libcomm_has_not_is_refused_on_all_ranks),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(alone_main, properties)
