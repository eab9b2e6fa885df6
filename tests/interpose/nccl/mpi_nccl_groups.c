/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Groups of calls that libcomm makes. */

#include "tests/interpose/nccl/nccl_world.h"

static void a_group_begins_when_the_outermost_ends(void) {
  world it = begin("net=none");
  put(it.from, 1, 0, 100);
  put(it.to, -7, 0, 100);
  fine(ncclGroupStart());
  fine(ncclGroupStart());
  fine(ncclAllReduce(it.from, it.to, 100, ncclInt32, ncclSum, it.comm, it.stream));
  fine(ncclGroupEnd());
  holds(&it, it.to, -7, 0, 100);
  fine(ncclAllReduce(it.to, it.from, 100, ncclInt32, ncclSum, it.comm, it.stream));
  fine(ncclGroupEnd());
  holds(&it, it.to, mpi_size, 0, 100);
  holds(&it, it.from, mpi_size * mpi_size, 0, 100);
  refused(ncclGroupEnd(), ncclInvalidUsage, "in no group");
  end(&it);
}

/* Also inside another group; communicators of it are there afterwards. */
static void a_group_that_is_simulated_ends_and_makes_no_call(void) {
  world it = begin("net=none");
  ncclSimInfo_t simulation = {.size = sizeof(simulation), .estimatedTime = 5};
  ncclUniqueId id = share_id();
  ncclComm_t comm = NULL;
  put(it.from, 1, 0, 100);
  put(it.to, 3, 0, 100);
  fine(ncclGroupStart());
  fine(ncclGroupStart());
  fine(ncclAllReduce(it.from, it.to, 100, ncclInt32, ncclSum, it.comm, it.stream));
  fine(ncclAllReduce(it.from, it.to, 100, ncclInt32, ncclProd, it.comm, it.stream));
  fine(ncclCommInitRank(&comm, mpi_size, id, mpi_rank));
  fine(ncclGroupSimulateEnd(&simulation));
  require(!comm, "the inner one has ended the outer one");
  fine(ncclGroupSimulateEnd(&simulation));
  require(simulation.estimatedTime < 0, "an estimate of %g", (double)simulation.estimatedTime);
  refused(ncclGroupEnd(), ncclInvalidUsage, "in no group");
  refused(ncclGroupSimulateEnd(&simulation), ncclInvalidUsage, "in no group");
  fine(ncclGroupStart());
  refused(ncclGroupSimulateEnd(NULL), ncclInvalidArgument, "simInfo");
  refused(ncclGroupEnd(), ncclInvalidUsage, "in no group");
  holds(&it, it.to, 3, 0, 100);
  fine(ncclAllReduce(it.from, it.to, 100, ncclInt32, ncclSum, comm, it.stream));
  holds(&it, it.to, mpi_size, 0, 100);
  fine(ncclCommDestroy(comm));
  end(&it);
}

static void a_group_holds_calls_of_several_communicators(void) {
  world one = begin("net=none"), other = begin("net=none");
  put(one.from, 1, 0, LONGEST);
  put(other.from, 2, 0, LONGEST);
  fine(ncclGroupStart());
  for (int i = 0; i < 20; i++) {
    fine(ncclAllReduce(one.from, one.to, LONGEST, ncclInt32, ncclSum, one.comm, one.stream));
    fine(
        ncclAllReduce(other.from, other.to, LONGEST, ncclInt32, ncclSum, other.comm, other.stream));
  }
  fine(ncclGroupEnd());
  holds(&one, one.to, mpi_size, 0, LONGEST);
  holds(&other, other.to, 2 * mpi_size, 0, LONGEST);
  end(&one);
  end(&other);
}

static const mpi_property properties[] = {
    PROPERTY(a_group_begins_when_the_outermost_ends),
    PROPERTY(a_group_that_is_simulated_ends_and_makes_no_call),
    PROPERTY(a_group_holds_calls_of_several_communicators),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(alone_main, properties)
