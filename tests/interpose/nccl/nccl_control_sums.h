/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_CONTROL_SUMS_H
#define LCOMM_TESTS_NCCL_CONTROL_SUMS_H

/* Sums that libcomm makes alone while the control file changes. Included by one program each. */

#include "tests/interpose/nccl/nccl_control_file.h"

static const char lossy[] = "net=int8 min=1K", exact[] = "policy net=none min=1K";

static inline void is_equal_everywhere(uint64_t hash) {
  uint64_t first = hash;
  MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, MPI_COMM_WORLD);
  require(hash == first, "other bits than on rank 0");
}

static inline uint64_t sum(const world *it, bool is_exact) {
  put_floats(it->from, mpi_rank, SUM_COUNT);
  fine(ncclAllReduce(it->from, it->to, SUM_COUNT, ncclFloat32, ncclSum, it->comm, it->stream));
  uint64_t hash = holds_sum(it->stream, it->to, 0, SUM_COUNT, mpi_size, is_exact);
  is_equal_everywhere(hash);
  return hash;
}

/* So many sums, as many as lie between two looks at the file: all are exact, or none is. A hash of
 * the last one's bits. */
static inline uint64_t all_are(const world *it, bool is_exact) {
  uint64_t hash = 0;
  for (int i = 0; i < SUMS_BETWEEN_LOOKS; i++) {
    hash = sum(it, is_exact);
  }
  return hash;
}

static inline int control_main(int *argc, char ***argv, const mpi_property *all, int count) {
  name_control_file();
  return alone_main(argc, argv, all, count);
}

#endif
