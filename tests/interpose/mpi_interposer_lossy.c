/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* What a lossy policy does to the sums that it chooses: errors within the bound of
 * the codec, the same bits on all ranks and for all ways to make the call.
 * script_interposer_policies.sh runs this with other codecs. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=64K");
}

static const interposer_function sums[] = {INTERPOSER_ALLREDUCE,
                                           INTERPOSER_IALLREDUCE,
                                           INTERPOSER_ALLREDUCE_INIT,
                                           INTERPOSER_REDUCE_SCATTER,
                                           INTERPOSER_IREDUCE_SCATTER,
                                           INTERPOSER_REDUCE_SCATTER_BLOCK,
                                           INTERPOSER_IREDUCE_SCATTER_BLOCK};

enum { SUMS = sizeof(sums) / sizeof(sums[0]) };

/* Error of one quantisation, relative to the largest value. NaN: no such bound. */
static double error_of_codec(void) {
  static const struct {
    const char *word;
    double error;
  } errors[] = {{"topk", NAN},          {"stochastic", 1.0 / 6}, {"bf16", 1.0 / 256},
                {"fp16", 1.0 / 1024},   {"int8", 1.0 / 120},     {"fp8e4m3", 1.0 / 15},
                {"fp8e5m2", 1.0 / 7.5}, {"int4", 1.0 / 7},       {"int2", 1.0 / 2},
                {"sign", 4.0 / 3}};
  const char *policy = getenv("LCOMM_POLICY");
  for (size_t i = 0; policy && i < sizeof(errors) / sizeof(errors[0]); i++) {
    if (strstr(policy, errors[i].word)) {
      return errors[i].error;
    }
  }
  return 0;
}

