/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The persistent all-reduce of MPI-4. */

#include "libcomm/interpose/mpi/interpose_persistent.h"

LCOMM_INTERPOSE_ALLREDUCE_INIT(MPI_Allreduce_init, int)
