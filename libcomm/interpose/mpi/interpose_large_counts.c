/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective functions of MPI-4 with counts of MPI_Count. */

#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define NAME(name) name##_c
#include "libcomm/interpose/mpi/interpose_collective_functions.h"
#include "libcomm/interpose/mpi/interpose_persistent.h"

LCOMM_INTERPOSE_ALLREDUCE_INIT(MPI_Allreduce_init_c, MPI_Count)
