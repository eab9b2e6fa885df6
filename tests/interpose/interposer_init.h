/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TESTS_INTERPOSE_INTERPOSER_INIT_H
#define TESTS_INTERPOSE_INTERPOSER_INIT_H

/* The persistent all-reduce under the name that this MPI has it: MPI_Allreduce_init since
 * MPI-4 and Open MPI 5, before that an extension of Open MPI. */

#include <mpi.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define ALLREDUCE_INIT MPI_Allreduce_init
#define PLAIN_ALLREDUCE_INIT PMPI_Allreduce_init
#elif defined(OMPI_MAJOR_VERSION)
#include <mpi-ext.h>
#define ALLREDUCE_INIT MPIX_Allreduce_init
#define PLAIN_ALLREDUCE_INIT PMPIX_Allreduce_init
#else
#define ALLREDUCE_INIT NULL
#define PLAIN_ALLREDUCE_INIT NULL
#endif

#endif
