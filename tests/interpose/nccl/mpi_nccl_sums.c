/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 5 6 7 8 */

/* Every sum of NCCL but those of 8-bit floats (mpi_nccl_gathered.c), against what it has to be, bit
 * for bit. */

#include <math.h>

#include "libcomm/interpose/nccl/nccl_numbers.h"
#include "tests/interpose/nccl/nccl_values.h"

static const size_t counts[] = {0, 5, 3001};

enum { COUNTS = 3 };

static double small(int rank, size_t place) {
  return (double)(rank + 1) * (double)(place % 5 + 1);
}

static double small_sum(int ranks, size_t place) {
  return (double)(ranks * (ranks + 1) / 2) * (double)(place % 5 + 1);
}

static double small_min(int ranks, size_t place) {
  (void)ranks;
  return small(0, place);
}

static double small_max(int ranks, size_t place) {
  return small(ranks - 1, place);
}

/* The average of equal numbers, whatever the number of ranks. */
static double equal(int rank, size_t place) {
  (void)rank;
  return (double)(place % 7 + 1);
}

/* Powers of two, whose products all types have, or lose all their bits of. */
static double one_or_two(int rank, size_t place) {
  (void)rank;
  return (double)(place % 2 + 1);
}

static double power(int ranks, size_t place) {
  return place % 2 ? (double)(1 << ranks) : 1;
}

typedef struct sum_case {
  ncclRedOp_t op;
  value_at give, get; /* the second with the number of ranks */
} sum_case;

static const sum_case cases[] = {{ncclSum, small, small_sum},
                                 {ncclMin, small, small_min},
                                 {ncclMax, small, small_max},
                                 {ncclAvg, equal, equal},
                                 {ncclProd, one_or_two, power}};

typedef void (*try_sum)(program *it, const struct value_type *type, const sum_case *sum,
                        size_t count);

/* Averages are the sum times 1 / ranks, which is rounded: of 7 ranks with 3 in float32 a neighbour
 * of 3 (averages_are_the_exact_ones_rounded). */
static bool is_exact(const struct value_type *type, const sum_case *sum) {
  bool all = true;
  for (float value = 1; value <= 7; value++) {
    float single = value * (float)mpi_size * (1 / (float)mpi_size);
    double wide = (double)value * mpi_size * (1 / (double)mpi_size);
    all &= type->size == 4 ? memcmp(&single, &value, sizeof(value)) == 0
                           : fabs(wide - (double)value) <= 0;
  }
  return all || sum->op != ncclAvg || !type->is_float || type->size < 4;
}

static void try_all(try_sum function) {
  program it = begin_with_stream();
  for (int t = 0; t < TYPES; t++) {
    bool is_float8 = value_types[t].is_float && value_types[t].size == 1;
    for (size_t c = 0; c < sizeof(cases) / sizeof *cases && !is_float8; c++) {
      for (int n = 0; n < COUNTS && is_exact(&value_types[t], &cases[c]); n++) {
        function(&it, &value_types[t], &cases[c], counts[n]);
      }
    }
  }
  end_program(&it);
}

static void try_all_reduce(program *it, const struct value_type *type, const sum_case *sum,
                           size_t count) {
  fill_values(it->from, type, sum->give, mpi_rank, 0, count);
  fine(ncclAllReduce(it->from, it->to, count, type->type, sum->op, it->comm, it->stream));
  holds_values("all-reduce", it->to, type, sum->get, mpi_size, 0, count, it->stream);
  fine(ncclAllReduce(it->from, it->from, count, type->type, sum->op, it->comm, it->stream));
  holds_values("all-reduce in place", it->from, type, sum->get, mpi_size, 0, count, it->stream);
}

static void try_reduce(program *it, const struct value_type *type, const sum_case *sum,
                       size_t count) {
  for (int root = 0; root < mpi_size; root++) {
    fill_values(it->from, type, sum->give, mpi_rank, 0, count);
    bool is_root = mpi_rank == root, in_place = root % 2 == 1;
    void *to = !is_root ? NULL : in_place ? it->from : it->to;
    fine(ncclReduce(it->from, to, count, type->type, sum->op, root, it->comm, it->stream));
    if (is_root) {
      holds_values("reduce", to, type, sum->get, mpi_size, 0, count, it->stream);
    } else {
      holds_values("what a reduce reads", it->from, type, sum->give, mpi_rank, 0, count,
                   it->stream);
    }
  }
}

