/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_collective.h"

/* MPI, like NCCL, is at home with an all-to-all between two buffers; in place
 * costs it copies that nobody else pays. */
static const lcomm_perf_collective collectives[] = {
    [LCOMM_PERF_ALLREDUCE] = {.kind = LCOMM_PERF_ALLREDUCE,
                              .tool = "allreduce_perf",
                              .name = "all-reduce",
                              .mpi_name = "MPI_Allreduce",
                              .pmpi_name = "PMPI_Allreduce",
                              .reduces = 1,
                              .is_alike = 1,
                              .is_in_place = 1,
                              .bus_rounds = 2.0},
    [LCOMM_PERF_REDUCE_SCATTER] = {.kind = LCOMM_PERF_REDUCE_SCATTER,
                                   .tool = "reduce_scatter_perf",
                                   .name = "reduce-scatter",
                                   .mpi_name = "MPI_Reduce_scatter_block",
                                   .pmpi_name = "PMPI_Reduce_scatter_block",
                                   .reduces = 1,
                                   .is_in_place = 1,
                                   .send_is_whole = 1,
                                   .bus_rounds = 1.0},
    [LCOMM_PERF_ALLGATHER] = {.kind = LCOMM_PERF_ALLGATHER,
                              .tool = "allgather_perf",
                              .name = "all-gather",
                              .mpi_name = "MPI_Allgather",
                              .pmpi_name = "PMPI_Allgather",
                              .is_alike = 1,
                              .is_in_place = 1,
                              .receive_is_whole = 1,
                              .bus_rounds = 1.0},
    [LCOMM_PERF_BROADCAST] = {.kind = LCOMM_PERF_BROADCAST,
                              .tool = "broadcast_perf",
                              .name = "broadcast",
                              .mpi_name = "MPI_Bcast",
                              .pmpi_name = "PMPI_Bcast",
                              .has_root = 1,
                              .is_alike = 1,
                              .is_in_place = 1},
    [LCOMM_PERF_ALLTOALL] = {.kind = LCOMM_PERF_ALLTOALL,
                             .tool = "alltoall_perf",
                             .name = "all-to-all",
                             .mpi_name = "MPI_Alltoall",
                             .pmpi_name = "PMPI_Alltoall",
                             .send_is_whole = 1,
                             .receive_is_whole = 1,
                             .bus_rounds = 1.0},
};

const lcomm_perf_collective *lcomm_perf_collective_of(lcomm_perf_kind kind) {
  return &collectives[kind];
}

double lcomm_perf_bus_factor(const lcomm_perf_collective *collective, int ranks) {
  return collective->has_root ? 1.0 : collective->bus_rounds * (ranks - 1) / ranks;
}

uint64_t lcomm_perf_send_count(const lcomm_perf_collective *collective, uint64_t count, int ranks) {
  return collective->send_is_whole ? count * (uint64_t)ranks : count;
}

uint64_t lcomm_perf_receive_count(const lcomm_perf_collective *collective, uint64_t count,
                                  int ranks) {
  return collective->receive_is_whole ? count * (uint64_t)ranks : count;
}

uint64_t lcomm_perf_whole_count(const lcomm_perf_collective *collective, uint64_t count,
                                int ranks) {
  uint64_t send = lcomm_perf_send_count(collective, count, ranks);
  uint64_t receive = lcomm_perf_receive_count(collective, count, ranks);
  return send > receive ? send : receive;
}

uint64_t lcomm_perf_count_of(const lcomm_perf_collective *collective, uint64_t size_bytes,
                             size_t element_bytes, int ranks) {
  uint64_t parts = lcomm_perf_whole_count(collective, 1, ranks);
  uint64_t count = size_bytes / element_bytes / parts;
  return count > 0 ? count : 1;
}
