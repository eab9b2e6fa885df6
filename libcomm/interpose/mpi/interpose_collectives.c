/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective functions of MPI, and those for memory. A call that libcomm does not make goes to
 * MPI with the arguments as they were given, so MPI checks all arguments. */

#include "libcomm/interpose/mpi/interpose_collectives.h"

#include <string.h>

#include "libcomm/interpose/mpi/interpose_fortran.h"

static void set_buffers(lcomm_interpose_call *call, const void *send, void *receive) {
  call->send = send == MPI_IN_PLACE ? receive : send;
  call->receive = receive;
}

int lcomm_interpose_run(lcomm_interpose_call *call, const void *send, void *receive) {
  set_buffers(call, send, receive);
  return lcomm_interpose_call_run(call);
}

int lcomm_interpose_run_gather(lcomm_interpose_call *call, const void *send, void *receive,
                               uint64_t before) {
  if (send == MPI_IN_PLACE) {
    send = (const char *)receive + before * lcomm_dtype_size(call->dtype);
  }
  return lcomm_interpose_run(call, send, receive);
}

int lcomm_interpose_submit(lcomm_interpose_call *call, const void *send, void *receive,
                           MPI_Request *request) {
  set_buffers(call, send, receive);
  lcomm_interpose_call_check_alias(call);
  return lcomm_interpose_enqueue(call, request);
}

int lcomm_interpose_intra_size(MPI_Comm comm) {
  int size = 0, inter = 0;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter ||
      PMPI_Comm_size(comm, &size) != MPI_SUCCESS) {
    return 0;
  }
  return size;
}

/* ------------------------------------------------------------ blocking sums */

LCOMM_INTERPOSE_API int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count,
                                      MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  if (lcomm_interpose_is_off() || count <= 0 || !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Allreduce(sendbuf, recvbuf, count, type, op, comm);
  }
  return lcomm_interpose_run(&call, sendbuf, recvbuf);
}

LCOMM_INTERPOSE_API int MPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
                                                 MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER, .count = (uint64_t)recvcount};
  if (lcomm_interpose_is_off() || recvcount <= 0 ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Reduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, comm);
  }
  return lcomm_interpose_run(&call, sendbuf, recvbuf);
}

/* The parts of a reduce-scatter on an intra-communicator, an array that MPI requires to be equal on
 * all ranks: their mean, rounded up, and whether all are equal. False: nothing to do, or an error
 * that MPI returns. */
static bool count_parts(const int counts[], MPI_Comm comm, uint64_t *mean, bool *even) {
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
static bool buffers_fit(const void *send, const void *receive, const int counts[], MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return lcomm_interpose_buffers_differ(send, receive) || (send && counts[rank] == 0);
}

LCOMM_INTERPOSE_API int MPI_Reduce_scatter(const void *sendbuf, void *recvbuf,
                                           const int recvcounts[], MPI_Datatype type, MPI_Op op,
                                           MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER};
  bool even = false;
  if (lcomm_interpose_is_off() || !count_parts(recvcounts, comm, &call.count, &even) ||
      !buffers_fit(sendbuf, recvbuf, recvcounts, comm) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, type, op, comm);
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

LCOMM_INTERPOSE_API int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root,
                                  MPI_Comm comm) {
  lcomm_interpose_call call = {
      .kind = LCOMM_CALL_BROADCAST, .count = (uint64_t)count, .root = root};
  if (lcomm_interpose_is_off() || count <= 0 || buffer == MPI_IN_PLACE ||
      !lcomm_interpose_take(comm, type, MPI_OP_NULL, &call)) {
    return PMPI_Bcast(buffer, count, type, root, comm);
  }
  return lcomm_interpose_run(&call, buffer, buffer);
}

