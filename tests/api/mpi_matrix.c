/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 5 8 */

/* Collectives x codecs x transports x placements x odd sizes: the results are
 * right, bit-identical on all ranks, and the same bits over every transport. */

#include "tests/api/matrix_moves.h"

/* A policy, and the error that a sum may have, as a share of the summed
 * magnitudes: 0 for exact ones. A value goes through up to three quantisations. */
typedef struct codec_case {
  const char *policy;
  double bound;
  bool inside;  /* acts inside a node, too */
  bool in_long; /* also on a vector of several chunks */
} codec_case;

static const codec_case codecs[] = {
    {"net=none min=1", 0, true, true},
    {"net=none+zstd node=none+zstd min=1 check=xxhash", 0, true, false},
    {"net=none min=1 algo=gather", 0, true, false},
    {"net=none min=1 algo=ring", 1e-6, true, false}, /* adds up in the order of the ring */
    {"net=none min=1 algo=doubling", 1e-6, true, false},
    {"net=none min=1 algo=halving", 1e-6, true, true},
    {"net=fp16 min=1", 2e-3, false, false},
    {"net=fp16:scale=block min=1", 2e-3, false, false},
    {"net=bf16 min=1", 1.2e-2, false, false},
    {"net=bf16+zstd node=bf16 min=1", 1.2e-2, true, true},
    {"net=fp8e4m3 min=1", 0.2, false, false},
    {"net=fp8e4m3:block=32,stochastic min=1", 0.3, false, false},
    {"net=fp8e5m2 min=1 algo=direct", 0.4, false, false},
    {"net=int8 min=1", 3e-2, false, true},
    {"net=int8+zstd node=int8:block=32 min=1 algo=gather", 3e-2, true, false},
    {"net=int4-ef min=1", 0.4, false, false},
    {"net=topk:0.05 min=1", 1.1, false, true},
    {"net=topk:0.1,values=int8+zstd min=1 algo=direct check=xxhash", 1.1, false, false},
};

enum { CODECS = sizeof(codecs) / sizeof(codecs[0]) };

/* ------------------------------------------------------------------- sums */

static bool is_exact_sum(uint64_t first, uint64_t count) {
  return memcmp(result, flat + first, count * sizeof(float)) == 0 ||
         memcmp(result, grouped + first, count * sizeof(float)) == 0;
}

static double error_of(uint64_t first, uint64_t count, double factor) {
  double error = 0, norm = 1e-12;
  for (uint64_t i = 0; i < count; i++) {
    double miss = (double)result[i] - factor * total[first + i];
    error += miss * miss;
    norm += factor * factor * mass[first + i] * mass[first + i];
  }
  return sqrt(error / norm);
}

/* `result` holds the sum of elements first .. first+count. */
static void check_sum(const codec_case *codec, const char *call, uint64_t first, uint64_t count,
                      double factor, bool replicated) {
  double error = error_of(first, count, factor);
  if (codec->bound > 0 || factor < 1) {
    require(error <= codec->bound + 1e-6, "%s, %s of %llu: error %g", here, call,
            (unsigned long long)count, error);
  } else {
    require(is_exact_sum(first, count), "%s, %s of %llu: not the sum in rank order, error %g", here,
            call, (unsigned long long)count, error);
  }
  write_down(count, replicated, call);
}

static void sum_all(lcomm_comm *comm, const codec_case *codec, uint64_t count) {
  const float *mine = input[mpi_rank];
  lcomm_status status = lcomm_allreduce(comm, mine, result, count, LCOMM_FLOAT32, LCOMM_SUM);
  if (is_fine(comm, status, "all-reduce", count)) {
    check_sum(codec, "all-reduce", 0, count, 1, true);
  }
  memcpy(result, mine, count * sizeof(float));
  status = lcomm_allreduce(comm, result, result, count, LCOMM_FLOAT32, LCOMM_AVG);
  if (is_fine(comm, status, "average", count)) {
    check_sum(codec, "average", 0, count, 1.0 / mpi_size, true);
  }
}

static void sum_segments(lcomm_comm *comm, const codec_case *codec, uint64_t count) {
  lcomm_status status =
      lcomm_reduce_scatter(comm, input[mpi_rank], result, count, LCOMM_FLOAT32, LCOMM_SUM);
  if (is_fine(comm, status, "reduce-scatter", count)) {
    check_sum(codec, "reduce-scatter", count * (uint64_t)mpi_rank, count, 1, false);
  }
}

static void check_sums(lcomm_comm *comm, const codec_case *codec) {
  for (int c = 0; c < COUNTS; c++) {
    if (counts[c] < LONG || codec->in_long) {
      sum_all(comm, codec, counts[c]);
    }
    if (counts[c] * (uint64_t)mpi_size <= LONG) {
      sum_segments(comm, codec, counts[c]);
    }
  }
}

/* ---------------------------------------------------------------- tensors */

