/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "libcomm/interpose/mpi/fortran.h"

#include <stdlib.h>

/* Collective calls and requests. An MPI has its common blocks under one of these names,
 * the one of the Fortran compiler it was built with. */
#define BLOCK extern int __attribute__((weak))
BLOCK mpi_fortran_in_place, mpi_fortran_in_place_, mpi_fortran_in_place__, MPI_FORTRAN_IN_PLACE;
BLOCK mpi_fortran_bottom, mpi_fortran_bottom_, mpi_fortran_bottom__, MPI_FORTRAN_BOTTOM;

/* NULL is the address of those that do not exist. */
void *lcomm_interpose_fortran_buffer(void *buffer) {
  bool bottom = buffer == &mpi_fortran_bottom_ || buffer == &mpi_fortran_bottom ||
                buffer == &mpi_fortran_bottom__ || buffer == &MPI_FORTRAN_BOTTOM;
  return bottom ? MPI_BOTTOM : buffer;
}

const void *lcomm_interpose_fortran_send(const void *buffer) {
  bool in_place = buffer == &mpi_fortran_in_place_ || buffer == &mpi_fortran_in_place ||
                  buffer == &mpi_fortran_in_place__ || buffer == &MPI_FORTRAN_IN_PLACE;
  if (in_place && buffer) {
    return MPI_IN_PLACE;
  }
  return lcomm_interpose_fortran_buffer((void *)(uintptr_t)buffer);
}

#define SEND lcomm_interpose_fortran_send(send)
#define RECEIVE lcomm_interpose_fortran_buffer(receive)
#define TYPE PMPI_Type_f2c(*type)
#define OP PMPI_Op_f2c(*op)
#define COMM PMPI_Comm_f2c(*comm)

/* -------------------------------------------------------------------- blocking */

static void lcomm_interpose_mpi_allreduce(void *send, void *receive, MPI_Fint *count,
                                          MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                          MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Allreduce(SEND, RECEIVE, *count, TYPE, OP, COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_allreduce, MPI_ALLREDUCE)

static void lcomm_interpose_mpi_reduce_scatter(void *send, void *receive, MPI_Fint *counts,
                                               MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                               MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Reduce_scatter(SEND, RECEIVE, counts, TYPE, OP, COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_reduce_scatter, MPI_REDUCE_SCATTER)

static void lcomm_interpose_mpi_reduce_scatter_block(void *send, void *receive, MPI_Fint *count,
                                                     MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                                     MPI_Fint *error) {
  lcomm_interpose_fortran_end(error,
                              MPI_Reduce_scatter_block(SEND, RECEIVE, *count, TYPE, OP, COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_reduce_scatter_block, MPI_REDUCE_SCATTER_BLOCK)

static void lcomm_interpose_mpi_allgather(void *send, MPI_Fint *count, MPI_Fint *type,
                                          void *receive, MPI_Fint *receive_count,
                                          MPI_Fint *receive_type, MPI_Fint *comm, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Allgather(SEND, *count, TYPE, RECEIVE, *receive_count,
                                                   PMPI_Type_f2c(*receive_type), COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_allgather, MPI_ALLGATHER)

static void lcomm_interpose_mpi_allgatherv(void *send, MPI_Fint *count, MPI_Fint *type,
                                           void *receive, MPI_Fint *counts, MPI_Fint *places,
                                           MPI_Fint *receive_type, MPI_Fint *comm,
                                           MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Allgatherv(SEND, *count, TYPE, RECEIVE, counts, places,
                                                    PMPI_Type_f2c(*receive_type), COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_allgatherv, MPI_ALLGATHERV)

static void lcomm_interpose_mpi_bcast(void *receive, MPI_Fint *count, MPI_Fint *type,
                                      MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Bcast(RECEIVE, *count, TYPE, *root, COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_bcast, MPI_BCAST)

/* ------------------------------------------------- non-blocking and persistent */

/* What made a request gives it to the program only when all went well. */
static void give(MPI_Request made, MPI_Fint *request, MPI_Fint *error, int code) {
  if (code == MPI_SUCCESS) {
    *request = PMPI_Request_c2f(made);
  }
  lcomm_interpose_fortran_end(error, code);
}

static void lcomm_interpose_mpi_iallreduce(void *send, void *receive, MPI_Fint *count,
                                           MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                           MPI_Fint *request, MPI_Fint *error) {
  MPI_Request made;
  int code = MPI_Iallreduce(SEND, RECEIVE, *count, TYPE, OP, COMM, &made);
  give(made, request, error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_iallreduce, MPI_IALLREDUCE)

static void lcomm_interpose_mpi_ireduce_scatter(void *send, void *receive, MPI_Fint *counts,
                                                MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                                MPI_Fint *request, MPI_Fint *error) {
  MPI_Request made;
  int code = MPI_Ireduce_scatter(SEND, RECEIVE, counts, TYPE, OP, COMM, &made);
  give(made, request, error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_ireduce_scatter, MPI_IREDUCE_SCATTER)

static void lcomm_interpose_mpi_ireduce_scatter_block(void *send, void *receive, MPI_Fint *count,
                                                      MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                                      MPI_Fint *request, MPI_Fint *error) {
  MPI_Request made;
  int code = MPI_Ireduce_scatter_block(SEND, RECEIVE, *count, TYPE, OP, COMM, &made);
  give(made, request, error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_ireduce_scatter_block, MPI_IREDUCE_SCATTER_BLOCK)

static void lcomm_interpose_mpi_start(MPI_Fint *request, MPI_Fint *error) {
  MPI_Request started = PMPI_Request_f2c(*request);
  int code = MPI_Start(&started);
  give(started, request, error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_start, MPI_START)

static void lcomm_interpose_mpi_startall(MPI_Fint *count, MPI_Fint *requests, MPI_Fint *error) {
  int n = *count;
  MPI_Request *started = malloc(sizeof *started * (size_t)(n > 0 ? n : 1));
  if (!started) {
    lcomm_interpose_fortran_end(error, PMPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_NO_MEM));
    return;
  }
  for (int i = 0; i < n; i++) {
    started[i] = PMPI_Request_f2c(requests[i]);
  }
  int code = MPI_Startall(n, started);
  for (int i = 0; i < n; i++) {
    requests[i] = PMPI_Request_c2f(started[i]);
  }
  free(started);
  lcomm_interpose_fortran_end(error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_startall, MPI_STARTALL)

static void lcomm_interpose_mpi_request_free(MPI_Fint *request, MPI_Fint *error) {
  MPI_Request freed = PMPI_Request_f2c(*request);
  int code = MPI_Request_free(&freed);
  give(freed, request, error, code);
}
LCOMM_INTERPOSE_FORTRAN(mpi_request_free, MPI_REQUEST_FREE)
