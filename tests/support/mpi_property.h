/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_MPI_PROPERTY_H
#define LCOMM_TESTS_MPI_PROPERTY_H

/* Properties that hold on several ranks. A property is a function that every
 * rank runs; it says with require() what must be true. The line PASS, FAIL or
 * SKIP is printed once, by rank 0, after all ranks have come back. */

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "libcomm/include/libcomm_mpi.h"

typedef void (*mpi_property_function)(void);

typedef struct mpi_property {
  const char *name;
  mpi_property_function run;
} mpi_property;

/* Initialise MPI, run all, finalise; the exit code for main. The second asks
 * for MPI_THREAD_MULTIPLE. */
int mpi_property_main(int *argc, char ***argv, const mpi_property *properties, int count);
int mpi_property_main_threads(int *argc, char ***argv, const mpi_property *properties, int count);

extern int mpi_rank, mpi_size;
extern int mpi_threads; /* the level that MPI gave */

/* Remember a failure of this rank; the first one of the lowest rank is shown. */
__attribute__((format(printf, 2, 3))) void require(bool holds, const char *format, ...);

/* The property cannot be tried here; counted as skipped. */
void skip_property(const char *why);

/* A communicator over all ranks; ends the test run if it cannot be made. */
lcomm_comm *make_comm(const char *policy, int nodes);

/* The same with a configuration. NULL when the transports that it names are
 * not there, in this build or on this machine: the property is then skipped, and
 * the line says why. Anything else ends the test run. */
lcomm_comm *make_comm_if_possible(const lcomm_config *config);

/* Do all ranks hold the same bytes? */
bool same_everywhere(const void *bytes, size_t size);

/* Is a value (a status, say) the same on all ranks? */
bool equal_everywhere(int64_t value);

/* Reproducible numbers that look like gradients: mostly small, some large. */
void fill_gradient(float *values, uint64_t count, uint64_t seed);

#endif
