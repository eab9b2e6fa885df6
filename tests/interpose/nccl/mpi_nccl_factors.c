/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 7 */

/* Sums of floats that each rank multiplies by a factor of its own, which the others do not know.
 * (mpi_nccl_gathered.c has whole numbers and 8-bit floats.) */

#include <math.h>

#include "tests/engine/graph_launch.h"
#include "tests/interpose/nccl/nccl_values.h"

enum { EACH = 1500, LONG = 40000 };

static const struct value_type *float32 = &value_types[7];

static double small(int rank, size_t place) {
  return (double)(place % 3 + (size_t)rank % 2);
}

/* 0 on rank 0, 1 on rank 1, -2 on rank 2, ...: exact in all types. */
static double factor_of(int rank) {
  return rank % 3 == 2 ? -rank : rank;
}

static double weighted(int ranks, size_t place) {
  double sum = 0;
  for (int rank = 0; rank < ranks; rank++) {
    sum += factor_of(rank) * small(rank, place);
  }
  return sum;
}

static double nothing(int ranks, size_t place) {
  (void)ranks;
  (void)place;
  return 0;
}

/* `place` is of the host, or of the device. */
static ncclRedOp_t make_operation(program *it, const struct value_type *type, double factor,
                                  bool on_device) {
  ncclRedOp_t op = ncclSum;
  unsigned char bytes[8];
  put_value(type, factor, bytes);
  void *place = bytes;
  if (on_device) {
    place = it->to + VALUES_MAX - 8;
    cuda(cudaMemcpy(place, bytes, type->size, cudaMemcpyHostToDevice));
  }
  fine(ncclRedOpCreatePreMulSum(&op, place, type->type,
                                on_device ? ncclScalarDevice : ncclScalarHostImmediate, it->comm));
  return op;
}

/* ------------------------------------------------------------------ exact ones */

static void every_sum_is(program *it, const struct value_type *type, ncclRedOp_t op,
                         value_at wanted) {
  size_t mine = EACH * (size_t)mpi_rank;
  int root = mpi_size - 1;
  fill_values(it->from, type, small, mpi_rank, 0, EACH * (size_t)mpi_size);
  fine(ncclAllReduce(it->from, it->to, EACH, type->type, op, it->comm, it->stream));
  holds_values("all-reduce", it->to, type, wanted, mpi_size, 0, EACH, it->stream);
  fine(ncclReduceScatter(it->from, it->to, EACH, type->type, op, it->comm, it->stream));
  holds_values("reduce-scatter", it->to, type, wanted, mpi_size, mine, EACH, it->stream);
  void *to = mpi_rank == root ? it->to : NULL;
  fine(ncclReduce(it->from, to, EACH, type->type, op, root, it->comm, it->stream));
  if (to) {
    holds_values("reduce", to, type, wanted, mpi_size, 0, EACH, it->stream);
  }
  holds_values("what is read", it->from, type, small, mpi_rank, 0, EACH, it->stream);
  fine(ncclAllReduce(it->from, it->from, EACH, type->type, op, it->comm, it->stream));
  holds_values("all-reduce in place", it->from, type, wanted, mpi_size, 0, EACH, it->stream);
}

static void try_types(double factor, value_at wanted) {
  program it = begin_with_stream();
  for (int t = 0; t < 2 * TYPES; t++) {
    const struct value_type *type = &value_types[t / 2];
    if (type->is_float && type->size > 1) {
      ncclRedOp_t op = make_operation(&it, type, factor, t % 2);
      every_sum_is(&it, type, op, wanted);
      fine(ncclRedOpDestroy(op, it.comm));
    }
  }
  end_program(&it);
}

static void each_rank_has_its_own(void) {
  try_types(factor_of(mpi_rank), weighted);
}

static void all_may_be_zero(void) {
  try_types(0, nothing);
}

/* One rank has the factor, the others 1. */
static void try_special(program *it, double factor, bool is_nan) {
  static float got[EACH];
  ncclRedOp_t op = make_operation(it, float32, mpi_rank == mpi_size - 1 ? factor : 1, false);
  for (int i = 0; i < EACH; i++) {
    got[i] = 1 + (float)i;
  }
  cuda(cudaMemcpy(it->from, got, sizeof(got), cudaMemcpyHostToDevice));
  fine(ncclAllReduce(it->from, it->to, EACH, ncclFloat32, op, it->comm, it->stream));
  cuda(cudaStreamSynchronize(it->stream));
  cuda(cudaMemcpy(got, it->to, sizeof(got), cudaMemcpyDeviceToHost));
  for (int i = 0; i < EACH; i++) {
    require(is_nan ? isnan(got[i]) : isinf(got[i]) && got[i] < 0, "element %d is %g", i,
            (double)got[i]);
  }
  fine(ncclRedOpDestroy(op, it->comm));
}

