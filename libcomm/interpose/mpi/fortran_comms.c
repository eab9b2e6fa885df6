/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "libcomm/interpose/mpi/fortran.h"

#include <stdlib.h>
#include <string.h>

/* Start, end and communicators. */

/* ---------------------------------------------------------------- start and end */

static void lcomm_interpose_mpi_init(MPI_Fint *error) {
  int argc = 0;
  char **argv = NULL;
  lcomm_interpose_fortran_end(error, MPI_Init(&argc, &argv));
}
LCOMM_INTERPOSE_FORTRAN(mpi_init, MPI_INIT)

static void lcomm_interpose_mpi_init_thread(MPI_Fint *required, MPI_Fint *provided,
                                            MPI_Fint *error) {
  int argc = 0;
  char **argv = NULL;
  lcomm_interpose_fortran_end(error, MPI_Init_thread(&argc, &argv, *required, provided));
}
LCOMM_INTERPOSE_FORTRAN(mpi_init_thread, MPI_INIT_THREAD)

static void lcomm_interpose_mpi_query_thread(MPI_Fint *provided, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Query_thread(provided));
}
LCOMM_INTERPOSE_FORTRAN(mpi_query_thread, MPI_QUERY_THREAD)

static void lcomm_interpose_mpi_finalize(MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Finalize());
}
LCOMM_INTERPOSE_FORTRAN(mpi_finalize, MPI_FINALIZE)

/* ------------------------------------------------------------- communicators */

/* A new communicator goes to the program only when all went well. */
static void give(MPI_Comm made, MPI_Fint *comm, MPI_Fint *error, int code) {
  if (code == MPI_SUCCESS) {
    *comm = PMPI_Comm_c2f(made);
  }
  lcomm_interpose_fortran_end(error, code);
}

static void lcomm_interpose_mpi_comm_free(MPI_Fint *comm, MPI_Fint *error) {
  MPI_Comm own = PMPI_Comm_f2c(*comm);
  int code = MPI_Comm_free(&own);
  give(own, comm, error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_comm_free, MPI_COMM_FREE)

static void lcomm_interpose_mpi_comm_disconnect(MPI_Fint *comm, MPI_Fint *error) {
  MPI_Comm own = PMPI_Comm_f2c(*comm);
  int code = MPI_Comm_disconnect(&own);
  give(own, comm, error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_comm_disconnect, MPI_COMM_DISCONNECT)

/* The length of a text is a last argument that Fortran programs do not see. Blanks around
 * a name are not part of it. */
static void lcomm_interpose_mpi_comm_set_name(MPI_Fint *comm, const char *name, MPI_Fint *error,
                                              int length) {
  char text[MPI_MAX_OBJECT_NAME];
  int begin = 0;
  while (begin < length && name[begin] == ' ') {
    begin++;
  }
  while (length > begin && name[length - 1] == ' ') {
    length--;
  }
  size_t size = (size_t)(length - begin);
  if (size >= sizeof text) {
    size = sizeof text - 1;
  }
  memcpy(text, name + begin, size);
  text[size] = 0;
  lcomm_interpose_fortran_end(error, MPI_Comm_set_name(PMPI_Comm_f2c(*comm), text));
}
LCOMM_INTERPOSE_FORTRAN(mpi_comm_set_name, MPI_COMM_SET_NAME)
