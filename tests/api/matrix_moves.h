/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_API_MATRIX_MOVES_H
#define LCOMM_TESTS_API_MATRIX_MOVES_H

/* The cases of mpi_matrix.c that no codec changes: moves, and sums of every type. */

#include "tests/api/element_put.h"
#include "tests/api/matrix.h"

static const uint64_t counts[] = {0, 1, 3, 127, 1500, 4095, MIDDLE, LONG};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static inline void say_where(const place *where, const char *policy) {
  snprintf(here, sizeof(here), "%s, %s", policy, where->name);
}

static inline bool is_fine(lcomm_comm *comm, lcomm_status status, const char *call,
                           uint64_t count) {
  require(status == LCOMM_OK, "%s, %s of %llu: %s", here, call, (unsigned long long)count,
          lcomm_last_error(comm));
  return status == LCOMM_OK;
}

/* ------------------------------------------------------------------ moves */

static inline void check_block(const char *call, uint64_t at, int rank, uint64_t first,
                               uint64_t count) {
  require(memcmp(result + at, input[rank] + first, count * sizeof(float)) == 0,
          "%s, %s of %llu: the part of rank %d is wrong", here, call, (unsigned long long)count,
          rank);
}

static inline void move_parts(lcomm_comm *comm, uint64_t count) {
  if (!is_fine(comm, lcomm_allgather(comm, input[mpi_rank], result, count, LCOMM_FLOAT32),
               "all-gather", count)) {
    return;
  }
  for (int rank = 0; rank < mpi_size; rank++) {
    check_block("all-gather", count * (uint64_t)rank, rank, 0, count);
  }
}

/* Rank 0 gives nothing, the others ever more. */
static inline void move_uneven_parts(lcomm_comm *comm, uint64_t count) {
  uint64_t parts[RANKS_MAX], at = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    parts[rank] = count * (uint64_t)rank / (uint64_t)mpi_size;
  }
  if (!is_fine(comm, lcomm_allgatherv(comm, input[mpi_rank], result, parts, LCOMM_FLOAT32),
               "uneven all-gather", count)) {
    return;
  }
  for (int rank = 0; rank < mpi_size; rank++) {
    check_block("uneven all-gather", at, rank, 0, parts[rank]);
    at += parts[rank];
  }
}

static inline void move_all_to_all(lcomm_comm *comm, uint64_t count) {
  uint64_t whole = count * (uint64_t)mpi_size, place_of_mine = count * (uint64_t)mpi_rank;
  for (int in_place = 0; in_place < 2; in_place++) {
    const void *send = in_place ? result : input[mpi_rank];
    memcpy(result, in_place ? input[mpi_rank] : flat, whole * sizeof(float));
    if (!is_fine(comm, lcomm_alltoall(comm, send, result, count, LCOMM_FLOAT32), "all-to-all",
                 count)) {
      return;
    }
    for (int rank = 0; rank < mpi_size; rank++) {
      check_block("all-to-all", count * (uint64_t)rank, rank, place_of_mine, count);
    }
  }
}

static inline void move_from_roots(lcomm_comm *comm, uint64_t count) {
  int roots[3] = {0, mpi_size / 2, mpi_size - 1};
  for (int i = 0; i < 3; i++) {
    memcpy(result, input[mpi_rank], count * sizeof(float));
    if (is_fine(comm, lcomm_broadcast(comm, result, count, LCOMM_FLOAT32, roots[i]), "broadcast",
                count)) {
      check_block("broadcast", 0, roots[i], 0, count);
    }
  }
}

static inline void check_moves(lcomm_comm *comm) {
  for (int c = 0; c < COUNTS; c++) {
    if (counts[c] * (uint64_t)mpi_size <= LONG) {
      move_parts(comm, counts[c]);
      move_all_to_all(comm, counts[c]);
    }
    move_uneven_parts(comm, counts[c] < LONG ? counts[c] : 2 * MIDDLE);
    move_from_roots(comm, counts[c]);
    is_fine(comm, lcomm_barrier(comm), "barrier", 0);
  }
}

/* ------------------------------------------------------------------ types */

/* Whole numbers that every type holds, sums included. */
static inline int whole(int rank, uint64_t i) {
  return (int)((i * 7 + (uint64_t)rank * 3) % 11) - 4;
}

static inline int combine(lcomm_op op, uint64_t i) {
  int all = whole(0, i);
  for (int rank = 1; rank < mpi_size; rank++) {
    int value = whole(rank, i);
    int larger = value > all ? value : all, smaller = value > all ? all : value;
    all = op == LCOMM_SUM ? all + value : op == LCOMM_MAX ? larger : smaller;
  }
  return all;
}

static inline void check_type(lcomm_comm *comm, lcomm_dtype dtype, lcomm_op op, uint64_t count) {
  static double mine[MIDDLE], got[MIDDLE], wanted[MIDDLE];
  for (uint64_t i = 0; i < count; i++) {
    element_put(dtype, mine, i, whole(mpi_rank, i));
    element_put(dtype, wanted, i, combine(op, i));
  }
  if (is_fine(comm, lcomm_allreduce(comm, mine, got, count, dtype, op), lcomm_dtype_name(dtype),
              count)) {
    require(memcmp(got, wanted, count * lcomm_dtype_size(dtype)) == 0,
            "%s, operation %d on %llu %s: wrong", here, (int)op, (unsigned long long)count,
            lcomm_dtype_name(dtype));
  }
}

static inline void check_types(lcomm_comm *comm) {
  for (int dtype = LCOMM_FLOAT32; dtype <= LCOMM_INT64; dtype++) {
    check_type(comm, (lcomm_dtype)dtype, LCOMM_SUM, 3);
    check_type(comm, (lcomm_dtype)dtype, LCOMM_MAX, 127);
    check_type(comm, (lcomm_dtype)dtype, LCOMM_MIN, 4095);
    check_type(comm, (lcomm_dtype)dtype, LCOMM_SUM, MIDDLE);
  }
}

#endif
