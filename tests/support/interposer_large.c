/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tests/support/interposer_mpi.h"

#if MPI_VERSION >= 4

/* Parts as MPI_Count, places as MPI_Aint. */
typedef struct large_parts {
  MPI_Count counts[INTERPOSER_RANKS_MAX];
  MPI_Aint places[INTERPOSER_RANKS_MAX];
} large_parts;

static large_parts enlarge(const int *parts) {
  large_parts large;
  for (int i = 0; i < INTERPOSER_RANKS_MAX; i++) {
    large.counts[i] = parts[i];
    large.places[i] = 0;
  }
  return large;
}

static int allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm) {
  return MPI_Allreduce_c(send, receive, count, type, op, comm);
}

static int iallreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm, MPI_Request *request) {
  return MPI_Iallreduce_c(send, receive, count, type, op, comm, request);
}

static int allreduce_init(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  return MPI_Allreduce_init_c(send, receive, count, type, op, comm, info, request);
}

static int reduce_scatter(const void *send, void *receive, const int *parts, MPI_Datatype type,
                          MPI_Op op, MPI_Comm comm) {
  large_parts large = enlarge(parts);
  return MPI_Reduce_scatter_c(send, receive, large.counts, type, op, comm);
}

/* MPI may read the counts until the call is over; one call at a time is made here. */
static int ireduce_scatter(const void *send, void *receive, const int *parts, MPI_Datatype type,
                           MPI_Op op, MPI_Comm comm, MPI_Request *request) {
  static _Thread_local large_parts large;
  large = enlarge(parts);
  return MPI_Ireduce_scatter_c(send, receive, large.counts, type, op, comm, request);
}

static int reduce_scatter_block(const void *send, void *receive, int count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm) {
  return MPI_Reduce_scatter_block_c(send, receive, count, type, op, comm);
}

static int ireduce_scatter_block(const void *send, void *receive, int count, MPI_Datatype type,
                                 MPI_Op op, MPI_Comm comm, MPI_Request *request) {
  return MPI_Ireduce_scatter_block_c(send, receive, count, type, op, comm, request);
}

static int allgather(const void *send, int count, MPI_Datatype type, void *receive,
                     int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return MPI_Allgather_c(send, count, type, receive, receive_count, receive_type, comm);
}

static int allgatherv(const void *send, int count, MPI_Datatype type, void *receive,
                      const int *parts, const int *places, MPI_Datatype receive_type,
                      MPI_Comm comm) {
  large_parts large = enlarge(parts);
  for (int i = 0; i < INTERPOSER_RANKS_MAX; i++) {
    large.places[i] = places[i];
  }
  return MPI_Allgatherv_c(send, count, type, receive, large.counts, large.places, receive_type,
                          comm);
}

static int bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return MPI_Bcast_c(buffer, count, type, root, comm);
}

static const interposer_mpi large = {
    allreduce,
    iallreduce,
    allreduce_init,
    reduce_scatter,
    ireduce_scatter,
    reduce_scatter_block,
    ireduce_scatter_block,
    allgather,
    allgatherv,
    bcast,
    MPI_Wait,
    MPI_Start,
    MPI_Request_free,
};

const interposer_mpi *const interposer_mpi_large = &large;

#else

const interposer_mpi *const interposer_mpi_large = NULL;

#endif
