/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The persistent all-reduce of Open MPI 4: an extension of its own, for C and Fortran. */

#include <mpi.h>
/* after mpi.h */
#include <mpi-ext.h>

#include "libcomm/interpose/mpi/interpose_fortran.h"
#include "libcomm/interpose/mpi/interpose_persistent.h"

LCOMM_INTERPOSE_API int MPIX_Allreduce_init(const void *sendbuf, void *recvbuf, int count,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                            MPI_Info info, MPI_Request *request) {
  int code = MPI_SUCCESS;
  return lcomm_interpose_allreduce_init(sendbuf, recvbuf, count, type, op, comm, request, &code)
             ? code
             : PMPIX_Allreduce_init(sendbuf, recvbuf, count, type, op, comm, info, request);
}

static void lcomm_interpose_mpix_allreduce_init(void *send, void *receive, MPI_Fint *count,
                                                MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                                MPI_Fint *info, MPI_Fint *request,
                                                MPI_Fint *error) {
  MPI_Request made;
  int code = MPIX_Allreduce_init(
      lcomm_interpose_fortran_send(send), lcomm_interpose_fortran_buffer(receive), *count,
      PMPI_Type_f2c(*type), PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info), &made);
  if (code == MPI_SUCCESS) {
    *request = PMPI_Request_c2f(made);
  }
  lcomm_interpose_fortran_end(error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpix_allreduce_init, MPIX_ALLREDUCE_INIT)