static void try_reduce_scatter(program *it, const struct value_type *type, const sum_case *sum,
                               size_t count) {
  size_t all = count * (size_t)mpi_size, mine = count * (size_t)mpi_rank;
  fill_values(it->from, type, sum->give, mpi_rank, 0, all);
  fine(ncclReduceScatter(it->from, it->to, count, type->type, sum->op, it->comm, it->stream));
  holds_values("reduce-scatter", it->to, type, sum->get, mpi_size, mine, count, it->stream);
  unsigned char *part = it->from + mine * type->size;
  fine(ncclReduceScatter(it->from, part, count, type->type, sum->op, it->comm, it->stream));
  holds_values("reduce-scatter in place", part, type, sum->get, mpi_size, mine, count, it->stream);
}

static void every_all_reduce(void) {
  try_all(try_all_reduce);
}

static void every_reduce_to_every_root(void) {
  try_all(try_reduce);
}

static void every_reduce_scatter(void) {
  try_all(try_reduce_scatter);
}

/* ------------------------------------------------------------------ averages */

static double varied(int rank, size_t place) {
  return (double)((place * 5 + (size_t)rank * 3) % 11 + 1);
}

static double mean(int ranks, size_t place) {
  double sum = 0;
  for (int rank = 0; rank < ranks; rank++) {
    sum += varied(rank, place);
  }
  return sum / ranks;
}

/* The sum is exact, so what is left is to divide it and to round: half a step of the type, and,
 * where that is a multiplication in float32, half a step of that. */