static void what_is_not_finite_reaches_all(void) {
  program it = begin_with_stream();
  try_special(&it, (double)NAN, true);
  try_special(&it, -(double)INFINITY, false);
  end_program(&it);
}

/* ------------------------------------------------------------- compressed ones */

/* Within int8's bound of the largest sum, and the same bits on all ranks. */
static void compressed_ones_are_alike_on_all_ranks(void) {
  static float values[LONG];
  cudaStream_t stream = NULL;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  program it = begin_program("net=int8 min=1K", stream);
  ncclRedOp_t op = make_operation(&it, float32, factor_of(mpi_rank), false);
  uint64_t hash = 1469598103934665603u, first;
  for (int i = 0; i < LONG; i++) {
    values[i] = (float)((i * 37 + mpi_rank * 11) % 1009 - 504) / 64;
  }
  cuda(cudaMemcpy(it.from, values, sizeof(values), cudaMemcpyHostToDevice));
  fine(ncclAllReduce(it.from, it.to, LONG, ncclFloat32, op, it.comm, it.stream));
  cuda(cudaStreamSynchronize(it.stream));
  cuda(cudaMemcpy(values, it.to, sizeof(values), cudaMemcpyDeviceToHost));
  double bound = 0.1;
  for (int rank = 0; rank < mpi_size; rank++) {
    bound += 8 * fabs(factor_of(rank)) / 60;
  }
  int differ = 0;
  for (int i = 0; i < LONG; i++) {
    double wanted = 0;
    uint32_t bits;
    for (int rank = 0; rank < mpi_size; rank++) {
      wanted += factor_of(rank) * ((i * 37 + rank * 11) % 1009 - 504) / 64;
    }
    double error = fabs((double)values[i] - wanted);
    differ += error > 0;
    require(error < bound, "element %d is %g, not %g", i, (double)values[i], wanted);
    memcpy(&bits, &values[i], sizeof(bits));
    hash = (hash ^ bits) * 1099511628211u;
  }
  first = hash;
  MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, MPI_COMM_WORLD);
  require(hash == first, "other bits than on rank 0");
  require((differ > 0) == (mpi_size > 1), "%d elements differ from exact ones", differ);
  end_program(&it);
}

/* --------------------------------------------------------------------- graphs */

static void a_captured_one_keeps_the_factor(void) {
  program it = begin_with_stream();
  launchable graph;
  ncclRedOp_t op = make_operation(&it, float32, factor_of(mpi_rank), false);
  check(emulated_capture_begin(it.stream));
  fine(ncclAllReduce(it.from, it.to, EACH, ncclFloat32, op, it.comm, it.stream));
  fine(ncclRedOpDestroy(op, it.comm));
  end_capture(&graph, it.stream);
  for (int replay = 0; replay < 2; replay++) {
    fill_values(it.from, float32, small, mpi_rank, 0, EACH);
    launch(&graph, it.stream);
    holds_values("replayed", it.to, float32, weighted, mpi_size, 0, EACH, it.stream);
    fill_values(it.to, float32, nothing, 0, 0, EACH);
  }
  free_graph(&graph);
  end_program(&it);
}

/* ---------------------------------------------------------------- differences */

/* Rank 0 makes a sum without a factor. All see that, and their streams go on. */
static void a_rank_without_a_factor_is_an_error_on_all(void) {
  program it = begin_with_stream();
  ncclRedOp_t op = make_operation(&it, float32, 1, false);
  ncclResult_t error = ncclAllReduce(it.from, it.to, EACH, ncclFloat32,
                                     mpi_rank == 0 ? ncclSum : op, it.comm, it.stream);
  while (error == ncclSuccess) {
    fine(ncclCommGetAsyncError(it.comm, &error));
    usleep(1000);
  }
  require(error == ncclInvalidUsage, "the error is %d", (int)error);
  cuda(cudaStreamSynchronize(it.stream));
  fine(ncclCommAbort(it.comm));
  cuda(cudaStreamDestroy(it.stream));
  cuda(cudaFree(it.from));
  cuda(cudaFree(it.to));
}

static const mpi_property properties[] = {
    PROPERTY(each_rank_has_its_own),
    PROPERTY(all_may_be_zero),
    PROPERTY(what_is_not_finite_reaches_all),
    PROPERTY(compressed_ones_are_alike_on_all_ranks),
    PROPERTY(a_captured_one_keeps_the_factor),
    PROPERTY_OF(2, a_rank_without_a_factor_is_an_error_on_all),
    PROPERTY(the_device_comes_to_an_end),
};

RUN_PROPERTIES(alone_main, properties)
