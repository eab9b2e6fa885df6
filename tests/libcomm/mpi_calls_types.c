/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Sums, averages, minima and maxima of every type. */

#include <math.h>
#include <stdio.h>

#include "tests/libcomm/call_model.h"

enum { COUNT_MAX = 9001, SEGMENT_MAX = 2051, RANKS_MAX = 8, ROOM = RANKS_MAX * SEGMENT_MAX };

_Static_assert(ROOM >= COUNT_MAX, "buffers hold a reduce-scatter and an all-reduce");

static const uint64_t counts[] = {0, 1, 3, 130, 2051, COUNT_MAX};
static const uint64_t segments[] = {0, 1, 17, SEGMENT_MAX};

enum {
  COUNTS = sizeof(counts) / sizeof(counts[0]),
  SEGMENTS = sizeof(segments) / sizeof(*segments)
};

static union {
  double widest[ROOM];
  uint8_t bytes[1];
} send, receive, wanted, before;

static const char *describe(lcomm_dtype dtype, lcomm_op op, uint64_t count, int layout) {
  static const char *const ops[] = {"sum", "average", "minimum", "maximum"};
  static char text[96];
  snprintf(text, sizeof(text), "%s of %llu %s, layout %d", ops[op], (unsigned long long)count,
           lcomm_dtype_name(dtype), layout);
  return text;
}

/* --------------------------------------------------------------- all-reduce */

static void check_allreduce(lcomm_comm *comm, lcomm_dtype dtype, lcomm_op op, uint64_t count,
                            int layout) {
  size_t size = count * lcomm_dtype_size(dtype);
  const char *what = describe(dtype, op, count, layout);
  model_fill(dtype, &send, mpi_rank, 0, count);
  memcpy(&before, &send, size);
  model_expect(dtype, op, &wanted, 0, count);
  memset(&receive, 0x5a, size);
  require(lcomm_allreduce(comm, &send, &receive, count, dtype, op) == LCOMM_OK, "%s: %s", what,
          lcomm_last_error(comm));
  require(memcmp(&receive, &wanted, size) == 0, "%s is wrong", what);
  require(memcmp(&send, &before, size) == 0, "%s: the send buffer changed", what);
  require(lcomm_allreduce(comm, &send, &send, count, dtype, op) == LCOMM_OK, "%s: %s", what,
          lcomm_last_error(comm));
  require(memcmp(&send, &wanted, size) == 0, "%s in place is wrong", what);
}

