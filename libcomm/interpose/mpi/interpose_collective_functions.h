/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective functions of MPI, once for each type of count. A file that includes this defines
 *   COUNT         int, or MPI_Count
 *   DISPLACEMENT  int, or MPI_Aint
 *   NAME(name)    name, or name with the suffix of MPI's functions for these types
 *
 * A call that libcomm does not make goes to MPI with the arguments as they were given, so MPI
 * checks all arguments. */

#include "libcomm/interpose/mpi/interpose.h"

/* ------------------------------------------------------ shared, interpose_call.c */

/* Set the buffers of a call that was taken, which may be MPI_IN_PLACE, and make it: blocking, or by
 * the queue. Returns an MPI error code. */
int lcomm_interpose_run(lcomm_interpose_call *call, const void *send, void *receive);
int lcomm_interpose_submit(lcomm_interpose_call *call, const void *send, void *receive,
                           MPI_Request *request);

/* The same for a blocking allgather. before: elements of the result before this rank's part, which
 * is in `receive` where `send` is MPI_IN_PLACE. */
int lcomm_interpose_run_gather(lcomm_interpose_call *call, const void *send, void *receive,
                               uint64_t before);

/* The number of ranks of an intra-communicator; 0: it is none. */
int lcomm_interpose_intra_size(MPI_Comm comm);

/* ------------------------------------------------------------ blocking sums */

LCOMM_INTERPOSE_API int NAME(MPI_Allreduce)(const void *sendbuf, void *recvbuf, COUNT count,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  if (lcomm_interpose_is_off() || count <= 0 || !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return NAME(PMPI_Allreduce)(sendbuf, recvbuf, count, type, op, comm);
  }
  return lcomm_interpose_run(&call, sendbuf, recvbuf);
}

LCOMM_INTERPOSE_API int NAME(MPI_Reduce_scatter_block)(const void *sendbuf, void *recvbuf,
                                                       COUNT recvcount, MPI_Datatype type,
                                                       MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER, .count = (uint64_t)recvcount};
  if (lcomm_interpose_is_off() || recvcount <= 0 ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return NAME(PMPI_Reduce_scatter_block)(sendbuf, recvbuf, recvcount, type, op, comm);
  }
  return lcomm_interpose_run(&call, sendbuf, recvbuf);
}

/* The parts of a reduce-scatter on an intra-communicator, an array that MPI requires to be equal on
 * all ranks: their mean, rounded up, and whether all are equal. False: nothing to do, or an error
 * that MPI returns. */
static bool count_parts(const COUNT counts[], MPI_Comm comm, uint64_t *mean, bool *even) {
  int size = counts ? lcomm_interpose_intra_size(comm) : 0;
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

/* A rank with an empty part may give any receive buffer. The communicator has parts. */
static bool buffers_fit(const void *send, const void *receive, const COUNT counts[],
                        MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return lcomm_interpose_buffers_differ(send, receive) || (send && counts[rank] == 0);
}

LCOMM_INTERPOSE_API int NAME(MPI_Reduce_scatter)(const void *sendbuf, void *recvbuf,
                                                 const COUNT recvcounts[], MPI_Datatype type,
                                                 MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER};
  bool even = false;
  if (lcomm_interpose_is_off() || !count_parts(recvcounts, comm, &call.count, &even) ||
      !buffers_fit(sendbuf, recvbuf, recvcounts, comm) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return NAME(PMPI_Reduce_scatter)(sendbuf, recvbuf, recvcounts, type, op, comm);
  }
  for (int i = 0; i < call.at->size && !even; i++) {
    call.at->parts[i] = (uint64_t)recvcounts[i];
  }
  call.part_counts = even ? NULL : call.at->parts;
  return lcomm_interpose_run(&call, sendbuf, recvbuf);
}

/* ------------------------------------------------------------ blocking moves */

/* MPI lets ranks describe the same data by different types and counts. A rule of match=call= asks
 * for programs that do not. */

LCOMM_INTERPOSE_API int NAME(MPI_Bcast)(void *buffer, COUNT count, MPI_Datatype type, int root,
                                        MPI_Comm comm) {
  lcomm_interpose_call call = {
      .kind = LCOMM_CALL_BROADCAST, .count = (uint64_t)count, .root = root};
  if (lcomm_interpose_is_off() || count <= 0 || buffer == MPI_IN_PLACE ||
      !lcomm_interpose_take(comm, type, MPI_OP_NULL, &call)) {
    return NAME(PMPI_Bcast)(buffer, count, type, root, comm);
  }
  return lcomm_interpose_run(&call, buffer, buffer);
}

