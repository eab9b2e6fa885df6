/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* ncclCommAbort while other ranks wait. */

#include "tests/interpose/nccl/nccl_world.h"

static void an_abort_of_one_unblocks_all(void) {
  world it = begin("net=none");
  put(it.from, 1, 0, LONGEST);
  abort_while_others_wait(&it, ncclInt32, LONGEST);
}

static const mpi_property properties[] = {
    PROPERTY(an_abort_of_one_unblocks_all),
    PROPERTY(the_device_comes_to_an_end),
};

RUN_PROPERTIES(alone_main, properties)
