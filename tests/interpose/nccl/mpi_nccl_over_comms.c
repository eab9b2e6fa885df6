/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Over an NCCL: communicators, however they are made and ended, have libcomm's beside them. */

#include "tests/interpose/nccl/nccl_over_world.h"

/* ------------------------------------------------------------------- making */

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
  ncclComm_t comm = make_without_waiting();
  sums_are(comm, &it, 0, 1, mpi_size > 1);
  fine(ncclCommDestroy(comm));
  end(&it);
}

static ncclComm_t make_by(ncclUniqueId id) {
  ncclComm_t comm = NULL;
  fine(ncclCommInitRank(&comm, mpi_size, id, mpi_rank));
  return comm;
}

static void sums_are_nccls(ncclComm_t comm, world *it) {
  sums_are(comm, it, 0, 1, false);
  fine(ncclCommDestroy(comm));
  end(it);
}

static void inside_a_node_they_are_nccls(void) {
  world it = begin_over(lossy);
  ncclUniqueId id = share_id();
  setenv("LCOMM_NODES", "1", 1);
  sums_are_nccls(make_by(id), &it);
}

/* An id of a process without libcomm: nothing is in it but NCCL's own bytes. */
static void without_a_place_to_meet_they_are_nccls(void) {
  world it = begin_over(lossy);
  ncclUniqueId id = share_id();
  lcomm_nccl_place place;
  require(lcomm_nccl_place_take(&id, &place), "an id has no place");
  sums_are_nccls(make_by(id), &it);
}

/* The last rank runs as if without libcomm: the others do not wait for it for long. */
static void if_one_rank_does_not_come_they_are_nccls(void) {
  world it = begin_over(lossy);
  ncclUniqueId id = share_id();
  lcomm_nccl_place place;
  const char *before = getenv("LCOMM_TIMEOUT_S");
  setenv("LCOMM_TIMEOUT_S", "2", 1);
  if (mpi_rank == mpi_size - 1) {
    require(lcomm_nccl_place_take(&id, &place), "an id has no place");
  }
  ncclComm_t comm = make_by(id);
  if (before) {
    setenv("LCOMM_TIMEOUT_S", before, 1);
  } else {
    unsetenv("LCOMM_TIMEOUT_S");
  }
  sums_are_nccls(comm, &it);
}

static void if_their_policies_differ_they_are_nccls(void) {
  world it = begin_over(lossy);
  ncclUniqueId id = share_id();
  setenv("LCOMM_POLICY", mpi_rank == 0 ? "net=bf16 min=1K" : lossy, 1);
  sums_are_nccls(make_by(id), &it);
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

static const mpi_property properties[] = {
    PROPERTY(in_a_group_it_is_made_at_the_end),
    PROPERTY(one_that_does_not_block_is_ready_when_libcomm_is),
    PROPERTY(inside_a_node_they_are_nccls),
    PROPERTY(without_a_place_to_meet_they_are_nccls),
    PROPERTY(if_one_rank_does_not_come_they_are_nccls),
    PROPERTY(if_their_policies_differ_they_are_nccls),
    PROPERTY(ranks_end_them_in_any_order),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(over_main, properties)
