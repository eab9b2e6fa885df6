/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_MPI_PROPERTY_H
#define LCOMM_TESTS_MPI_PROPERTY_H

/* Properties of libcomm on several ranks, see property.h. */

#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/include/libcomm_mpi.h"
#include "tests/support/property.h"

/* Initialise MPI, run all, finalise; the exit code for main. The second asks
 * for MPI_THREAD_MULTIPLE. */
int mpi_property_main(int *argc, char ***argv, const mpi_property *properties, int count);
int mpi_property_main_threads(int *argc, char ***argv, const mpi_property *properties, int count);

/* A communicator over all ranks, or over those of an MPI communicator; ends the test run if it
 * cannot be made. */
lcomm_comm *make_comm(const char *policy, int nodes);
lcomm_comm *make_comm_over(MPI_Comm ranks, const char *policy, int nodes);

/* The same with a configuration. NULL when the transports that it names are
 * not there, in this build or on this machine: the property is then skipped, and
 * the line says why. Anything else ends the test run. */
lcomm_comm *make_comm_if_possible(const lcomm_config *config);

/* A call gave `wanted` on every rank, and `word` is in the sentence of each. */
void require_status_everywhere(const lcomm_comm *comm, lcomm_status got, lcomm_status wanted,
                               const char *word);

/* Nodes of a communicator over all ranks: two, where there are ranks for them. */
static inline int two_nodes(void) {
  return mpi_size < 2 ? 1 : 2;
}

#endif
