/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPI_ALLREDUCE_INIT, for an MPI that has MPI_Allreduce_init and whose Fortran bindings call PMPI_
 * functions. */

#include "libcomm/interpose/mpi/interpose_fortran.h"

LCOMM_INTERPOSE_FORTRAN_INIT(mpi_allreduce_init, MPI_ALLREDUCE_INIT, MPI_Allreduce_init)
