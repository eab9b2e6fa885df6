/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Over an NCCL: ncclCommAbort while other ranks wait in a sum of libcomm's. */

#include "tests/interpose/nccl/nccl_over_world.h"

/* Rank 0 makes no call, and aborts; the others see that, and their streams go on. */
static void an_abort_of_one_unblocks_all(void) {
  world it = begin_over("net=int8 min=1K");
  put_floats(it.from, mpi_rank, SUM_COUNT);
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank > 0) {
    ncclResult_t error =
        ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream);
    while (error == ncclSuccess) {
      fine(ncclCommGetAsyncError(it.comm, &error));
      usleep(1000);
    }
    require(error == ncclRemoteError, "the error is %d", (int)error);
    check(device->stream.finish(it.stream));
  }
  fine(ncclCommAbort(it.comm));
  check(device->stream.destroy(it.stream));
  check(device->memory.free(it.from));
  check(device->memory.free(it.to));
}

/* What was given up is of no matter to others. */
static void another_communicator_is_as_good_as_new(void) {
  world it = begin_over("net=int8 min=1K");
  (void)sums_below();
  put_floats(it.from, mpi_rank, SUM_COUNT);
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  is_equal_everywhere(holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, false));
  require(sums_below() == 0, "NCCL has made it");
  end(&it);
}

/* Runs that were given up keep what they have; nothing of it is at work. */
static void the_device_comes_to_an_end(void) {
  lcomm_nccl_threads_wait();
  (void)emulated_end();
}

static const mpi_property properties[] = {
    PROPERTY(an_abort_of_one_unblocks_all),
    PROPERTY(another_communicator_is_as_good_as_new),
    PROPERTY(the_device_comes_to_an_end),
};

RUN_PROPERTIES(over_main, properties)
