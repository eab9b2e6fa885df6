/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective functions of MPI-4 with counts of MPI_Count: those of interpose_collectives.c once
 * more. */

#include "libcomm/interpose/mpi/interpose_collectives.h"
#include "libcomm/interpose/mpi/interpose_persistent.h"

/* The count of each rank where all have the same, else 0. */
static uint64_t even_count(const MPI_Count counts[], MPI_Comm comm) {
  int size = counts ? lcomm_interpose_intra_size(comm) : 0;
  for (int i = 1; i < size; i++) {
    if (counts[i] != counts[0]) {
      return 0;
    }
  }
  return size > 0 && counts[0] > 0 ? (uint64_t)counts[0] : 0;
}

/* -------------------------------------------------------------------- sums */

LCOMM_INTERPOSE_API int MPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                                        MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  if (lcomm_interpose_is_off() || count <= 0 || !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Allreduce_c(sendbuf, recvbuf, count, type, op, comm);
  }
  return lcomm_interpose_run(&call, sendbuf, recvbuf);
}

LCOMM_INTERPOSE_API int MPI_Reduce_scatter_block_c(const void *sendbuf, void *recvbuf,
                                                   MPI_Count recvcount, MPI_Datatype type,
                                                   MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER, .count = (uint64_t)recvcount};
  if (lcomm_interpose_is_off() || recvcount <= 0 || sendbuf == MPI_IN_PLACE ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Reduce_scatter_block_c(sendbuf, recvbuf, recvcount, type, op, comm);
  }
  return lcomm_interpose_run(&call, sendbuf, recvbuf);
}

LCOMM_INTERPOSE_API int MPI_Reduce_scatter_c(const void *sendbuf, void *recvbuf,
                                             const MPI_Count recvcounts[], MPI_Datatype type,
                                             MPI_Op op, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER};
  if (!lcomm_interpose_is_off() && sendbuf != MPI_IN_PLACE &&
      lcomm_interpose_buffers_differ(sendbuf, recvbuf)) {
    call.count = even_count(recvcounts, comm);
  }
  if (call.count == 0 || !lcomm_interpose_take(comm, type, op, &call)) {
    return PMPI_Reduce_scatter_c(sendbuf, recvbuf, recvcounts, type, op, comm);
  }
  return lcomm_interpose_run(&call, sendbuf, recvbuf);
}

/* ------------------------------------------------- non-blocking and persistent */

LCOMM_INTERPOSE_API int MPI_Iallreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                                         MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                         MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLREDUCE, .count = (uint64_t)count};
  if (lcomm_interpose_is_off() || count <= 0 || !request ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Iallreduce_c(sendbuf, recvbuf, count, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}

LCOMM_INTERPOSE_API int MPI_Ireduce_scatter_block_c(const void *sendbuf, void *recvbuf,
                                                    MPI_Count recvcount, MPI_Datatype type,
                                                    MPI_Op op, MPI_Comm comm,
                                                    MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER, .count = (uint64_t)recvcount};
  if (lcomm_interpose_is_off() || recvcount <= 0 || sendbuf == MPI_IN_PLACE || !request ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Ireduce_scatter_block_c(sendbuf, recvbuf, recvcount, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}

LCOMM_INTERPOSE_API int MPI_Ireduce_scatter_c(const void *sendbuf, void *recvbuf,
                                              const MPI_Count recvcounts[], MPI_Datatype type,
                                              MPI_Op op, MPI_Comm comm, MPI_Request *request) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_REDUCE_SCATTER};
  if (!lcomm_interpose_is_off() && sendbuf != MPI_IN_PLACE && request &&
      lcomm_interpose_buffers_differ(sendbuf, recvbuf)) {
    call.count = even_count(recvcounts, comm);
  }
  if (call.count == 0 || !lcomm_interpose_take_nonblocking(comm, type, op, &call)) {
    return PMPI_Ireduce_scatter_c(sendbuf, recvbuf, recvcounts, type, op, comm, request);
  }
  return lcomm_interpose_submit(&call, sendbuf, recvbuf, request);
}