LCOMM_INTERPOSE_API int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                      void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                      MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLGATHER, .count = (uint64_t)recvcount};
  bool in_place = sendbuf == MPI_IN_PLACE;
  if (lcomm_interpose_is_off() || recvcount <= 0 ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      (!in_place && (sendcount != recvcount || sendtype != recvtype)) ||
      !lcomm_interpose_take(comm, recvtype, MPI_OP_NULL, &call)) {
    return PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  }
  return lcomm_interpose_run_gather(&call, sendbuf, recvbuf, (uint64_t)call.at->rank * call.count);
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
  static const uint64_t uneven; /* replaced by the parts once the call is taken */
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLGATHER, .part_counts = &uneven};
  bool in_place = sendbuf == MPI_IN_PLACE;
  if (!lcomm_interpose_is_off() && lcomm_interpose_buffers_differ(sendbuf, recvbuf) &&
      (in_place || sendtype == recvtype)) {
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
  return lcomm_interpose_run_gather(&call, sendbuf, recvbuf, (uint64_t)displs[call.at->rank]);
}

/* -------------------------------------------------------- non-blocking sums */

/* MPI refuses other arguments at once, so they must not reach the queue. */
static bool is_valid(const void *send, const void *receive, int count, const MPI_Request *request) {
  return count > 0 && lcomm_interpose_buffers_differ(send, receive) && request;
}

LCOMM_INTERPOSE_API int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count,
                                       MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                       MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  if (lcomm_interpose_is_off() || !is_valid(sendbuf, recvbuf, count, request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}

LCOMM_INTERPOSE_API int MPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
                                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                                  MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER, .count = (uint64_t)recvcount};
  if (lcomm_interpose_is_off() || !is_valid(sendbuf, recvbuf, recvcount, request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Ireduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}

/* Uneven parts go to MPI, because the queue's thread would need the counts later. */
LCOMM_INTERPOSE_API int MPI_Ireduce_scatter(const void *sendbuf, void *recvbuf,
                                            const int recvcounts[], MPI_Datatype type, MPI_Op op,
                                            MPI_Comm comm, MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER};
  bool even = false;
  if (lcomm_interpose_is_off() || !count_parts(recvcounts, comm, &call.count, &even) || !even ||
      !is_valid(sendbuf, recvbuf, recvcounts[0], request) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Ireduce_scatter(sendbuf, recvbuf, recvcounts, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}

/* -------------------------------------------------------------------- memory */

/* libcomm gives whole pages, and shorter buffers gain nothing. */
enum { ALLOC_MIN_BYTES = 64 << 10 };

static bool takes_calls(void) {
  int mode = atomic_load_explicit(&lcomm_interpose_mode_now, memory_order_relaxed);
  return mode == LCOMM_INTERPOSE_ON || mode == LCOMM_INTERPOSE_BLOCKING;
}

/* libcomm's memory can be read by the other ranks of the host. An info is for MPI. */
LCOMM_INTERPOSE_API int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr) {
  void *memory = NULL;
  if (!takes_calls() || size < ALLOC_MIN_BYTES || info != MPI_INFO_NULL || !baseptr ||
      lcomm_memory_alloc((size_t)size, &memory) != LCOMM_OK) {
    return PMPI_Alloc_mem(size, info, baseptr);
  }
  memcpy(baseptr, &memory, sizeof(memory)); /* baseptr is the address of a pointer of any type */
  return MPI_SUCCESS;
}

/* Works in all modes, because the interposer may have been switched off since. */
LCOMM_INTERPOSE_API int MPI_Free_mem(void *base) {
  if (base && lcomm_memory_free(base) == LCOMM_OK) {
    return MPI_SUCCESS;
  }
  return PMPI_Free_mem(base);
}

/* Fortran's MPI_ALLOC_MEM is MPI's, but Fortran may free what C has allocated. */
static void lcomm_interpose_mpi_free_mem(void *base, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Free_mem(base));
}
LCOMM_INTERPOSE_FORTRAN(mpi_free_mem, MPI_FREE_MEM)
