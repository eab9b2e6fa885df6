/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The persistent all-reduce of MPI-4. */

#include "libcomm/interpose/mpi/interpose_persistent.h"

LCOMM_INTERPOSE_API int MPI_Allreduce_init(const void *sendbuf, void *recvbuf, int count,
                                           MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                           MPI_Info info, MPI_Request *request) {
  int code = MPI_SUCCESS;
  return lcomm_interpose_allreduce_init(sendbuf, recvbuf, count, type, op, comm, request, &code)
             ? code
             : PMPI_Allreduce_init(sendbuf, recvbuf, count, type, op, comm, info, request);
}
