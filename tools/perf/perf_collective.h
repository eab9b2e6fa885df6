/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_COLLECTIVE_H
#define LCOMM_TOOLS_PERF_PERF_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "libcomm.h"

/* What the programs measure. A `count` is the one a collective's call takes:
 * of the whole buffer for all-reduce and broadcast, of one rank's part
 * otherwise. A size is that of the largest buffer of a rank, as in nccl-tests. */
typedef enum lcomm_perf_kind {
  LCOMM_PERF_ALLREDUCE,
  LCOMM_PERF_REDUCE_SCATTER,
  LCOMM_PERF_ALLGATHER,
  LCOMM_PERF_BROADCAST,
  LCOMM_PERF_ALLTOALL
} lcomm_perf_kind;

typedef struct lcomm_perf_collective {
  lcomm_perf_kind kind;
  const char *tool;      /* "allreduce_perf" */
  const char *name;      /* "all-reduce" */
  const char *mpi_name;  /* of MPI's call, which a preloaded library may have taken over */
  const char *pmpi_name; /* of the one behind it, which nobody takes over */
  int reduces;           /* it has an operation */
  int has_root;          /* it has a root, and one buffer */
  int is_alike;          /* all ranks end with the same result */
  int is_in_place;       /* measured in place unless asked otherwise */
  int send_is_whole;     /* send holds ranks * count elements, else count */
  int receive_is_whole;
  double bus_rounds; /* bus bandwidth = algorithm bandwidth * rounds * (P-1)/P; a broadcast: * 1 */
} lcomm_perf_collective;

/* Valid for ever. */
const lcomm_perf_collective *lcomm_perf_collective_of(lcomm_perf_kind kind);

/* What turns size / time into the bandwidth that each link must have carried. */
double lcomm_perf_bus_factor(const lcomm_perf_collective *collective, int ranks);

uint64_t lcomm_perf_send_count(const lcomm_perf_collective *collective, uint64_t count, int ranks);
uint64_t lcomm_perf_receive_count(const lcomm_perf_collective *collective, uint64_t count,
                                  int ranks);
/* Elements of the larger one of both. */
uint64_t lcomm_perf_whole_count(const lcomm_perf_collective *collective, uint64_t count, int ranks);

/* The count whose size is the nearest one below `size_bytes`, at least 1. */
uint64_t lcomm_perf_count_of(const lcomm_perf_collective *collective, uint64_t size_bytes,
                             size_t element_bytes, int ranks);

/* One operation, the same for everybody who is measured doing it. */
typedef struct lcomm_perf_call {
  const lcomm_perf_collective *collective;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  int root;
  int in_place;
  int libcomm_memory; /* buffers of lcomm_memory_alloc() */
} lcomm_perf_call;

/* Where it reads and writes. In place they lie in one buffer: the part that is
 * smaller is this rank's share of the larger one. */
typedef struct lcomm_perf_place {
  void *send;
  void *receive;
} lcomm_perf_place;

#endif
