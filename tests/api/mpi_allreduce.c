/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 5 6 7 8 */

/* All-reduce over every codec, type, placement and number of nodes. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec.h"
#include "kernels/element.h"
#include "tests/support/mpi_property.h"

static const char *const policies[] = {
    "net=none min=1",
    "net=fp16 min=1",
    "net=bf16 min=1",
    "net=fp8e4m3 min=1",
    "net=fp8e5m2 min=1",
    "net=int8 min=1",
    "net=topk:0.05 min=1",
    "net=int8 node=int8 min=1",
    "net=topk:1 min=1",
    "node=bf16 min=1",
    "net=none algo=ring min=1",
    "net=none algo=doubling min=1",
    "net=none algo=halving min=1",
    "net=int8 algo=gather min=1",
    "net=int8 algo=direct min=1 check=xxhash",
    "net=topk:0.6 algo=direct min=1",
    "net=fp16:scale=block min=1",
    "net=fp16:scale=2^4 min=1",
    "net=fp8e4m3:block=32,stochastic min=1",
    "net=int4-ef min=1",
    "net=int4:block=128-ef node=int8:block=32 min=1",
    "net=int2-ef min=1",
    "net=sign-ef min=1",
    "net=int2:block=32-ef+zstd node=sign:block=64-ef min=1",
    "net=topk:0.05,values=int8 min=1",
    "net=topk:k=500+zstd min=1 check=xxhash",
    "net=none+zstd min=1",
    "net=bf16+zstd node=fp16+zstd min=1",
    "net=topk:0.05,values=int8+zstd algo=direct min=1",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static const uint64_t counts[] = {0, 1, 3, 129, 5000, 40000};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]), COUNT_MAX = 40000 };

static float mine[COUNT_MAX], result[COUNT_MAX];
static double exact[COUNT_MAX];

static void sum_exactly(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    exact[i] = mine[i];
  }
  sum_everywhere(exact, count);
}

static double relative_error(uint64_t count) {
  double error = 0, norm = 1e-300;
  for (uint64_t i = 0; i < count; i++) {
    error += (result[i] - exact[i]) * (result[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  return sqrt(error / norm);
}

static void for_all_policies(void (*visit)(lcomm_comm *comm, const char *policy, int nodes)) {
  int most = mpi_size < 4 ? mpi_size : 4;
  for (int nodes = 1; nodes <= most; nodes++) {
    for (int i = 0; i < POLICIES; i++) {
      lcomm_comm *comm = make_comm(policies[i], nodes);
      visit(comm, policies[i], nodes);
      require(lcomm_destroy(comm) == LCOMM_OK, "%s: destroy", policies[i]);
    }
  }
}

static void check_replicas(lcomm_comm *comm, const char *policy, int nodes) {
  for (int c = 0; c < COUNTS; c++) {
    fill_gradient(mine, counts[c], (uint64_t)mpi_rank + 7);
    lcomm_status status = lcomm_allreduce(comm, mine, result, counts[c], LCOMM_FLOAT32, LCOMM_AVG);
    require(status == LCOMM_OK, "%s: %s", policy, lcomm_last_error(comm));
    require(same_everywhere(result, counts[c] * sizeof(float)),
            "%s, %d nodes, %llu elements: the ranks differ", policy, nodes,
            (unsigned long long)counts[c]);
  }
}

static void replicas_bit_identical_for_every_codec(void) {
  for_all_policies(check_replicas);
}

/* Largest relative error of one sum. Up to three quantisations lie on a
 * value's path (inside the node, between nodes, the result). For int8 one
 * errs by crest/127/sqrt(12), and the crest of a block is at most sqrt(128).
 * A top-k of everything sends its result as int8. */
static double bound_of(const char *policy) {
  static const struct {
    const char *word;
    double bound;
  } bounds[] = {{"topk:1 ", 4.5e-2}, {"topk", 2.0},   {"stochastic", 1e-1}, {"fp8e4m3", 5e-2},
                {"int4", 4e-1},      {"sign", 2.0},   {"int2", 1.2},        {"fp8e5m2", 1e-1},
                {"int8", 4.5e-2},    {"bf16+", 6e-3}, {"fp16", 2e-3},       {"bf16", 5e-3}};
  for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
    if (strstr(policy, bounds[i].word)) {
      return bounds[i].bound;
    }
  }
  return 1e-6;
}