/* With every `step`-th count, the largest included. */
static void allreduce_everything(const char *policy, int step) {
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_comm *comm = model_comm(policy, layout);
    for (int i = step - 1; comm && i < MODEL_TYPES * MODEL_OPS * COUNTS; i += step) {
      lcomm_dtype dtype = model_types[i / COUNTS % MODEL_TYPES];
      check_allreduce(comm, dtype, (lcomm_op)(i / COUNTS / MODEL_TYPES), counts[i % COUNTS],
                      layout);
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

static void allreduce_is_exact_for_every_type_and_operation(void) {
  allreduce_everything("net=none", 1);
}

static void every_exchange_and_checksums_give_the_same(void) {
  allreduce_everything("algo=ring check=xxhash", 3);
  allreduce_everything("algo=direct", 3);
  allreduce_everything("algo=gather", 3);
  allreduce_everything("net=none+zstd min=1", 3);
}

static void some_sums_are_never_compressed(void) {
  static const char *const policies[] = {"net=int8 node=int8 min=1", "net=topk:0.01 min=1",
                                         "net=bf16+zstd min=1"};
  for (int i = 0; i < 3 * MODEL_LAYOUTS; i++) {
    lcomm_comm *comm = model_comm(policies[i / MODEL_LAYOUTS], i % MODEL_LAYOUTS);
    for (int k = 0; comm && k < MODEL_TYPES; k++) {
      bool always = model_types[k] == LCOMM_FLOAT64 || model_types[k] == LCOMM_INT32 ||
                    model_types[k] == LCOMM_INT64;
      for (int op = always ? LCOMM_SUM : LCOMM_MIN; op <= LCOMM_MAX; op++) {
        check_allreduce(comm, model_types[k], (lcomm_op)op, COUNT_MAX, i % MODEL_LAYOUTS);
      }
    }
    lcomm_destroy(comm);
  }
}

/* ----------------------------------------------------------- reduce-scatter */

static void check_reduce_scatter(lcomm_comm *comm, lcomm_dtype dtype, lcomm_op op, uint64_t count,
                                 int layout) {
  size_t size = count * lcomm_dtype_size(dtype), whole = size * (size_t)mpi_size;
  size_t mine = size * (size_t)mpi_rank;
  const char *what = describe(dtype, op, count, layout);
  model_fill(dtype, &send, mpi_rank, 0, count * (uint64_t)mpi_size);
  memcpy(&before, &send, whole);
  model_expect(dtype, op, &wanted, count * (uint64_t)mpi_rank, count);
  require(lcomm_reduce_scatter(comm, &send, &receive, count, dtype, op) == LCOMM_OK, "%s: %s", what,
          lcomm_last_error(comm));
  require(memcmp(&receive, &wanted, size) == 0, "scattered %s is wrong", what);
  require(memcmp(&send, &before, whole) == 0, "%s: the send buffer changed", what);
  require(lcomm_reduce_scatter(comm, &send, send.bytes + mine, count, dtype, op) == LCOMM_OK,
          "%s: %s", what, lcomm_last_error(comm));
  memcpy(before.bytes + mine, &wanted, size);
  require(memcmp(&send, &before, whole) == 0, "scattered %s in place is wrong", what);
}

static void reduce_scatter_is_exact_for_every_type_and_operation(void) {
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_comm *comm = model_comm("net=none", layout);
    for (int i = 0; comm && i < MODEL_TYPES * MODEL_OPS * SEGMENTS; i++) {
      check_reduce_scatter(comm, model_types[i / SEGMENTS % MODEL_TYPES],
                           (lcomm_op)(i / SEGMENTS / MODEL_TYPES), segments[i % SEGMENTS], layout);
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

/* ----------------------------------------------------------- special values */

static void integers_wrap_around_and_divide_towards_zero(void) {
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_comm *comm = model_comm("net=none", layout);
    if (!comm) {
      continue;
    }
    int32_t narrow[2] = {INT32_MAX - mpi_rank, mpi_rank == 0 ? -2 * mpi_size + 1 : 0};
    int64_t wide[2] = {INT64_MAX - mpi_rank, narrow[1]};
    uint64_t sum = 0;
    for (int rank = 0; rank < mpi_size; rank++) {
      sum += (uint64_t)INT64_MAX - (uint64_t)rank;
    }
    require(lcomm_allreduce(comm, wide, wide, 1, LCOMM_INT64, LCOMM_SUM) == LCOMM_OK &&
                wide[0] == (int64_t)sum,
            "int64 gave %lld", (long long)wide[0]);
    sum = (uint64_t)mpi_size * INT32_MAX - (uint64_t)mpi_size * ((uint64_t)mpi_size - 1) / 2;
    require(lcomm_allreduce(comm, narrow, narrow, 1, LCOMM_INT32, LCOMM_SUM) == LCOMM_OK &&
                narrow[0] == (int32_t)(uint32_t)sum,
            "int32 gave %d", narrow[0]);
    require(lcomm_allreduce(comm, narrow + 1, narrow + 1, 1, LCOMM_INT32, LCOMM_AVG) == LCOMM_OK &&
                narrow[1] == (1 - 2 * mpi_size) / mpi_size,
            "the average is %d", narrow[1]);
    require(lcomm_allreduce(comm, wide + 1, wide + 1, 1, LCOMM_INT64, LCOMM_AVG) == LCOMM_OK &&
                wide[1] == narrow[1],
            "the wide average is %lld", (long long)wide[1]);
    lcomm_destroy(comm);
  }
}

static bool is_nan(lcomm_dtype dtype, const void *value) {
  uint16_t code;
  memcpy(&code, value, sizeof(code));
  switch (dtype) {
  case LCOMM_FLOAT16:
    return isnan(lcomm_f16_to_f32(code));
  case LCOMM_BFLOAT16:
    return isnan(lcomm_bf16_to_f32(code));
  case LCOMM_FLOAT64:
    return isnan(*(const double *)value);
  default:
    return isnan(*(const float *)value);
  }
}

/* Element 0: the last rank has a NaN, the others numbers. Element 1: zeros of
 * both signs. */
static void a_nan_wins_and_zeros_are_ordered(void) {
  for (int i = 0; i < MODEL_LAYOUTS * 4; i++) {
    lcomm_dtype dtype = model_types[i % 4];
    size_t element = lcomm_dtype_size(dtype);
    lcomm_comm *comm = model_comm("net=none", i / 4);
    for (int op = LCOMM_MIN; comm && op <= LCOMM_MAX; op++) {
      double zero = op == LCOMM_MIN ? -0.0 : 0.0;
      model_put(dtype, &send, 0, mpi_rank == mpi_size - 1 ? (double)NAN : mpi_rank);
      model_put(dtype, &send, 1, mpi_rank == mpi_size / 2 ? zero : -zero);
      model_put(dtype, &wanted, 1, zero);
      require(lcomm_allreduce(comm, &send, &receive, 2, dtype, (lcomm_op)op) == LCOMM_OK, "%s",
              lcomm_last_error(comm));
      require(is_nan(dtype, &receive), "%s: no NaN", lcomm_dtype_name(dtype));
      require(memcmp(receive.bytes + element, wanted.bytes + element, element) == 0,
              "%s: the other zero", lcomm_dtype_name(dtype));
      require(same_everywhere(&receive, 2 * element), "%s: ranks differ", lcomm_dtype_name(dtype));
    }
    lcomm_destroy(comm);
  }
}

int main(int argc, char **argv) {
  static const mpi_property properties[] = {
      {"allreduce_is_exact_for_every_type_and_operation",
       allreduce_is_exact_for_every_type_and_operation},
      {"every_exchange_and_checksums_give_the_same", every_exchange_and_checksums_give_the_same},
      {"some_sums_are_never_compressed", some_sums_are_never_compressed},
      {"reduce_scatter_is_exact_for_every_type_and_operation",
       reduce_scatter_is_exact_for_every_type_and_operation},
      {"integers_wrap_around_and_divide_towards_zero",
       integers_wrap_around_and_divide_towards_zero},
      {"a_nan_wins_and_zeros_are_ordered", a_nan_wins_and_zeros_are_ordered},
  };
  return mpi_property_main(&argc, &argv, properties, sizeof(properties) / sizeof(properties[0]));
}
