/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* libcomm makes NCCL's calls, and LCOMM_INTERPOSE_CONTROL is set on some ranks only. */

#include "tests/interpose/nccl/nccl_control_file.h"

static void no_communicator_is_made_and_all_ranks_say_why(void) {
  ncclComm_t comm = NULL;
  pose_as_nodes(mpi_size);
  for (int i = 0; i < 3; i++) {
    refused(ncclCommInitRank(&comm, mpi_size, share_id(), mpi_rank), ncclInvalidUsage,
            "LCOMM_INTERPOSE_CONTROL is set on some ranks");
    require(!comm, "there is a communicator");
  }
}

static const mpi_property properties[] = {
    PROPERTY(no_communicator_is_made_and_all_ranks_say_why),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

/* Ranks are known by their launcher's variables before MPI begins. */
static int differs_main(int *argc, char ***argv, const mpi_property *all, int count) {
  const char *of_open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *of_others = getenv("PMI_RANK");
  const char *rank = of_open_mpi ? of_open_mpi : of_others;
  if (rank && atoi(rank) == 0) {
    name_control_file();
  }
  return alone_main(argc, argv, all, count);
}

RUN_PROPERTIES(differs_main, properties)
