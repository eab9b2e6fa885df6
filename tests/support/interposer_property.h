/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_INTERPOSER_PROPERTY_H
#define LCOMM_TESTS_INTERPOSER_PROPERTY_H

/* Properties of programs that know nothing of libcomm, see property.h. MPI_X is
 * the interposer's where its library is linked or preloaded. Without the interposer the
 * programs run on plain MPI and must pass too. */

#include "tests/support/property.h"

/* Set the environment with `before`, which may be NULL, then initialise MPI, run
 * all, finalise; the exit code for main. Before it are set, where they are not:
 * LCOMM_NODES=2 (1 with one rank), LCOMM_TRANSPORT=shm,mpi. The second asks for
 * a thread level with MPI_Init_thread, the first calls MPI_Init.
 * argv[1]: only properties with that in their name. */
int interposer_property_main(int *argc, char ***argv, void (*before)(void),
                             const mpi_property *properties, int count);
int interposer_property_main_threads(int *argc, char ***argv, void (*before)(void), int level,
                                     const mpi_property *properties, int count);

/* main() of a program that is nothing but a table of properties. */
#define RUN_INTERPOSER_PROPERTIES(before, properties)                                              \
  int main(int argc, char **argv) {                                                                \
    return interposer_property_main(&argc, &argv, before, WITH_COUNT(properties));                 \
  }
#define RUN_INTERPOSER_PROPERTIES_THREADS(before, level, properties)                               \
  int main(int argc, char **argv) {                                                                \
    return interposer_property_main_threads(&argc, &argv, before, level, WITH_COUNT(properties));  \
  }

/* For `before`: set an environment variable that is not set. */
void set_default(const char *variable, const char *value);

/* For `before`: how many ranks the launcher started, and which is this one. */
int launched_ranks(void);
int launched_rank(void);

/* MPIs differ in what they survive. */
bool mpi_is_mpich(void);

/* Is the interposer in this process? Is it on, by LCOMM_POLICY and LCOMM_INTERPOSE? */
bool interposer_is_there(void);
bool interposer_is_on(void);

/* For PROPERTY_WHERE: it is on; else the property, which plain MPI does not have, is skipped. */
bool needs_interposer(void);

/* The node that a rank of the world poses to be on, with 2 nodes. */
int node_of(int world_rank);

#endif
