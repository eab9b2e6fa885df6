/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/judge.h"

#include <mpi.h>
#include <string.h>

static uint64_t hash(const unsigned char *bytes, size_t size) {
  uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a over words */
  for (size_t at = 0; at < size; at += sizeof h) {
    uint64_t word = 0;
    memcpy(&word, bytes + at, size - at < sizeof word ? size - at : sizeof word);
    h = (h ^ word) * UINT64_C(0x100000001b3);
    h ^= h >> 29;
  }
  return h;
}

/* Elements in blocks that are not the same on all ranks. */
static uint64_t count_unequal(lcomm_dtype dtype, const void *buffer, uint64_t count) {
  enum { BLOCK = 1 << 14, BATCH = 1024 };
  static uint64_t mine[BATCH], low[BATCH], high[BATCH];
  size_t element = lcomm_dtype_size(dtype);
  uint64_t unequal = 0;
  for (uint64_t first = 0; first < count;) {
    uint64_t at = first;
    int blocks = 0;
    for (; blocks < BATCH && at < count; blocks++, at += BLOCK) {
      uint64_t length = count - at < BLOCK ? count - at : BLOCK;
      mine[blocks] = hash((const unsigned char *)buffer + at * element, length * element);
    }
    MPI_Allreduce(mine, low, blocks, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(mine, high, blocks, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < blocks; i++) {
      uint64_t begin = first + (uint64_t)i * BLOCK;
      unequal += low[i] == high[i] ? 0 : count - begin < BLOCK ? count - begin : BLOCK;
    }
    first = at;
  }
  return unequal;
}

/* Every rank compares its part of the result: equality makes the parts a whole. */
perf_difference perf_judge(const perf_pattern *pattern, lcomm_op op, int is_exact,
                           const void *buffer, uint64_t count) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  uint64_t first = count * (uint64_t)rank / (uint64_t)pattern->ranks;
  uint64_t end = count * (uint64_t)(rank + 1) / (uint64_t)pattern->ranks;
  perf_difference d = perf_pattern_compare(pattern, op, buffer, first, end - first);
  uint64_t unequal = count_unequal(pattern->dtype, buffer, count);
  if (!is_exact) {
    d.wrong = 0;
  }
  d.wrong += rank == 0 ? unequal : 0;
  return d;
}