LCOMM_INTERPOSE_API int NAME(MPI_Allgather)(const void *sendbuf, COUNT sendcount,
                                            MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
                                            MPI_Datatype recvtype, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLGATHER, .count = (uint64_t)recvcount};
  bool in_place = sendbuf == MPI_IN_PLACE;
  if (lcomm_interpose_is_off() || recvcount <= 0 ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      (!in_place && (sendcount != recvcount || sendtype != recvtype)) ||
      !lcomm_interpose_take(comm, recvtype, MPI_OP_NULL, &call)) {
    return NAME(PMPI_Allgather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  }
  return lcomm_interpose_run_gather(&call, sendbuf, recvbuf, (uint64_t)call.at->rank * call.count);
}

/* The sum of all parts when they lie one after the other, else 0. */
static uint64_t sum_of_parts(const COUNT recvcounts[], const DISPLACEMENT displs[], MPI_Comm comm) {
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

LCOMM_INTERPOSE_API int NAME(MPI_Allgatherv)(const void *sendbuf, COUNT sendcount,
                                             MPI_Datatype sendtype, void *recvbuf,
                                             const COUNT recvcounts[], const DISPLACEMENT displs[],
                                             MPI_Datatype recvtype, MPI_Comm comm) {
  static const uint64_t uneven; /* replaced by the parts once the call is taken */
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLGATHER, .part_counts = &uneven};
  bool in_place = sendbuf == MPI_IN_PLACE;
  if (!lcomm_interpose_is_off() && lcomm_interpose_buffers_differ(sendbuf, recvbuf) &&
      (in_place || sendtype == recvtype)) {
    call.count = sum_of_parts(recvcounts, displs, comm);
  }
  if (call.count == 0 || !lcomm_interpose_take(comm, recvtype, MPI_OP_NULL, &call)) {
    return NAME(PMPI_Allgatherv)(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                 recvtype, comm);
  }
  for (int i = 0; i < call.at->size; i++) {
    call.at->parts[i] = (uint64_t)recvcounts[i];
  }
  call.part_counts = call.at->parts;
  return lcomm_interpose_run_gather(&call, sendbuf, recvbuf, (uint64_t)displs[call.at->rank]);
}

/* -------------------------------------------------------- non-blocking sums */

/* MPI refuses other arguments at once, so they must not reach the queue. */
static bool is_valid(const void *send, const void *receive, COUNT count,
                     const MPI_Request *request) {
  return count > 0 && lcomm_interpose_buffers_differ(send, receive) && request;
}

LCOMM_INTERPOSE_API int NAME(MPI_Iallreduce)(const void *sendbuf, void *recvbuf, COUNT count,
                                             MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                             MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  if (lcomm_interpose_is_off() || !is_valid(sendbuf, recvbuf, count, request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return NAME(PMPI_Iallreduce)(sendbuf, recvbuf, count, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}

LCOMM_INTERPOSE_API int NAME(MPI_Ireduce_scatter_block)(const void *sendbuf, void *recvbuf,
                                                        COUNT recvcount, MPI_Datatype type,
                                                        MPI_Op op, MPI_Comm comm,
                                                        MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER, .count = (uint64_t)recvcount};
  if (lcomm_interpose_is_off() || !is_valid(sendbuf, recvbuf, recvcount, request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return NAME(PMPI_Ireduce_scatter_block)(sendbuf, recvbuf, recvcount, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}

/* Uneven parts go to MPI, because the queue's thread would need the counts later. */
LCOMM_INTERPOSE_API int NAME(MPI_Ireduce_scatter)(const void *sendbuf, void *recvbuf,
                                                  const COUNT recvcounts[], MPI_Datatype type,
                                                  MPI_Op op, MPI_Comm comm, MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER};
  bool even = false;
  if (lcomm_interpose_is_off() || !count_parts(recvcounts, comm, &call.count, &even) || !even ||
      !is_valid(sendbuf, recvbuf, recvcounts[0], request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return NAME(PMPI_Ireduce_scatter)(sendbuf, recvbuf, recvcounts, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}
