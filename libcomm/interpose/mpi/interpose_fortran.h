/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_FORTRAN_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_FORTRAN_H

/* Fortran. The Fortran bindings of an MPI call PMPI_ functions and so bypass the C functions of
 * this library. Each C function therefore has a Fortran form here, which converts what the bindings
 * convert and calls the C function. mpif.h, `use mpi` and `use mpi_f08` pass buffers as plain
 * addresses; handles of mpi_f08 are structures that hold the integer; its error argument is
 * optional and NULL when absent. So one function serves all three under several names.
 */

#include "libcomm/interpose/mpi/interpose.h"

/* Arrays of integers are passed on unchanged. */
_Static_assert(sizeof(MPI_Fint) == sizeof(int), "INTEGER of this MPI's Fortran is not C's int");

/* LCOMM_INTERPOSE_FORTRAN(mpi_x, MPI_X): export the function lcomm_interpose_mpi_x under the names
 * that compilers give to MPI_X and to its mpi_f08 form. */
#define LCOMM_INTERPOSE_FORTRAN(lower, upper)                                                      \
  LCOMM_INTERPOSE_ALIAS(lower, lower)                                                              \
  LCOMM_INTERPOSE_ALIAS(lower##_, lower)                                                           \
  LCOMM_INTERPOSE_ALIAS(lower##__, lower)                                                          \
  LCOMM_INTERPOSE_ALIAS(upper, lower)                                                              \
  LCOMM_INTERPOSE_ALIAS(lower##_f08_, lower)
#define LCOMM_INTERPOSE_ALIAS(name, lower)                                                         \
  extern LCOMM_INTERPOSE_API __typeof__(lcomm_interpose_##lower) name                              \
      __attribute__((alias("lcomm_interpose_" #lower)));

/* Fortran's MPI_IN_PLACE and MPI_BOTTOM are addresses of common blocks; these return C's. */
const void *lcomm_interpose_fortran_send(const void *buffer); /* MPI_IN_PLACE, MPI_BOTTOM */
void *lcomm_interpose_fortran_buffer(void *buffer);           /* MPI_BOTTOM */

static inline void lcomm_interpose_fortran_end(MPI_Fint *error, int code) {
  if (error) {
    *error = code;
  }
}

/* The program gets a request only on success. */
static inline void lcomm_interpose_fortran_request(MPI_Request made, MPI_Fint *request,
                                                   MPI_Fint *error, int code) {
  if (code == MPI_SUCCESS) {
    *request = PMPI_Request_c2f(made);
  }
  lcomm_interpose_fortran_end(error, code);
}

/* The Fortran form of `function`, which creates a persistent all-reduce. */
#define LCOMM_INTERPOSE_FORTRAN_INIT(lower, upper, function)                                       \
  static void lcomm_interpose_##lower(void *send, void *receive, MPI_Fint *count, MPI_Fint *type,  \
                                      MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info,                \
                                      MPI_Fint *request, MPI_Fint *error) {                        \
    MPI_Request made = MPI_REQUEST_NULL;                                                           \
    int code = function(lcomm_interpose_fortran_send(send),                                        \
                        lcomm_interpose_fortran_buffer(receive), *count, PMPI_Type_f2c(*type),     \
                        PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info), &made);      \
    lcomm_interpose_fortran_request(made, request, error, code);                                   \
  }                                                                                                \
  LCOMM_INTERPOSE_FORTRAN(lower, upper)

#endif
