/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_MPI_MPI_TRANSPORT_H
#define LCOMM_TRANSPORT_MPI_MPI_TRANSPORT_H

#include "libcomm/transport/transport.h"

/* Messages over the MPI_Comm of the setup, which stays its owner's: it must
 * live until close, and nobody else may use it. Reaches every rank. */
extern const lcomm_transport_table lcomm_transport_mpi;

#endif
