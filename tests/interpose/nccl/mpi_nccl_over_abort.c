/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Over an NCCL: ncclCommAbort while other ranks wait in a sum of libcomm's. */

#include "tests/interpose/nccl/nccl_over_world.h"

static void an_abort_of_one_unblocks_all(void) {
  world it = begin_over("net=int8 min=1K");
  put_floats(it.from, mpi_rank, SUM_COUNT);
  abort_while_others_wait(&it, ncclFloat32, SUM_COUNT);
}

/* What was given up is of no matter to others. */
static void another_communicator_is_as_good_as_new(void) {
  world it = begin_over("net=int8 min=1K");
  (void)sums_below();
  put_floats(it.from, mpi_rank, SUM_COUNT);
  sum_is_right(&it, it.to, false);
  require(sums_below() == 0, "NCCL has made it");
  end(&it);
}

/* Rank 0 is lost in the middle of a sum; the others go on without it. */
static void the_rest_goes_on_after_a_shrink(void) {
  world it = begin_over("net=int8 min=1K");
  ncclComm_t rest = NULL;
  int without = 0;
  put_floats(it.from, mpi_rank == 0 ? 0 : mpi_rank - 1, SUM_COUNT);
  pose_as_nodes(mpi_size - 1);
  if (mpi_rank > 0) {
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank > 0) {
    fine(ncclCommShrink(it.comm, &without, 1, &rest, NULL, 1));
    check(device->stream.finish(it.stream));
    (void)sums_below();
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, rest, it.stream));
    (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size - 1, mpi_size == 2);
    require((sums_below() == 0) == (mpi_size > 2), "who has made it?");
    fine(ncclCommDestroy(rest));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  fine(ncclCommAbort(it.comm));
  check(device->stream.destroy(it.stream));
  check(device->memory.free(it.from));
  check(device->memory.free(it.to));
}

static const mpi_property properties[] = {
    PROPERTY(an_abort_of_one_unblocks_all),
    PROPERTY(another_communicator_is_as_good_as_new),
    PROPERTY(the_rest_goes_on_after_a_shrink),
    PROPERTY(the_device_comes_to_an_end),
};

RUN_PROPERTIES(over_main, properties)