/* Each node's sum is quantised once, and so is the whole. */
static double bound_of(const interposer_buffers *buffers, MPI_Comm comm) {
  const float *values = (const float *)(const void *)buffers->kept;
  double largest = 0, sum = 0;
  for (size_t i = 0; i < buffers->send_bytes / sizeof(float); i++) {
    largest = fmax(largest, fabs((double)values[i]));
  }
  PMPI_Allreduce(&largest, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
  return 2 * error_of_codec() * sum;
}

static void require_bound(const char *what, const interposer_buffers *b, size_t count,
                          MPI_Comm comm) {
  const float *called = (const float *)(const void *)b->called;
  const float *plain = (const float *)(const void *)b->plain;
  double bound = bound_of(b, comm), squares = 0, worst = 0;
  for (size_t i = 0; i < count; i++) {
    double error = fabs((double)called[i] - (double)plain[i]);
    worst = error <= worst ? worst : error;
    squares += error * error;
  }
  if (!isnan(bound)) {
    double typical = count > 0 ? sqrt(squares / (double)count) : 0;
    require(worst <= bound, "%s: error %g, at most %g", what, worst, bound);
    require(typical <= bound / 3, "%s: error %g, typically at most %g", what, typical, bound / 3);
  }
}

/* Without a residual top-k is for whole sums. Uneven parts are MPI's where they do not block. */
static bool may_stay_exact(const interposer_call *call) {
  bool uneven = call->parts[0] != call->parts[mpi_size - 1];
  return call->function >= INTERPOSER_REDUCE_SCATTER &&
         (isnan(error_of_codec()) || (uneven && call->function == INTERPOSER_IREDUCE_SCATTER));
}

/* One sum: lossy where it must be, within the bound, and equal on all ranks. */
static void try_sum(MPI_Comm comm, const char *where, interposer_call call) {
  char what[160];
  interposer_buffers buffers = interposer_buffers_for(&call);
  fill_probe((float *)(void *)buffers.send, buffers.send_bytes / sizeof(float),
             (uint64_t)(mpi_rank + call.count));
  snprintf(what, sizeof(what), "%s of %d on %s%s", interposer_function_names[call.function],
           call.count, where, call.in_place ? ", in place" : "");
  bool exact = gives_bits_of_mpi(&call, &buffers);
  require(exact != compresses(comm) || (exact && may_stay_exact(&call)), "%s: %s", what,
          exact ? "was exact" : "was not exact");
  require_bound(what, &buffers, interposer_shape_of(&call).receives, comm);
  if (call.function < INTERPOSER_REDUCE_SCATTER) {
    require(same_on(comm, buffers.called, buffers.receive_bytes), "%s: ranks differ", what);
  }
  interposer_buffers_free(&buffers);
}

static void sums_are_within_the_bound_of_the_codec(void) {
  static const int counts[] = {40 * 4096, 100800, 300000};
  for (int i = 0; i < SUMS * 3 * 2; i++) {
    interposer_function function = sums[i / 6];
    if (interposer_function_exists(function)) {
      interposer_call call = float_sum(function, MPI_COMM_WORLD, counts[i / 2 % 3]);
      call.in_place = i % 2;
      try_sum(MPI_COMM_WORLD, "world", call);
    }
  }
}

/* Most parts are empty; of a few elements each, their mean decides. MPICH 4.0 copies a part in
 * place onto itself, and aborts. */
static void scattered_sums_of_uneven_parts_are_taken_by_their_mean(void) {
  static const interposer_function scattered[] = {INTERPOSER_REDUCE_SCATTER,
                                                  INTERPOSER_IREDUCE_SCATTER};
  for (int i = 0; i < 8; i++) {
    interposer_call call = float_sum(scattered[i / 4], MPI_COMM_WORLD, 40 * 4096 * mpi_size);
    int owner = i % 2 ? mpi_size - 1 : 0;
    for (int rank = 0; rank < mpi_size; rank++) {
      call.parts[rank] = rank == owner ? 40 * 4096 * mpi_size : 0;
    }
    call.in_place = i / 2 % 2 && !mpi_is_mpich();
    try_sum(MPI_COMM_WORLD, "world", call);
  }
}

static void every_communicator_across_nodes_compresses(void) {
  for (int i = 0; i < INTERPOSER_COMM_KINDS; i++) {
    MPI_Comm comm = interposer_comm_kinds[i].make();
    if (comm != MPI_COMM_NULL && !interposer_comm_is_inter(comm)) {
      try_sum(comm, interposer_comm_kinds[i].name, float_sum(INTERPOSER_ALLREDUCE, comm, 20000));
      try_sum(comm, interposer_comm_kinds[i].name, float_sum(INTERPOSER_IALLREDUCE, comm, 20001));
    }
    interposer_comm_free(&comm);
  }
}

/* ----------------------------------------------------------- the same bits */

enum { COUNT = 50000 };

static void fill_and_make(interposer_function function, bool in_place, float *result) {
  static float send[COUNT];
  interposer_call call = float_sum(function, MPI_COMM_WORLD, COUNT);
  call.in_place = in_place;
  fill_probe(send, COUNT, (uint64_t)mpi_rank + 3);
  memcpy(result, send, sizeof(send));
  require(interposer_make(&interposer_mpi_called, &call, send, result) == MPI_SUCCESS,
          "it succeeds");
}

static void all_ways_to_sum_give_the_same_bits(void) {
  static float first[COUNT], again[COUNT];
  const char *policy = getenv("LCOMM_POLICY");
  if (policy && (strstr(policy, "stochastic") || strstr(policy, "+ef"))) {
    skip_property("the policy gives others each time");
    return;
  }
  fill_and_make(INTERPOSER_ALLREDUCE, false, first);
  for (int i = 0; i < 6; i++) {
    interposer_function function = sums[i / 2];
    if (interposer_function_exists(function)) {
      fill_and_make(function, i % 2, again);
      require(memcmp(first, again, sizeof(first)) == 0, "%s%s gives other bits",
              interposer_function_names[function], i % 2 ? ", in place" : "");
    }
  }
}

static void what_is_no_number_is_not_hidden(void) {
  static float values[COUNT];
  for (int i = 0; i < 3; i++) {
    float odd[] = {NAN, INFINITY, -INFINITY};
    fill_probe(values, COUNT, (uint64_t)mpi_rank);
    values[4711] = mpi_rank == mpi_size - 1 ? odd[i] : values[4711];
    MPI_Allreduce(MPI_IN_PLACE, values, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    require(!isfinite(values[4711]), "%g became %g", (double)odd[i], (double)values[4711]);
    require(same_everywhere(values, sizeof(values)), "ranks differ");
  }
}

static void zeros_stay_zeros(void) {
  static float values[COUNT];
  memset(values, 0, sizeof(values));
  MPI_Allreduce(MPI_IN_PLACE, values, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; i++) {
    if (values[i] != 0) {
      require(false, "element %d became %g", i, (double)values[i]);
      return;
    }
  }
}

/* A few large values, at the same places on all ranks, among small ones: those must
 * come through, and what else is not zero must be right too. */
static void large_values_come_through(void) {
  static float values[COUNT], exact[COUNT];
  for (int i = 0; i < COUNT; i++) {
    float small = (float)((i * 7 + mpi_rank * 3) % 11 - 5);
    values[i] = i % 250 == 17 ? 1000.0F + (float)(i / 250 + mpi_rank) : small;
  }
  PMPI_Allreduce(values, exact, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, values, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double share = error_of_codec();
  share = isnan(share) ? 1.0 / 60 : share; /* top-k: its values are int8 or bf16 */
  for (int i = 17; i < COUNT; i += 250) {
    double error = fabs((double)values[i] - (double)exact[i]);
    require(error <= 2 * share * (double)exact[i], "element %d: %g, not %g", i, (double)values[i],
            (double)exact[i]);
  }
  for (int i = 0; i < COUNT; i++) {
    double most = 5.0 * mpi_size + 2 * share * 1300 * mpi_size;
    require(i % 250 == 17 || fabs((double)values[i]) <= most, "element %d: %g", i,
            (double)values[i]);
  }
  require(same_everywhere(values, sizeof(values)), "ranks differ");
}

static const mpi_property properties[] = {
    PROPERTY(sums_are_within_the_bound_of_the_codec),
    PROPERTY(scattered_sums_of_uneven_parts_are_taken_by_their_mean),
    PROPERTY(every_communicator_across_nodes_compresses),
    PROPERTY(all_ways_to_sum_give_the_same_bits),
    PROPERTY(what_is_no_number_is_not_hidden),
    PROPERTY(zeros_stay_zeros),
    PROPERTY(large_values_come_through),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
