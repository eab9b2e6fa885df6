/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_collective.h"

#define NAMES(its_kind, program, its_name, function)                                               \
  .kind = its_kind, .tool = program "_perf", .name = its_name, .mpi_name = "MPI_" function,        \
  .pmpi_name = "PMPI_" function

/* MPI, like NCCL, is at home with an all-to-all between two buffers; in place
 * costs it copies that nobody else pays. */
static const lcomm_perf_collective collectives[] = {
    [LCOMM_PERF_ALLREDUCE] = {NAMES(LCOMM_PERF_ALLREDUCE, "allreduce", "all-reduce", "Allreduce"),
                              .reduces = 1, .is_alike = 1, .is_in_place = 1, .bus_rounds = 2.0},
    [LCOMM_PERF_REDUCE_SCATTER] = {NAMES(LCOMM_PERF_REDUCE_SCATTER, "reduce_scatter",
                                         "reduce-scatter", "Reduce_scatter_block"),
                                   .reduces = 1, .is_in_place = 1, .send_is_whole = 1,
                                   .bus_rounds = 1.0},
    [LCOMM_PERF_ALLGATHER] = {NAMES(LCOMM_PERF_ALLGATHER, "allgather", "all-gather", "Allgather"),
                              .is_alike = 1, .is_in_place = 1, .receive_is_whole = 1,
                              .bus_rounds = 1.0},
    [LCOMM_PERF_BROADCAST] = {NAMES(LCOMM_PERF_BROADCAST, "broadcast", "broadcast", "Bcast"),
                              .has_root = 1, .is_alike = 1, .is_in_place = 1},
    [LCOMM_PERF_ALLTOALL] = {NAMES(LCOMM_PERF_ALLTOALL, "alltoall", "all-to-all", "Alltoall"),
                             .send_is_whole = 1, .receive_is_whole = 1, .bus_rounds = 1.0},
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
