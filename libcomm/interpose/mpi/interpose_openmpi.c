/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What Open MPI alone needs. Its waiting functions see what another thread completes, so they are
 * called as they are, unless a call of the queue may need the thread that waits; its Fortran
 * bindings bypass the C functions. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/mpi/interpose_fortran.h"
#include "libcomm/interpose/mpi/interpose_left.h"
#include "libcomm/interpose/mpi/interpose_wait.h"

/* --------------------------------------------------------------------- waiting */

const bool lcomm_interpose_query_may_fail = true;

bool lcomm_interpose_waits_by_tests(void) {
  return lcomm_interpose_left_may_come();
}

int lcomm_interpose_request_free(MPI_Request *request) {
  return PMPI_Request_free(request);
}

/* ------------------------------------------------------------ Fortran: buffers */

/* An MPI has its common blocks under one of these names, as its Fortran compiler made them. */
#define BLOCK extern int __attribute__((weak))
BLOCK mpi_fortran_in_place, mpi_fortran_in_place_, mpi_fortran_in_place__, MPI_FORTRAN_IN_PLACE;
BLOCK mpi_fortran_bottom, mpi_fortran_bottom_, mpi_fortran_bottom__, MPI_FORTRAN_BOTTOM;

/* Names that do not exist have the address NULL. */
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

/* --------------------------------------------------------------- Fortran: sums */

/* Blocking, and not. C's `function` takes the count, or the address of several. */
#define BLOCKING_SUM(function, lower, upper, counts)                                               \
  static void lcomm_interpose_##lower(void *send, void *receive, MPI_Fint *count, MPI_Fint *type,  \
                                      MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error) {             \
    lcomm_interpose_fortran_end(error, function(SEND, RECEIVE, counts, TYPE, OP, COMM));           \
  }                                                                                                \
  LCOMM_INTERPOSE_FORTRAN(lower, upper)
#define NONBLOCKING_SUM(function, lower, upper, counts)                                            \
  static void lcomm_interpose_##lower(void *send, void *receive, MPI_Fint *count, MPI_Fint *type,  \
                                      MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request,             \
                                      MPI_Fint *error) {                                           \
    MPI_Request made = MPI_REQUEST_NULL;                                                           \
    int code = function(SEND, RECEIVE, counts, TYPE, OP, COMM, &made);                             \
    lcomm_interpose_fortran_request(made, request, error, code);                                   \
  }                                                                                                \
  LCOMM_INTERPOSE_FORTRAN(lower, upper)

BLOCKING_SUM(MPI_Allreduce, mpi_allreduce, MPI_ALLREDUCE, *count)
BLOCKING_SUM(MPI_Reduce_scatter, mpi_reduce_scatter, MPI_REDUCE_SCATTER, count)
BLOCKING_SUM(MPI_Reduce_scatter_block, mpi_reduce_scatter_block, MPI_REDUCE_SCATTER_BLOCK, *count)
NONBLOCKING_SUM(MPI_Iallreduce, mpi_iallreduce, MPI_IALLREDUCE, *count)
NONBLOCKING_SUM(MPI_Ireduce_scatter, mpi_ireduce_scatter, MPI_IREDUCE_SCATTER, count)
NONBLOCKING_SUM(MPI_Ireduce_scatter_block, mpi_ireduce_scatter_block, MPI_IREDUCE_SCATTER_BLOCK,
                *count)

/* -------------------------------------------------------------- Fortran: moves */

static void lcomm_interpose_mpi_allgather(void *send, MPI_Fint *count, MPI_Fint *type,
                                          void *receive, MPI_Fint *receive_count,
                                          MPI_Fint *receive_type, MPI_Fint *comm, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Allgather(SEND, *count, TYPE, RECEIVE, *receive_count,
                                                   PMPI_Type_f2c(*receive_type), COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_allgather, MPI_ALLGATHER)

static void lcomm_interpose_mpi_allgatherv(void *send, MPI_Fint *count, MPI_Fint *type,
                                           void *receive, MPI_Fint *counts, MPI_Fint *displs,
                                           MPI_Fint *receive_type, MPI_Fint *comm,
                                           MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Allgatherv(SEND, *count, TYPE, RECEIVE, counts, displs,
                                                    PMPI_Type_f2c(*receive_type), COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_allgatherv, MPI_ALLGATHERV)

static void lcomm_interpose_mpi_bcast(void *receive, MPI_Fint *count, MPI_Fint *type,
                                      MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Bcast(RECEIVE, *count, TYPE, *root, COMM));
}
LCOMM_INTERPOSE_FORTRAN(mpi_bcast, MPI_BCAST)

/* ----------------------------------------- Fortran: requests and communicators */

/* A function of one handle, which it may change: of type MPI_Request or MPI_Comm. */
#define OF_HANDLE(type, function, lower, upper)                                                    \
  static void lcomm_interpose_##lower(MPI_Fint *handle, MPI_Fint *error) {                         \
    type own = P##type##_f2c(*handle);                                                             \
    int code = function(&own);                                                                     \
    if (code == MPI_SUCCESS) {                                                                     \
      *handle = P##type##_c2f(own);                                                                \
    }                                                                                              \
    lcomm_interpose_fortran_end(error, code);                                                      \
  }                                                                                                \
  LCOMM_INTERPOSE_FORTRAN(lower, upper)

OF_HANDLE(MPI_Request, MPI_Start, mpi_start, MPI_START)
OF_HANDLE(MPI_Request, MPI_Request_free, mpi_request_free, MPI_REQUEST_FREE)
OF_HANDLE(MPI_Comm, MPI_Comm_free, mpi_comm_free, MPI_COMM_FREE)
OF_HANDLE(MPI_Comm, MPI_Comm_disconnect, mpi_comm_disconnect, MPI_COMM_DISCONNECT)

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

/* -------------------------------------------------- Fortran: init and finalize */

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

/* Fortran passes the length of a text as a hidden last argument. Blanks around a name are not part
 * of it. */
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
