/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Sums, averages, minima and maxima of every type. */

#include <math.h>
#include <stdio.h>

#include "tests/api/call_model.h"

enum { COUNT_MAX = 9001, SEGMENT_MAX = 2051, RANKS_MAX = 8, ROOM = RANKS_MAX * SEGMENT_MAX };

_Static_assert(ROOM >= COUNT_MAX, "buffers hold a reduce-scatter and an all-reduce");

static const uint64_t counts[] = {0, 1, 3, 130, 2051, COUNT_MAX};
static const uint64_t segments[] = {0, 1, 17, SEGMENT_MAX};

enum {
  COUNTS = sizeof(counts) / sizeof(counts[0]),
  SEGMENTS = sizeof(segments) / sizeof *segments
};

static union {
  double widest[ROOM + 1];
  uint8_t bytes[(ROOM + 1) * sizeof(double)];
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
      bool always = model_types[k] == LCOMM_FLOAT64 || LCOMM_DTYPE_IS_WHOLE(model_types[k]);
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

/* Uneven parts: none of most ranks, growing ones, all of one rank. */
static uint64_t part_of(int shape, int rank, uint64_t count) {
  uint64_t parts[] = {rank % 3 == 1 ? count : 0, count * (uint64_t)(rank + 1) / (uint64_t)mpi_size,
                      rank == 0 ? count * (uint64_t)mpi_size : 0};
  return parts[shape];
}

static void check_uneven(lcomm_comm *comm, lcomm_dtype dtype, lcomm_op op, uint64_t count,
                         int shape, int layout) {
  uint64_t parts[RANKS_MAX], all = 0, first = 0;
  const char *what = describe(dtype, op, count, layout);
  for (int rank = 0; rank < mpi_size; rank++) {
    parts[rank] = part_of(shape, rank, count);
    first = rank == mpi_rank ? all : first;
    all += parts[rank];
  }
  size_t element = lcomm_dtype_size(dtype), size = parts[mpi_rank] * element;
  model_fill(dtype, &send, mpi_rank, 0, all);
  memcpy(&before, &send, all * element);
  model_expect(dtype, op, &wanted, first, parts[mpi_rank]);
  memset(&receive, 0x5a, size + 1);
  require(lcomm_reduce_scatterv(comm, &send, size > 0 ? &receive : NULL, parts, dtype, op) ==
              LCOMM_OK,
          "%s: %s", what, lcomm_last_error(comm));
  require(memcmp(&receive, &wanted, size) == 0, "uneven %s, shape %d is wrong", what, shape);
  require(receive.bytes[size] == 0x5a, "uneven %s wrote behind its part", what);
  require(memcmp(&send, &before, all * element) == 0, "%s: the send buffer changed", what);
  for (int in_place = 0; in_place < 2; in_place++) { /* at the part, and as MPI has it */
    size_t at = in_place == 0 ? first * element : 0;
    memcpy(&send, &before, all * element);
    lcomm_request request;
    lcomm_status status =
        lcomm_ireduce_scatterv(comm, &send, send.bytes + at, parts, dtype, op, &request);
    status = status == LCOMM_OK ? lcomm_wait(comm, &request) : status;
    require(status == LCOMM_OK, "%s: %s", what, lcomm_last_error(comm));
    require(memcmp(send.bytes + at, &wanted, size) == 0, "uneven %s in place is wrong", what);
  }
}

static void uneven_reduce_scatters_are_exact_for_every_type_and_operation(void) {
  static const char *const policies[] = {"net=none", "net=topk:0.01 min=1 check=xxhash"};
  for (int i = 0; i < 2 * MODEL_LAYOUTS; i++) {
    lcomm_comm *comm = model_comm(policies[i % 2], i / 2);
    for (int k = 0; comm && k < MODEL_TYPES * MODEL_OPS * SEGMENTS; k += 1 + 4 * (i % 2)) {
      check_uneven(comm, model_types[k / SEGMENTS % MODEL_TYPES],
                   (lcomm_op)(k / SEGMENTS / MODEL_TYPES), segments[k % SEGMENTS], k / SEGMENTS % 3,
                   i / 2);
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

/* As long parts as those of an even one give its bits; uneven ones are within the bound. */
static void uneven_reduce_scatters_are_compressed_like_even_ones(void) {
  static float data[ROOM], even[SEGMENT_MAX], uneven[SEGMENT_MAX];
  uint64_t parts[RANKS_MAX], first = 0, whole = SEGMENT_MAX * (uint64_t)mpi_size;
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_comm *comm = model_comm("net=int8 min=8K", layout);
    if (!comm) {
      continue;
    }
    for (int i = 0; i < mpi_size; i++) {
      parts[i] = SEGMENT_MAX;
    }
    fill_gradient(data, whole, (uint64_t)mpi_rank + 1);
    require(
        lcomm_reduce_scatter(comm, data, even, SEGMENT_MAX, LCOMM_FLOAT32, LCOMM_AVG) == LCOMM_OK &&
            lcomm_reduce_scatterv(comm, data, uneven, parts, LCOMM_FLOAT32, LCOMM_AVG) == LCOMM_OK,
        "%s", lcomm_last_error(comm));
    require(memcmp(even, uneven, sizeof(even)) == 0, "layout %d: other bits", layout);
    first = 0;
    for (int i = 0; i < mpi_size; i++) { /* their mean is SEGMENT_MAX */
      parts[i] = i < mpi_size / 2 ? 0 : whole / (uint64_t)(mpi_size - mpi_size / 2);
      first += i < mpi_rank ? parts[i] : 0;
    }
    parts[mpi_size - 1] += whole % (uint64_t)(mpi_size - mpi_size / 2);
    static float exact[ROOM], got[ROOM];
    lcomm_stats stats;
    lcomm_stats_reset(comm);
    require(lcomm_reduce_scatterv(comm, data, got, parts, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK,
            "%s", lcomm_last_error(comm));
    lcomm_stats_get(comm, &stats);
    require(stats.sent_bytes[LCOMM_LINK_NET] <= stats.exact_bytes[LCOMM_LINK_NET] / 3,
            "layout %d: sent %llu bytes for %llu", layout,
            (unsigned long long)stats.sent_bytes[LCOMM_LINK_NET],
            (unsigned long long)stats.exact_bytes[LCOMM_LINK_NET]);
    MPI_Allreduce(data, exact, (int)whole, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double miss = 0, norm = 1e-300;
    for (uint64_t i = 0; i < parts[mpi_rank]; i++) {
      double error = (double)got[i] - (double)exact[first + i];
      miss += error * error;
      norm += (double)exact[first + i] * (double)exact[first + i];
    }
    require(miss <= 1e-3 * norm, "layout %d: error %g", layout, miss / norm);
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
    int8_t small = (int8_t)(INT8_MAX - mpi_rank);
    uint8_t byte = (uint8_t)(UINT8_MAX - mpi_rank);
    int ranks_before = mpi_size * (mpi_size - 1) / 2;
    require(lcomm_allreduce(comm, &small, &small, 1, LCOMM_INT8, LCOMM_SUM) == LCOMM_OK &&
                small == (int8_t)(uint8_t)(mpi_size * INT8_MAX - ranks_before),
            "int8 gave %d", small);
    require(lcomm_allreduce(comm, &byte, &byte, 1, LCOMM_UINT8, LCOMM_SUM) == LCOMM_OK &&
                byte == (uint8_t)(mpi_size * UINT8_MAX - ranks_before),
            "uint8 gave %d", byte);
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
      element_put(dtype, &send, 0, mpi_rank == mpi_size - 1 ? (double)NAN : mpi_rank);
      element_put(dtype, &send, 1, mpi_rank == mpi_size / 2 ? zero : -zero);
      element_put(dtype, &wanted, 1, zero);
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

static const mpi_property properties[] = {
    PROPERTY(allreduce_is_exact_for_every_type_and_operation),
    PROPERTY(every_exchange_and_checksums_give_the_same),
    PROPERTY(some_sums_are_never_compressed),
    PROPERTY(reduce_scatter_is_exact_for_every_type_and_operation),
    PROPERTY(uneven_reduce_scatters_are_exact_for_every_type_and_operation),
    PROPERTY(uneven_reduce_scatters_are_compressed_like_even_ones),
    PROPERTY(integers_wrap_around_and_divide_towards_zero),
    PROPERTY(a_nan_wins_and_zeros_are_ordered),
};
RUN_PROPERTIES(mpi_property_main, properties)
