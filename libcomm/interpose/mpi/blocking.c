/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The blocking collective calls. What is not taken goes to MPI with the arguments as
 * they were given, so that all checks of arguments are MPI's. */

#include "libcomm/interpose/mpi/blocking.h"

/* Elements of `type` from `start`, in bytes. */
static const void *place(const void *start, uint64_t elements, lcomm_dtype dtype) {
  return (const char *)start + elements * lcomm_dtype_size(dtype);
}

/* -------------------------------------------------------------------- sums */

LCOMM_INTERPOSE_API int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count,
                                      MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  if (lcomm_interpose_is_shut() || count <= 0 ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Allreduce(sendbuf, recvbuf, count, type, op, comm);
  }
  call.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
  call.receive = recvbuf;
  return lcomm_interpose_make(&call);
}

LCOMM_INTERPOSE_API int MPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
                                                 MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER, .count = (uint64_t)recvcount};
  if (lcomm_interpose_is_shut() || recvcount <= 0 ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Reduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, comm);
  }
  call.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
  call.receive = recvbuf;
  return lcomm_interpose_make(&call);
}

/* The number of ranks of a communicator that may have parts; 0 if it has none. */
static int ranks_of(MPI_Comm comm) {
  int size = 0, inter = 0;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter ||
      PMPI_Comm_size(comm, &size) != MPI_SUCCESS) {
    return 0;
  }
  return size;
}

bool lcomm_interpose_parts(const int counts[], MPI_Comm comm, uint64_t *mean, bool *even) {
  int size = counts ? ranks_of(comm) : 0;
  uint64_t sum = 0;
  *even = true;
  for (int i = 0; i < size; i++) {
    if (counts[i] < 0) {
      return false;
    }
    *even &= counts[i] == counts[0];
    sum += (uint64_t)counts[i];
  }
  *mean = size > 0 ? (sum + (uint64_t)size - 1) / (uint64_t)size : 0;
  return *mean > 0;
}

/* A rank whose part is empty may give any receive buffer. The communicator has parts. */
static bool are_sound(const void *send, const void *receive, const int counts[], MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return lcomm_interpose_buffers_differ(send, receive) || (send && counts[rank] == 0);
}

LCOMM_INTERPOSE_API int MPI_Reduce_scatter(const void *sendbuf, void *recvbuf,
                                           const int recvcounts[], MPI_Datatype type, MPI_Op op,
                                           MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER};
  bool even = false;
  if (lcomm_interpose_is_shut() || !lcomm_interpose_parts(recvcounts, comm, &call.count, &even) ||
      !are_sound(sendbuf, recvbuf, recvcounts, comm) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, type, op, comm);
  }
  for (int i = 0; i < call.at->size && !even; i++) {
    call.at->parts[i] = (uint64_t)recvcounts[i];
  }
  call.part_counts = even ? NULL : call.at->parts;
  call.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
  call.receive = recvbuf;
  return lcomm_interpose_make(&call);
}

/* ------------------------------------------------------------------- moves */

/* MPI lets ranks describe the same data by different types and counts; a rule of
 * match=call= asks for programs that do not. */
LCOMM_INTERPOSE_API int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root,
                                  MPI_Comm comm) {
  lcomm_interpose_call call = {
      .kind = LCOMM_CALL_BROADCAST, .count = (uint64_t)count, .root = root};
  if (lcomm_interpose_is_shut() || count <= 0 || buffer == MPI_IN_PLACE ||
      !lcomm_interpose_take(comm, type, MPI_OP_NULL, &call)) {
    return PMPI_Bcast(buffer, count, type, root, comm);
  }
  call.send = call.receive = buffer;
  return lcomm_interpose_make(&call);
}

LCOMM_INTERPOSE_API int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                      void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                      MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLGATHER, .count = (uint64_t)recvcount};
  bool in_place = sendbuf == MPI_IN_PLACE;
  if (lcomm_interpose_is_shut() || recvcount <= 0 ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      (!in_place && (sendcount != recvcount || sendtype != recvtype)) ||
      !lcomm_interpose_take(comm, recvtype, MPI_OP_NULL, &call)) {
    return PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  }
  call.send = in_place ? place(recvbuf, (uint64_t)call.at->rank * call.count, call.dtype) : sendbuf;
  call.receive = recvbuf;
  return lcomm_interpose_make(&call);
}

/* The sum of all parts when they lie one after the other, else 0. */
static uint64_t sum_of_parts(const int recvcounts[], const int displs[], MPI_Comm comm) {
  int size = 0;
  uint64_t sum = 0;
  if (comm == MPI_COMM_NULL || !recvcounts || !displs ||
      PMPI_Comm_size(comm, &size) != MPI_SUCCESS) {
    return 0;
  }
  for (int i = 0; i < size; i++) {
    if (recvcounts[i] < 0 || displs[i] < 0 || (uint64_t)displs[i] != sum) {
      return 0;
    }
    sum += (uint64_t)recvcounts[i];
  }
  return sum;
}

LCOMM_INTERPOSE_API int MPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                       void *recvbuf, const int recvcounts[], const int displs[],
                                       MPI_Datatype recvtype, MPI_Comm comm) {
  static const uint64_t
      some; /* parts are uneven; which they are is written down once it is taken */
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLGATHER, .part_counts = &some};
  if (!lcomm_interpose_is_shut() && lcomm_interpose_buffers_differ(sendbuf, recvbuf) &&
      (sendbuf == MPI_IN_PLACE || sendtype == recvtype)) {
    call.count = sum_of_parts(recvcounts, displs, comm);
  }
  if (call.count == 0 || !lcomm_interpose_take(comm, recvtype, MPI_OP_NULL, &call)) {
    return PMPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                           comm);
  }
  for (int i = 0; i < call.at->size; i++) {
    call.at->parts[i] = (uint64_t)recvcounts[i];
  }
  call.part_counts = call.at->parts;
  call.send = sendbuf == MPI_IN_PLACE ? place(recvbuf, (uint64_t)displs[call.at->rank], call.dtype)
                                      : sendbuf;
  call.receive = recvbuf;
  return lcomm_interpose_make(&call);
}
