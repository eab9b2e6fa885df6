/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_INTERPOSER_MPI_H
#define LCOMM_TESTS_INTERPOSER_MPI_H

/* MPI's functions as a table, for interposer_calls.c. */

#include "tests/support/interposer_calls.h"

typedef int (*start_function)(const void *send, void *receive, int count, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm, MPI_Request *request);
typedef int (*start_parts_function)(const void *send, void *receive, const int *parts,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                    MPI_Request *request);

struct interposer_mpi {
  int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
  start_function iallreduce;
  int (*allreduce_init)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                        MPI_Request *);
  int (*reduce_scatter)(const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm);
  start_parts_function ireduce_scatter;
  int (*reduce_scatter_block)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
  start_function ireduce_scatter_block;
  int (*allgather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
  int (*allgatherv)(const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype,
                    MPI_Comm);
  int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
  int (*wait)(MPI_Request *, MPI_Status *);
  int (*start)(MPI_Request *);
  int (*request_free)(MPI_Request *);
};

/* Those with counts of MPI_Count, by way of the interposer; NULL where MPI has none. */
extern const interposer_mpi *const interposer_mpi_large;

#endif