static void check_error(lcomm_comm *comm, const char *policy, int nodes) {
  fill_gradient(mine, COUNT_MAX, (uint64_t)mpi_rank + 3);
  sum_exactly(COUNT_MAX);
  memcpy(result, mine, sizeof(mine));
  lcomm_status status = lcomm_allreduce(comm, result, result, COUNT_MAX, LCOMM_FLOAT32, LCOMM_SUM);
  require(status == LCOMM_OK, "%s: %s", policy, lcomm_last_error(comm));
  require(relative_error(COUNT_MAX) <= bound_of(policy), "%s, %d nodes: relative error %g", policy,
          nodes, relative_error(COUNT_MAX));
}

static void sums_are_within_the_error_of_the_codec(void) {
  for_all_policies(check_error);
}

/* Stochastic rounding draws other numbers in every call. */
static bool repeats_itself(const char *policy) {
  return !strstr(policy, "stochastic");
}

static void check_in_place(lcomm_comm *comm, const char *policy, int nodes) {
  static float copy[COUNT_MAX];
  if (!repeats_itself(policy)) {
    return;
  }
  fill_gradient(mine, 5000, (uint64_t)mpi_rank);
  memcpy(copy, mine, 5000 * sizeof(float));
  lcomm_status status = lcomm_allreduce(comm, mine, result, 5000, LCOMM_FLOAT32, LCOMM_SUM);
  require(status == LCOMM_OK && memcmp(copy, mine, 5000 * sizeof(float)) == 0,
          "%s: the send buffer changed", policy);
  status = lcomm_allreduce(comm, copy, copy, 5000, LCOMM_FLOAT32, LCOMM_SUM);
  require(status == LCOMM_OK && memcmp(copy, result, 5000 * sizeof(float)) == 0,
          "%s, %d nodes: in place differs from out of place", policy, nodes);
}

static void in_place_equals_out_of_place(void) {
  for_all_policies(check_in_place);
}

/* Small whole numbers are exact in every 16-bit type, and so are their sums. */
static void sixteen_bit_types_sum_exactly_when_the_numbers_are_whole(void) {
  enum { COUNT = 3001 };
  static uint16_t half[COUNT], out[COUNT];
  for (int dtype = LCOMM_FLOAT16; dtype <= LCOMM_BFLOAT16; dtype++) {
    for (int nodes = 1; nodes <= (mpi_size < 3 ? mpi_size : 3); nodes++) {
      lcomm_comm *comm = make_comm("net=none", nodes);
      for (int i = 0; i < COUNT; i++) {
        float value = (float)((i + mpi_rank) % 5);
        half[i] = dtype == LCOMM_FLOAT16 ? lcomm_f32_to_f16(value) : lcomm_f32_to_bf16(value);
      }
      require(lcomm_allreduce(comm, half, out, COUNT, (lcomm_dtype)dtype, LCOMM_SUM) == LCOMM_OK,
              "%s", lcomm_last_error(comm));
      for (int i = 0; i < COUNT; i++) {
        float sum = 0;
        for (int rank = 0; rank < mpi_size; rank++) {
          sum += (float)((i + rank) % 5);
        }
        float got = dtype == LCOMM_FLOAT16 ? lcomm_f16_to_f32(out[i]) : lcomm_bf16_to_f32(out[i]);
        require(got == sum, "type %d element %d: %g, not %g", dtype, i, got, sum);
      }
      lcomm_destroy(comm);
    }
  }
}

/* The average of numbers whose sum passes the largest fp16 is finite. */
static void an_average_does_not_overflow_where_the_sum_would(void) {
  enum { COUNT = 300 };
  uint16_t half[COUNT];
  lcomm_comm *comm = make_comm("net=none", mpi_size < 2 ? 1 : 2);
  for (int i = 0; i < COUNT; i++) {
    half[i] = lcomm_f32_to_f16(60000.0f);
  }
  require(lcomm_allreduce(comm, half, half, COUNT, LCOMM_FLOAT16, LCOMM_AVG) == LCOMM_OK, "%s",
          lcomm_last_error(comm));
  require(fabsf(lcomm_f16_to_f32(half[COUNT - 1]) - 60000.0f) <= 32.0f, "got %g",
          lcomm_f16_to_f32(half[COUNT - 1]));
  lcomm_destroy(comm);
}

