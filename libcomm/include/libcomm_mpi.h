/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_MPI_H
#define LIBCOMM_MPI_H

/* libcomm for programs that use MPI. These functions are in a library of their own, so that
 * libcomm.so needs no MPI: link with `pkg-config --cflags --libs libcomm-with-mpi`, which is
 * -lcomm-with-mpi -lcomm. In a process that has loaded it MPI is also a transport for all
 * other communicators (lcomm_create(), lcomm_create_env()) whose ranks share an
 * MPI_COMM_WORLD. Such a library is for one MPI, that of the mpi.h it was built with. */

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
 * numbered as in `mpi_comm`. Errors as lcomm_create(), ARGUMENT for
 * MPI_COMM_NULL, an inter-communicator, or an MPI that is not running, and UNSUPPORTED for
 * an MPI that the library was not built for. */
LCOMM_API lcomm_status lcomm_create_mpi(MPI_Comm mpi_comm, const lcomm_config *config,
                                        lcomm_comm **comm);

/* The MPI that this library was built for, such as "Open MPI 4.1". The text is static. */
LCOMM_API const char *lcomm_mpi_built_for(void);

/* The MPI of this process, such as "MPICH 4.0.2"; also before MPI_Init. The text is static. */
LCOMM_API const char *lcomm_mpi_running(void);

/* NULL when they are of one name and major version, else a sentence that names both: no
 * handle of MPI may be used then. Also before MPI_Init. The text is static. */
LCOMM_API const char *lcomm_mpi_other(void);

#ifdef __cplusplus
}
#endif

#endif