LCOMM_INTERPOSE_API int MPI_Allreduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                                             MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                             MPI_Info info, MPI_Request *request) {
  int code = MPI_SUCCESS;
  return lcomm_interpose_allreduce_init(sendbuf, recvbuf, count, type, op, comm, request, &code)
             ? code
             : PMPI_Allreduce_init_c(sendbuf, recvbuf, count, type, op, comm, info, request);
}

/* ------------------------------------------------------------------- moves */

LCOMM_INTERPOSE_API int MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root,
                                    MPI_Comm comm) {
  lcomm_interpose_call call = {
      .kind = LCOMM_CALL_BROADCAST, .count = (uint64_t)count, .root = root};
  if (lcomm_interpose_is_off() || count <= 0 || buffer == MPI_IN_PLACE ||
      !lcomm_interpose_take(comm, type, MPI_OP_NULL, &call)) {
    return PMPI_Bcast_c(buffer, count, type, root, comm);
  }
  return lcomm_interpose_run(&call, buffer, buffer);
}

LCOMM_INTERPOSE_API int MPI_Allgather_c(const void *sendbuf, MPI_Count sendcount,
                                        MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                                        MPI_Datatype recvtype, MPI_Comm comm) {
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLGATHER, .count = (uint64_t)recvcount};
  bool in_place = sendbuf == MPI_IN_PLACE;
  if (lcomm_interpose_is_off() || recvcount <= 0 ||
      !lcomm_interpose_buffers_differ(sendbuf, recvbuf) ||
      (!in_place && (sendcount != recvcount || sendtype != recvtype)) ||
      !lcomm_interpose_take(comm, recvtype, MPI_OP_NULL, &call)) {
    return PMPI_Allgather_c(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  }
  return lcomm_interpose_run_gather(&call, sendbuf, recvbuf, (uint64_t)call.at->rank * call.count);
}

/* The sum of all parts when they lie one after the other, else 0. */
static uint64_t sum_of_parts(const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Comm comm) {
  int size = recvcounts && displs ? lcomm_interpose_intra_size(comm) : 0;
  uint64_t sum = 0;
  for (int i = 0; i < size; i++) {
    if (recvcounts[i] < 0 || displs[i] < 0 || (uint64_t)displs[i] != sum) {
      return 0;
    }
    sum += (uint64_t)recvcounts[i];
  }
  return sum;
}

LCOMM_INTERPOSE_API int MPI_Allgatherv_c(const void *sendbuf, MPI_Count sendcount,
                                         MPI_Datatype sendtype, void *recvbuf,
                                         const MPI_Count recvcounts[], const MPI_Aint displs[],
                                         MPI_Datatype recvtype, MPI_Comm comm) {
  static const uint64_t uneven; /* replaced by the parts once the call is taken */
  lcomm_interpose_call call = {.kind = LCOMM_CALL_ALLGATHER, .part_counts = &uneven};
  bool in_place = sendbuf == MPI_IN_PLACE;
  if (!lcomm_interpose_is_off() && lcomm_interpose_buffers_differ(sendbuf, recvbuf) &&
      (in_place || sendtype == recvtype)) {
    call.count = sum_of_parts(recvcounts, displs, comm);
  }
  if (call.count == 0 || !lcomm_interpose_take(comm, recvtype, MPI_OP_NULL, &call)) {
    return PMPI_Allgatherv_c(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                             comm);
  }
  for (int i = 0; i < call.at->size; i++) {
    call.at->parts[i] = (uint64_t)recvcounts[i];
  }
  call.part_counts = call.at->parts;
  return lcomm_interpose_run_gather(&call, sendbuf, recvbuf, (uint64_t)displs[call.at->rank]);
}