static void nan_and_inf_reach_every_rank(void) {
  for (int i = 0; i < POLICIES; i++) {
    lcomm_comm *comm = make_comm(policies[i], mpi_size < 2 ? 1 : 2);
    fill_gradient(mine, 40000, 5);
    if (mpi_rank == mpi_size - 1) {
      mine[17] = NAN;
      mine[39000] = -INFINITY;
    }
    require(lcomm_allreduce(comm, mine, result, 40000, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK, "%s",
            lcomm_last_error(comm));
    require(isnan(result[17]), "%s: NaN became %g", policies[i], result[17]);
    require(!isfinite(result[39000]), "%s: -Inf became %g", policies[i], result[39000]);
    require(same_everywhere(result, sizeof(result)), "%s: the ranks differ", policies[i]);
    lcomm_destroy(comm);
  }
}

static void the_same_call_gives_the_same_bits_again(void) {
  static float again[COUNT_MAX];
  for (int i = 0; i < POLICIES; i++) {
    lcomm_comm *comm = make_comm(policies[i], mpi_size < 2 ? 1 : 2);
    fill_gradient(mine, COUNT_MAX, (uint64_t)mpi_rank);
    bool must = repeats_itself(policies[i]);
    for (int run = 0; run < 3; run++) {
      lcomm_allreduce(comm, mine, run == 0 ? result : again, COUNT_MAX, LCOMM_FLOAT32, LCOMM_SUM);
      bool same = run == 0 || memcmp(result, again, sizeof(result)) == 0;
      require(same || !must, "%s: run %d differs", policies[i], run);
    }
    lcomm_destroy(comm);
  }
}

static void small_calls_stay_exact_under_a_lossy_policy(void) {
  lcomm_comm *comm = make_comm("net=int8", mpi_size < 2 ? 1 : 2);
  float value = 1.0f + 0x1p-20f * (float)mpi_rank, sum = 0;
  float wanted = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    wanted += 1.0f + 0x1p-20f * (float)rank;
  }
  lcomm_allreduce(comm, &value, &sum, 1, LCOMM_FLOAT32, LCOMM_SUM);
  require(sum == wanted, "%.9g, not %.9g", sum, wanted);
  lcomm_destroy(comm);
}

/* Long vectors move in several chunks, in messages whose payload follows the
 * header, paced between nodes, and exact ones around a ring. */
static void long_vectors_are_summed_in_chunks(void) {
  enum { LONG = 3000001 };
  static const char *const long_policies[] = {"net=none", "net=int8", "net=bf16 check=xxhash"};
  float *values = malloc(LONG * sizeof(float));
  for (int p = 0; p < 3; p++) {
    for (int nodes = 1; nodes <= (mpi_size < 4 ? mpi_size : 4); nodes++) {
      lcomm_comm *comm = make_comm(long_policies[p], nodes);
      for (int i = 0; i < LONG; i++) {
        values[i] = (float)((i * 7 + mpi_rank * 3) % 64 - 20);
      }
      require(lcomm_allreduce(comm, values, values, LONG, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK,
              "%s", lcomm_last_error(comm));
      for (int i = 0; i < LONG; i += 997) {
        float wanted = 0, allowed = p == 0 ? 0.0f : 1.0f + 0.3f * (float)mpi_size;
        for (int rank = 0; rank < mpi_size; rank++) {
          wanted += (float)((i * 7 + rank * 3) % 64 - 20);
        }
        require(fabsf(values[i] - wanted) <= allowed, "%s, %d nodes, element %d: %g, not %g",
                long_policies[p], nodes, i, values[i], wanted);
      }
      require(same_everywhere(values, LONG * sizeof(float)), "%s, %d nodes: the ranks differ",
              long_policies[p], nodes);
      lcomm_destroy(comm);
    }
  }
  free(values);
}

static const mpi_property properties[] = {
    PROPERTY(replicas_bit_identical_for_every_codec),
    PROPERTY(sums_are_within_the_error_of_the_codec),
    PROPERTY(in_place_equals_out_of_place),
    PROPERTY(sixteen_bit_types_sum_exactly_when_the_numbers_are_whole),
    PROPERTY(an_average_does_not_overflow_where_the_sum_would),
    PROPERTY(nan_and_inf_reach_every_rank),
    PROPERTY(the_same_call_gives_the_same_bits_again),
    PROPERTY(small_calls_stay_exact_under_a_lossy_policy),
    PROPERTY(long_vectors_are_summed_in_chunks),
};
RUN_PROPERTIES(mpi_property_main, properties)
