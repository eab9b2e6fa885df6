/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* ncclCommAbort while other ranks wait. */

#include <unistd.h>

#include "tests/interpose/nccl/nccl_world.h"

/* Rank 0 makes no call, and aborts; the others see that, and their streams go on. */
static void an_abort_of_one_unblocks_all(void) {
  world it = begin("net=none");
  put(it.from, 1, 0, LONGEST);
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank > 0) {
    ncclResult_t error =
        ncclAllReduce(it.from, it.to, LONGEST, ncclInt32, ncclSum, it.comm, it.stream);
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

/* Runs that were given up keep what they have; nothing of it is at work. */
static void the_device_comes_to_an_end(void) {
  (void)emulated_end();
}

static const mpi_property properties[] = {
    PROPERTY(an_abort_of_one_unblocks_all),
    PROPERTY(the_device_comes_to_an_end),
};

RUN_PROPERTIES(alone_main, properties)
