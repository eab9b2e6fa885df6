/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_API_CALL_MODEL_H
#define LCOMM_TESTS_API_CALL_MODEL_H

/* What collective calls of every type should give: a rank knows what every other
 * one contributes, so it can work out the result by itself. */

#include <stdlib.h>
#include <string.h>

#include "tests/api/element_put.h"
#include "tests/support/mpi_property.h"

enum { MODEL_RANKS = 8, MODEL_TYPES = 8, MODEL_OPS = 4, MODEL_LAYOUTS = 3 };

static const lcomm_dtype model_types[MODEL_TYPES] = {LCOMM_FLOAT32, LCOMM_FLOAT16, LCOMM_BFLOAT16,
                                                     LCOMM_FLOAT64, LCOMM_INT32,   LCOMM_INT64,
                                                     LCOMM_INT8,    LCOMM_UINT8};

/* One node, two even ones, and two uneven ones whose ranks alternate. NULL when
 * there are too few ranks for it. */
static inline lcomm_comm *model_comm(const char *policy, int layout) {
  lcomm_comm *comm = NULL;
  if (mpi_size <= layout) {
    return NULL;
  }
  if (layout < 2) {
    return make_comm(policy, layout + 1);
  }
  setenv("LCOMM_HOSTID", mpi_rank % 3 == 0 ? "first" : "second", 1);
  comm = make_comm(policy, 0);
  unsetenv("LCOMM_HOSTID");
  return comm;
}

/* A small whole number, so that sums are exact in every type. */
static inline int model_value(int rank, uint64_t element) {
  uint64_t mixed = ((uint64_t)rank * 7919 + element + 1) * UINT64_C(0x9e3779b97f4a7c15);
  return (int)(mixed >> 40) % 31 - 15;
}

/* What `rank` contributes: elements first .. first+count. */
static inline void model_fill(lcomm_dtype dtype, void *buffer, int rank, uint64_t first,
                              uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    element_put(dtype, buffer, i, model_value(rank, first + i));
  }
}

static inline double model_average(lcomm_dtype dtype, int sum) {
  if (LCOMM_DTYPE_IS_WHOLE(dtype)) {
    return sum / mpi_size;
  }
  if (dtype == LCOMM_FLOAT64) {
    return sum * (1.0 / mpi_size);
  }
  return (double)((float)sum * (1.0f / (float)mpi_size));
}

static inline double model_result(lcomm_dtype dtype, lcomm_op op, uint64_t element) {
  int sum = 0, least = 1000, most = -1000;
  for (int rank = 0; rank < mpi_size; rank++) {
    int value = model_value(rank, element);
    value = dtype == LCOMM_UINT8 ? (uint8_t)value : value;
    sum += value;
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  if (op == LCOMM_MIN || op == LCOMM_MAX) {
    return op == LCOMM_MIN ? least : most;
  }
  sum = dtype == LCOMM_UINT8 ? (uint8_t)sum : sum; /* wraps around */
  return op == LCOMM_AVG ? model_average(dtype, sum) : sum;
}

/* Elements first .. first+count of the result. */
static inline void model_expect(lcomm_dtype dtype, lcomm_op op, void *buffer, uint64_t first,
                                uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    element_put(dtype, buffer, i, model_result(dtype, op, first + i));
  }
}

/* Bytes of any pattern, NaNs included: elements first .. of what `rank` sends. */
static inline void model_bytes(void *buffer, size_t element, int rank, uint64_t first,
                               uint64_t count) {
  uint8_t *bytes = buffer;
  for (uint64_t i = 0; i < count * element; i++) {
    uint64_t mixed = (first * element + i + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)rank;
    bytes[i] = (uint8_t)((mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 56);
  }
}

#endif