static void is_mean(const void *there, const struct value_type *type, size_t first, size_t count,
                    cudaStream_t stream) {
  unsigned char *bytes = value_bytes();
  int digits = type->type == ncclBfloat16 ? 8 : type->size == 2 ? 11 : type->size == 4 ? 24 : 53;
  cuda(cudaStreamSynchronize(stream));
  cuda(cudaMemcpy(bytes, there, count * type->size, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; i++) {
    double is = lcomm_nccl_float_read(type->type, bytes + i * type->size),
           wanted = mean(mpi_size, first + i);
    double bound = fabs(wanted) * ldexp(digits > 11 ? 2 : 1.001, -digits);
    require(fabs(is - wanted) <= bound, "type %d: average %zu is %.17g, not %.17g", (int)type->type,
            i, is, wanted);
  }
}

/* Numbers that differ between ranks, also in number of digits. */
static void averages_are_the_exact_ones_rounded(void) {
  program it = begin_with_stream();
  for (int t = 0; t < TYPES; t++) {
    const struct value_type *type = &value_types[t];
    if (!type->is_float || type->size == 1) {
      continue;
    }
    fill_values(it.from, type, varied, mpi_rank, 0, 3001);
    fine(ncclAllReduce(it.from, it.to, 3001, type->type, ncclAvg, it.comm, it.stream));
    is_mean(it.to, type, 0, 3001, it.stream);
    fine(ncclReduceScatter(it.from, it.to, 3001 / (size_t)mpi_size, type->type, ncclAvg, it.comm,
                           it.stream));
    is_mean(it.to, type, 3001 / (size_t)mpi_size * (size_t)mpi_rank, 3001 / (size_t)mpi_size,
            it.stream);
    fine(ncclReduce(it.from, it.from, 3001, type->type, ncclAvg, 0, it.comm, it.stream));
    cuda(cudaStreamSynchronize(it.stream));
    if (mpi_rank == 0) {
      is_mean(it.from, type, 0, 3001, it.stream);
    }
  }
  end_program(&it);
}

/* ------------------------------------------------------------------ factors */

static double halves(int ranks, size_t place) {
  return small_sum(ranks, place) / 2;
}

/* A factor of the host, and one that lies on the device. */
static ncclRedOp_t make_factor(program *it, const struct value_type *type, bool on_device) {
  ncclRedOp_t op = ncclSum;
  unsigned char factor[8];
  put_value(type, 0.5, factor);
  void *place = factor;
  if (on_device) {
    place = it->to + VALUES_MAX - 8;
    cuda(cudaMemcpyAsync(place, factor, type->size, cudaMemcpyHostToDevice, it->stream));
  }
  fine(ncclRedOpCreatePreMulSum(&op, place, type->type,
                                on_device ? ncclScalarDevice : ncclScalarHostImmediate, it->comm));
  require(op >= ncclNumOps, "operation %d", (int)op);
  return op;
}

static void try_factor(program *it, const struct value_type *type, bool on_device) {
  enum { COUNT = 1500 };
  ncclRedOp_t op = make_factor(it, type, on_device), other = make_factor(it, type, false);
  require(op != other, "two operations are one");
  fine(ncclRedOpDestroy(other, it->comm));
  fill_values(it->from, type, small, mpi_rank, 0, COUNT * (size_t)mpi_size);
  fine(ncclAllReduce(it->from, it->to, COUNT, type->type, op, it->comm, it->stream));
  holds_values("a sum with a factor", it->to, type, halves, mpi_size, 0, COUNT, it->stream);
  fine(ncclReduceScatter(it->from, it->to, COUNT, type->type, op, it->comm, it->stream));
  holds_values("a part of one", it->to, type, halves, mpi_size, COUNT * (size_t)mpi_rank, COUNT,
               it->stream);
  fine(ncclGroupStart());
  fine(ncclReduce(it->from, it->to, COUNT, type->type, op, 0, it->comm, it->stream));
  fine(ncclRedOpDestroy(op, it->comm));
  fine(ncclGroupEnd());
  cuda(cudaStreamSynchronize(it->stream));
  if (mpi_rank == 0) {
    holds_values("one for a root", it->to, type, halves, mpi_size, 0, COUNT, it->stream);
  }
  refused(ncclAllReduce(it->from, it->to, 1, type->type, op, it->comm, it->stream),
          ncclInvalidArgument, "no operation");
}

static void sums_with_factors(void) {
  program it = begin_with_stream();
  for (int t = 0; t < TYPES; t++) {
    if (value_types[t].is_float && value_types[t].size > 1) {
      try_factor(&it, &value_types[t], false);
      try_factor(&it, &value_types[t], true);
    }
  }
  end_program(&it);
}

/* -------------------------------------------------------- streams, refusals */

static void try_stream(cudaStream_t stream) {
  program it = begin_program("net=none", stream);
  const struct value_type *type = &value_types[7];
  fill_values(it.from, type, small, mpi_rank, 0, 3001);
  cuda(cudaMemcpyAsync(it.to, it.from, 3001 * 4, cudaMemcpyDeviceToDevice, stream));
  fine(ncclAllReduce(it.to, it.to, 3001, ncclFloat32, ncclSum, it.comm, stream));
  cuda(cudaMemcpyAsync(it.from, it.to, 3001 * 4, cudaMemcpyDeviceToDevice, stream));
  holds_values("between two copies", it.from, type, small_sum, mpi_size, 0, 3001, stream);
  it.stream = NULL;
  end_program(&it);
}

static void any_stream_is_followed(void) {
  cudaStream_t own = NULL;
  cuda(cudaStreamCreate(&own));
  try_stream(own);
  cuda(cudaStreamDestroy(own));
  try_stream(NULL);
  try_stream(cudaStreamLegacy);
  try_stream(cudaStreamPerThread);
}

static void what_is_not_there_is_refused_on_all_ranks(void) {
  program it = begin_with_stream();
  ncclRedOp_t op = ncclSum;
  float factor = 2;
  refused(ncclAllReduce(it.from, it.to, 1, (ncclDataType_t)TYPES, ncclSum, it.comm, it.stream),
          ncclInvalidArgument, "no type");
  refused(ncclReduce(it.from, it.to, 1, ncclInt32, ncclSum, mpi_size, it.comm, it.stream),
          ncclInvalidArgument, "not a rank");
  refused(ncclRedOpCreatePreMulSum(&op, &factor, (ncclDataType_t)TYPES, ncclScalarHostImmediate,
                                   it.comm),
          ncclInvalidArgument, "no type");
  refused(ncclRedOpDestroy(ncclSum, it.comm), ncclInvalidArgument, "no operation");
  try_all_reduce(&it, &value_types[2], &cases[0], 10);
  end_program(&it);
}

static const mpi_property properties[] = {
    PROPERTY(every_all_reduce),
    PROPERTY(every_reduce_to_every_root),
    PROPERTY(every_reduce_scatter),
    PROPERTY(averages_are_the_exact_ones_rounded),
    PROPERTY(sums_with_factors),
    PROPERTY(any_stream_is_followed),
    PROPERTY(what_is_not_there_is_refused_on_all_ranks),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(alone_main, properties)
