/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective calls that do not block. What is not taken goes to MPI with the
 * arguments as they were given, so that all checks of arguments are MPI's. */

#include "libcomm/interpose/mpi/blocking.h"

/* What MPI would refuse at once must not reach the queue. */
static bool is_sound(const void *send, const void *receive, int count, const MPI_Request *request) {
  return count > 0 && lcomm_interpose_buffers_differ(send, receive) && request;
}

static int enqueue(lcomm_interpose_call *call, const void *send, void *receive,
                   MPI_Request *request) {
  call->send = send == MPI_IN_PLACE ? receive : send;
  call->receive = receive;
  lcomm_interpose_suspect(call);
  return lcomm_interpose_enqueue(call, request);
}

LCOMM_INTERPOSE_API int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count,
                                       MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                       MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  if (lcomm_interpose_is_shut() || !is_sound(sendbuf, recvbuf, count, request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request);
  }
  return enqueue(&call, sendbuf, recvbuf, request);
}

LCOMM_INTERPOSE_API int MPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
                                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                                  MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER, .count = (uint64_t)recvcount};
  if (lcomm_interpose_is_shut() || !is_sound(sendbuf, recvbuf, recvcount, request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Ireduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, comm, request);
  }
  return enqueue(&call, sendbuf, recvbuf, request);
}

/* The thread that makes the call would need the counts later, so uneven parts are MPI's. */
LCOMM_INTERPOSE_API int MPI_Ireduce_scatter(const void *sendbuf, void *recvbuf,
                                            const int recvcounts[], MPI_Datatype type, MPI_Op op,
                                            MPI_Comm comm, MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER};
  bool even = false;
  if (lcomm_interpose_is_shut() || !lcomm_interpose_parts(recvcounts, comm, &call.count, &even) ||
      !even || !is_sound(sendbuf, recvbuf, recvcounts[0], request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Ireduce_scatter(sendbuf, recvbuf, recvcounts, type, op, comm, request);
  }
  return enqueue(&call, sendbuf, recvbuf, request);
}
