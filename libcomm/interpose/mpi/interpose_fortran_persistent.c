/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPI_ALLREDUCE_INIT, for an MPI that has MPI_Allreduce_init and whose Fortran bindings call PMPI_
 * functions. */

#include "libcomm/interpose/mpi/interpose_fortran.h"

static void lcomm_interpose_mpi_allreduce_init(void *send, void *receive, MPI_Fint *count,
                                               MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                               MPI_Fint *info, MPI_Fint *request, MPI_Fint *error) {
  MPI_Request made;
  int code = MPI_Allreduce_init(
      lcomm_interpose_fortran_send(send), lcomm_interpose_fortran_buffer(receive), *count,
      PMPI_Type_f2c(*type), PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info), &made);
  if (code == MPI_SUCCESS) {
    *request = PMPI_Request_c2f(made);
  }
  lcomm_interpose_fortran_end(error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_allreduce_init, MPI_ALLREDUCE_INIT)
