/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 */

/* What a short sum on a stream takes on an emulated device, whose streams do not pause. Nothing is
 * asserted of the figures, which are for people and for tools/bench/nccl. */

#include "tests/interpose/nccl/nccl_world.h"

enum { ROUNDS = 20, CALLS = 50 };

/* Of one call, the mean of CALLS: until the host has made it, and until its result is there. */
typedef struct times {
  double made_us, over_us;
} times;

static times time_calls(const world *it, bool one_at_a_time) {
  double begin_s = MPI_Wtime();
  for (int i = 0; i < CALLS; i++) {
    fine(ncclAllReduce(it->from, it->to, 2, ncclInt32, ncclSum, it->comm, it->stream));
    if (one_at_a_time) {
      check(device->stream.finish(it->stream));
    }
  }
  double made_s = MPI_Wtime();
  check(device->stream.finish(it->stream));
  return (times){(made_s - begin_s) / CALLS * 1e6, (MPI_Wtime() - begin_s) / CALLS * 1e6};
}

/* The least of some rounds; the first one makes the plan. */
static times least_times(const world *it, bool one_at_a_time) {
  times least = time_calls(it, one_at_a_time);
  for (int round = 1; round < ROUNDS; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    times now = time_calls(it, one_at_a_time);
    least.made_us = now.made_us < least.made_us ? now.made_us : least.made_us;
    least.over_us = now.over_us < least.over_us ? now.over_us : least.over_us;
  }
  return least;
}

static void the_time_of_a_sum_of_8_bytes_is_printed(void) {
  world it = begin("net=none");
  put(it.from, mpi_rank, 1, 2);
  times alone = least_times(&it, true), row = least_times(&it, false);
  holds(&it, it.to, mpi_size * (mpi_size - 1) / 2, mpi_size, 2);
  if (mpi_rank == 0) {
    printf("# ncclAllReduce of 8 B on an emulated device: %.2f us one at a time, %.2f us in a row, "
           "%.2f us of the host\n",
           alone.over_us, row.over_us, row.made_us);
  }
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(the_time_of_a_sum_of_8_bytes_is_printed),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

static int steady_main(int *argc, char ***argv, const mpi_property *all, int count) {
  const emulated_setup setup = {.devices = 2, .kernels = &lcomm_cuda_kernels_table};
  be_alone();
  return emulated_device_main(argc, argv, &setup, all, count);
}

RUN_PROPERTIES(steady_main, properties)
