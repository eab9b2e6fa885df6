/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Over an NCCL: communicators, however they are made and ended, have libcomm's beside them. */

#include "tests/interpose/nccl/nccl_over_world.h"

static const char lossy[] = "net=int8 min=1K";

/* A long sum of a communicator; libcomm's, or NCCL's. */
static void sums_are(ncclComm_t comm, world *it, int first_rank, int step, bool libcomms) {
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

/* ------------------------------------------------------------------- making */

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

static void in_a_group_it_is_made_at_the_end(void) {
  world it = begin_over(lossy);
  ncclComm_t one = NULL;
  ncclUniqueId id = share_id();
  ncclConfig_t config = {.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = 1};
  fine(ncclGroupStart());
  fine(ncclCommInitRankConfig(&one, mpi_size, id, mpi_rank, &config));
  fine(ncclGroupEnd());
  sums_are(one, &it, 0, 1, mpi_size > 1);
  fine(ncclCommDestroy(one));
  end(&it);
}

static void one_that_does_not_block_is_ready_when_libcomm_is(void) {
  world it = begin_over(lossy);
  ncclComm_t comm = NULL;
  ncclResult_t state = ncclInProgress;
  ncclConfig_t config = {.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = 0};
  ncclUniqueId id = share_id();
  ncclResult_t result = ncclCommInitRankConfig(&comm, mpi_size, id, mpi_rank, &config);
  require(result == ncclInProgress, "it blocks");
  while (state == ncclInProgress) {
    fine(ncclCommGetAsyncError(comm, &state));
    usleep(100);
  }
  fine(state);
  sums_are(comm, &it, 0, 1, mpi_size > 1);
  fine(ncclCommDestroy(comm));
  end(&it);
}

/* Both ranks of a communicator, each on a device of its own. */
static void two_ranks_of_one_thread_sum(ncclComm_t *comms) {
  cudaStream_t streams[2];
  int *from[2], *to[2];
  for (int d = 0; d < 2; d++) {
    check(device->use(d));
    check(device->stream.work_create((void **)&streams[d]));
    from[d] = on_device(SUM_COUNT * sizeof(float));
    to[d] = on_device(SUM_COUNT * sizeof(float));
    put_floats(from[d], d, SUM_COUNT);
  }
  (void)sums_below();
  for (int round = 0; round < 3; round++) {
    fine(ncclGroupStart());
    for (int d = 0; d < 2; d++) {
      check(device->use(d));
      fine(ncclAllReduce(from[d], to[d], SUM_COUNT, ncclFloat32, ncclSum, comms[d], streams[d]));
    }
    fine(ncclGroupEnd());
  }
  require(sums_below() == 6, "libcomm has made some");
  for (int d = 0; d < 2; d++) {
    check(device->use(d));
    (void)holds_sum(streams[d], to[d], 0, SUM_COUNT, 2, true);
    check(device->stream.destroy(streams[d]));
    check(device->memory.free(from[d]));
    check(device->memory.free(to[d]));
  }
  check(device->use(0));
}

/* NCCL's own then. */
static void one_thread_may_have_all_ranks(void) {
  ncclComm_t comms[2] = {NULL, NULL};
  ncclUniqueId id;
  small->device = device;
  setenv("LCOMM_POLICY", lossy, 1);
  setenv("LCOMM_NODES", "2", 1);
  fine(ncclCommInitAll(comms, 2, NULL));
  two_ranks_of_one_thread_sum(comms);
  fine(ncclCommDestroy(comms[1]));
  fine(ncclCommDestroy(comms[0]));
  fine(ncclGetUniqueId(&id));
  fine(ncclGroupStart());
  for (int rank = 0; rank < 2; rank++) {
    fine(ncclCommInitRank(&comms[rank], 2, id, rank));
  }
  fine(ncclGroupEnd());
  two_ranks_of_one_thread_sum(comms);
  fine(ncclCommDestroy(comms[0]));
  fine(ncclCommDestroy(comms[1]));
}

static void inside_a_node_they_are_nccls(void) {
  world it = begin_over(lossy);
  ncclComm_t comm = NULL;
  ncclUniqueId id = share_id();
  setenv("LCOMM_NODES", "1", 1);
  fine(ncclCommInitRank(&comm, mpi_size, id, mpi_rank));
  sums_are(comm, &it, 0, 1, false);
  fine(ncclCommDestroy(comm));
  end(&it);
}

/* An id of a process without libcomm: nothing is in it but NCCL's own bytes. */
static void without_a_place_to_meet_they_are_nccls(void) {
  world it = begin_over(lossy);
  ncclComm_t comm = NULL;
  ncclUniqueId id = share_id();
  lcomm_nccl_place place;
  require(lcomm_nccl_place_take(&id, &place), "an id has no place");
  fine(ncclCommInitRank(&comm, mpi_size, id, mpi_rank));
  sums_are(comm, &it, 0, 1, false);
  fine(ncclCommDestroy(comm));
  end(&it);
}

/* The last rank runs as if without libcomm: the others do not wait for it for long. */
static void if_one_rank_does_not_come_they_are_nccls(void) {
  world it = begin_over(lossy);
  ncclComm_t comm = NULL;
  ncclUniqueId id = share_id();
  lcomm_nccl_place place;
  const char *before = getenv("LCOMM_TIMEOUT_S");
  setenv("LCOMM_TIMEOUT_S", "2", 1);
  if (mpi_rank == mpi_size - 1) {
    require(lcomm_nccl_place_take(&id, &place), "an id has no place");
  }
  fine(ncclCommInitRank(&comm, mpi_size, id, mpi_rank));
  if (before) {
    setenv("LCOMM_TIMEOUT_S", before, 1);
  } else {
    unsetenv("LCOMM_TIMEOUT_S");
  }
  sums_are(comm, &it, 0, 1, false);
  fine(ncclCommDestroy(comm));
  end(&it);
}

static void if_their_policies_differ_they_are_nccls(void) {
  world it = begin_over(lossy);
  ncclComm_t comm = NULL;
  ncclUniqueId id = share_id();
  setenv("LCOMM_POLICY", mpi_rank == 0 ? "net=bf16 min=1K" : lossy, 1);
  fine(ncclCommInitRank(&comm, mpi_size, id, mpi_rank));
  sums_are(comm, &it, 0, 1, false);
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

/* ------------------------------------------------------------------- ending */

/* NCCL's ncclCommDestroy waits for nobody, so libcomm's end of it does not either. */
static void ranks_end_them_in_any_order(void) {
  enum { COMMS = 3 };
  world it = begin_over(lossy);
  ncclComm_t comms[COMMS];
  for (int i = 0; i < COMMS; i++) {
    comms[i] = make(lossy);
    sums_are(comms[i], &it, 0, 1, mpi_size > 1);
  }
  for (int i = 0; i < COMMS; i++) {
    ncclComm_t comm = comms[(i + mpi_rank) % COMMS];
    fine(ncclCommFinalize(comm));
    fine(ncclCommDestroy(comm));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  end(&it);
}

static void many_are_made_and_ended(void) {
  small->device = device;
  atomic_store(&small->made, 0);
  atomic_store(&small->ended, 0);
  for (int i = 0; i < 30; i++) {
    fine(ncclCommDestroy(make(lossy)));
  }
  require(atomic_load(&small->made) == 30 && atomic_load(&small->ended) == 30, "%d, %d",
          atomic_load(&small->made), atomic_load(&small->ended));
}

static void nothing_is_left_on_the_device(void) {
  lcomm_nccl_threads_wait();
  require_nothing_left_on_device();
}

static const mpi_property properties[] = {
    PROPERTY(a_part_has_sums_of_its_own),
    PROPERTY(in_a_group_it_is_made_at_the_end),
    PROPERTY(one_that_does_not_block_is_ready_when_libcomm_is),
    PROPERTY(one_thread_may_have_all_ranks),
    PROPERTY(inside_a_node_they_are_nccls),
    PROPERTY(without_a_place_to_meet_they_are_nccls),
    PROPERTY(if_one_rank_does_not_come_they_are_nccls),
    PROPERTY(if_their_policies_differ_they_are_nccls),
    PROPERTY(rules_know_names_and_sizes),
    PROPERTY(ranks_end_them_in_any_order),
    PROPERTY(many_are_made_and_ended),
    PROPERTY(nothing_is_left_on_the_device),
};

RUN_PROPERTIES(over_main, properties)
