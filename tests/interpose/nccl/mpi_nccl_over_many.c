/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Over an NCCL: many communicators, one after the other. */

#include "tests/interpose/nccl/nccl_many.h"
#include "tests/interpose/nccl/nccl_over_world.h"

/* One with a part, and a compressed sum on each. */
static void make_and_free(void *context) {
  world *it = context;
  ncclComm_t comm = make(lossy), part = NULL;
  fine(ncclCommSplit(comm, 0, mpi_rank, &part, NULL));
  put_floats(it->from, mpi_rank, SUM_COUNT);
  fine(ncclAllReduce(it->from, it->to, SUM_COUNT, ncclFloat32, ncclSum, comm, it->stream));
  fine(ncclAllReduce(it->from, it->from, SUM_COUNT, ncclFloat32, ncclSum, part, it->stream));
  check(device->stream.finish(it->stream));
  fine(ncclCommDestroy(part));
  fine(ncclCommDestroy(comm));
}

static void many_leave_nothing(void) {
  world it = begin_over(lossy);
  leave_nothing(make_and_free, &it);
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(many_leave_nothing),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(over_main, properties)