static const char *const tensor_policies[] = {
    "net=none min=1",
    "net=bf16+ef+zstd min=1",
    "net=fp8e4m3+ef min=1",
    "net=int8+ef min=1",
    "net=int4 min=1",
    "net=topk:0.05+ef min=1 bucket=16K",
    "net=topk:0.01,values=int8+ef+zstd momentum=0.5 min=1 algo=direct",
};

enum { TENSORS = 3, STEPS = 3, TENSOR_POLICIES = sizeof(tensor_policies) / sizeof(char *) };

static void check_step(lcomm_comm *comm, lcomm_tensor **tensors, bool exact, int step) {
  static const uint64_t first[TENSORS + 1] = {0, 3, 4098, 4098 + MIDDLE};
  memcpy(result, input[mpi_rank] + step, first[TENSORS] * sizeof(float));
  for (int i = 0; i < TENSORS; i++) {
    int which = (i + mpi_rank) % TENSORS; /* another order on every rank */
    require(lcomm_tensor_ready(comm, tensors[which]) == LCOMM_OK, "%s", lcomm_last_error(comm));
  }
  if (is_fine(comm, lcomm_tensors_wait(comm), "a step", first[TENSORS])) {
    require(!exact || is_exact_sum((uint64_t)step, first[TENSORS]), "%s, step %d: not the sum",
            here, step);
    write_down(first[TENSORS], true, "a step");
  }
}

static void check_tensors(lcomm_comm *comm, bool exact) {
  static const uint64_t sizes[TENSORS] = {3, 4095, MIDDLE};
  lcomm_tensor *tensors[TENSORS];
  float *data = result;
  for (int i = 0; i < TENSORS; i++) {
    char name[32];
    snprintf(name, sizeof(name), "tensor %d", i);
    is_fine(comm,
            lcomm_tensor_add(comm, name, data, sizes[i], LCOMM_FLOAT32, LCOMM_SUM, &tensors[i]),
            "adding", sizes[i]);
    data += sizes[i];
  }
  for (int step = 0; step < STEPS; step++) {
    check_step(comm, tensors, exact, step);
  }
}

/* -------------------------------------------------------------- the matrix */

/* False when this transport is not there. */
static bool visit_codec(const place *where, const codec_case *codec, const char *transport) {
  lcomm_comm *comm = make_place(where, codec->policy, transport);
  if (!comm) {
    return false;
  }
  say_where(where, codec->policy);
  check_sums(comm, codec);
  if (codec == codecs) {
    check_types(comm);
  }
  if (codec == codecs || strstr(codec->policy, "topk:0.05")) {
    check_moves(comm);
  }
  is_fine(NULL, lcomm_destroy(comm), "destroy", 0);
  return true;
}

static bool visit_tensors(const place *where, const char *policy, const char *transport) {
  lcomm_comm *comm = make_place(where, policy, transport);
  if (!comm) {
    return false;
  }
  say_where(where, policy);
  check_tensors(comm, policy == tensor_policies[0]);
  is_fine(NULL, lcomm_destroy(comm), "destroy", 0);
  return true;
}

/* Many ranks on few processors take their time, and so does the making of UCX's
 * connections: fewer codecs then. */
static bool is_slow(const char *transport) {
  return mpi_size > 4 || strcmp(transport, "ucx") == 0;
}

static bool is_visited(int p, const codec_case *codec, const char *transport) {
  return codec->inside || (p > 0 && (codec->in_long || !is_slow(transport)));
}

static bool visit_place(int p, const char *transport) {
  const place *where = &places[p];
  group_sums(where);
  for (int i = 0; i < CODECS; i++) {
    if (is_visited(p, &codecs[i], transport) && !visit_codec(where, &codecs[i], transport)) {
      return false;
    }
  }
  for (int i = 0; i < (p > 0 ? TENSOR_POLICIES : 1); i += is_slow(transport) ? 2 : 1) {
    if (!visit_tensors(where, tensor_policies[i], transport)) {
      return false;
    }
  }
  return true;
}

static void visit_all(const char *transport) {
  fill_inputs();
  fill_places();
  record_count = 0;
  for (int p = 0; p < place_count(); p++) {
    if (!visit_place(p, transport)) {
      return;
    }
  }
  compare_ranks();
  compare_transports(transport);
}

static void results_are_right_and_the_same_bits_over_mpi(void) {
  visit_all("mpi");
}

static void results_are_right_and_the_same_bits_over_auto(void) {
  visit_all("auto");
}

static void results_are_right_and_the_same_bits_over_shm_and_mpi(void) {
  visit_all("shm,mpi");
}

static void results_are_right_and_the_same_bits_over_ucx(void) {
  visit_all("ucx");
}

static const mpi_property properties[] = {
    PROPERTY(results_are_right_and_the_same_bits_over_mpi),
    PROPERTY(results_are_right_and_the_same_bits_over_auto),
    PROPERTY(results_are_right_and_the_same_bits_over_shm_and_mpi),
    PROPERTY(results_are_right_and_the_same_bits_over_ucx),
};
RUN_PROPERTIES(mpi_property_main, properties)
