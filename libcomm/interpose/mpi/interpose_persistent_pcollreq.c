/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The persistent all-reduce of Open MPI 4: an extension of its own, for C and Fortran. */

#include <mpi.h>
/* after mpi.h */
#include <mpi-ext.h>

#include "libcomm/interpose/mpi/interpose_fortran.h"
#include "libcomm/interpose/mpi/interpose_persistent.h"

LCOMM_INTERPOSE_ALLREDUCE_INIT(MPIX_Allreduce_init, int)
LCOMM_INTERPOSE_FORTRAN_INIT(mpix_allreduce_init, MPIX_ALLREDUCE_INIT, MPIX_Allreduce_init)
