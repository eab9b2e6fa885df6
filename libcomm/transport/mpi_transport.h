/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_MPI_TRANSPORT_H
#define LCOMM_TRANSPORT_MPI_TRANSPORT_H

#include <mpi.h>

#include "libcomm/transport/transport.h"

/* Messages over an MPI communicator. Takes ownership of `mpi_comm`, which
 * nobody else may use, on success only. TRANSPORT if the MPI cannot do it,
 * with a phrase in why (static). MEMORY. */
lcomm_status lcomm_transport_mpi_open(MPI_Comm mpi_comm, lcomm_transport **transport,
                                      const char **why);

#endif
