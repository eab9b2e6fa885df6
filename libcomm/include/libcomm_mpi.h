/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_MPI_H
#define LIBCOMM_MPI_H

#include <mpi.h>

#include "libcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Make a communicator over the ranks of an MPI intra-communicator.
 * Collective. MPI must be initialised; it must not be finalised before
 * lcomm_destroy(). A communicator of its own is
 * made over the same ranks, without the caller's attributes, so the caller's traffic
 * and libcomm's never mix, and the caller may free it after the call. Ranks are
 * numbered as in `mpi_comm`. Errors as lcomm_create(), and ARGUMENT for
 * MPI_COMM_NULL, an inter-communicator, or an MPI that is not running. */
LCOMM_API lcomm_status lcomm_create_mpi(MPI_Comm mpi_comm, const lcomm_config *config,
                                        lcomm_comm **comm);

#ifdef __cplusplus
}
#endif

#endif
