/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/mpi_property.h"

#include <stdio.h>
#include <string.h>

static void no_communicator(void) {
  fprintf(stderr, "cannot make a communicator: %s\n", lcomm_last_error(NULL));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

lcomm_comm *make_comm_over(MPI_Comm ranks, const char *policy, int nodes) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.policy = policy;
  config.nodes = nodes;
  if (lcomm_create_mpi(ranks, &config, &comm) != LCOMM_OK) {
    no_communicator();
  }
  return comm;
}

lcomm_comm *make_comm(const char *policy, int nodes) {
  return make_comm_over(MPI_COMM_WORLD, policy, nodes);
}

lcomm_comm *make_comm_if_possible(const lcomm_config *config) {
  lcomm_comm *comm = NULL;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, config, &comm);
  const char *why = lcomm_last_error(NULL);
  if (status == LCOMM_OK) {
    return comm;
  }
  if (status != LCOMM_ERR_TRANSPORT && !strstr(why, "is no transport")) {
    no_communicator();
  }
  skip_property(why);
  return NULL;
}

void require_status_everywhere(const lcomm_comm *comm, lcomm_status got, lcomm_status wanted,
                               const char *word) {
  const char *said = lcomm_last_error(comm);
  require(got == wanted, "%s instead of %s (%s)", lcomm_status_name(got), lcomm_status_name(wanted),
          said);
  require(strstr(said, word) != NULL, "no '%s' in: %s", word, said);
  require(equal_everywhere(got), "the ranks end with different errors");
}

int mpi_property_main(int *argc, char ***argv, const mpi_property *properties, int count) {
  MPI_Init(argc, argv);
  MPI_Query_thread(&mpi_threads);
  return run_properties(*argv, properties, count);
}

int mpi_property_main_threads(int *argc, char ***argv, const mpi_property *properties, int count) {
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &mpi_threads);
  return run_properties(*argv, properties, count);
}
