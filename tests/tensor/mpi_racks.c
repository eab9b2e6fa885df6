/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 8 */

/* Sums by racks: 8 ranks pose as 4 nodes of 2, in 2 racks of 2 nodes, or others. */

#include <stdio.h>

#include "kernels/element.h"
#include "tests/tensor/residuals.h"

enum { COUNT = 9000, LONG = 1 << 20, RANKS = 8 };

/* The rack of each rank, a letter each; "": not known. */
static lcomm_comm *racked_comm(const char *policy, const char *racks, int nodes) {
  char name[2] = {racks[0] ? racks[mpi_rank] : '\0', '\0'};
  setenv("LCOMM_RACK", name, 1);
  lcomm_comm *comm = make_comm(policy, nodes);
  unsetenv("LCOMM_RACK");
  return comm;
}

/* ------------------------------------------------------------------- values */

typedef struct sum_case {
  const char *policy, *racks;
  int nodes;
  double error; /* relative, at most */
} sum_case;

static const sum_case cases[] = {
    {"", "aaaabbbb", 4, 1e-6},
    {"algo=ring", "aaaabbbb", 4, 1e-6},
    {"algo=doubling", "aaaabbbb", 4, 1e-6},
    {"algo=halving", "aaaabbbb", 4, 1e-6},
    {"net=bf16", "aaaabbbb", 4, 3e-3},
    {"net=int8 min=1", "aaaabbbb", 4, 2e-2},
    {"net=int8 rack=bf16 min=1", "aaaabbbb", 4, 2e-2},
    {"net=int8 rack=int8 min=1 algo=direct", "aaaabbbb", 4, 3e-2},
    {"net=int8+zstd rack=none+zstd min=1", "aabbaabb", 4, 2e-2},
    {"net=bf16 node=bf16 rack=fp16:scale=block check=xxhash", "aabbbbaa", 4, 1e-2},
    {"net=int8 rack=bf16 min=1", "aaabbbbb", 8, 2e-2},
    {"net=int8 rack=fp8e4m3 min=1", "abababab", 8, 6e-2},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void require_plan(lcomm_comm *comm, uint64_t count, const char *wanted) {
  char text[2048];
  require_fine(comm, lcomm_plan_print(comm, count, LCOMM_FLOAT32, 0, text, sizeof(text)));
  require(strstr(text, wanted) != NULL, "no \"%s\" in %s", wanted, text);
}

static double distance(const float *values, const double *wanted, uint64_t count, double factor) {
  double error = 0, norm = 1e-300;
  for (uint64_t i = 0; i < count; i++) {
    double miss = factor * (double)values[i] - wanted[i];
    error += miss * miss;
    norm += wanted[i] * wanted[i];
  }
  return sqrt(error / norm);
}

static void check_sum(const sum_case *it, uint64_t count, lcomm_op op) {
  static float values[LONG];
  static double wanted[LONG];
  lcomm_comm *comm = racked_comm(it->policy, it->racks, it->nodes);
  require_plan(comm, count, "  algorithm   racks(");
  for (int call = 0; call < 3; call++) {
    fill_gradient(values, count, (uint64_t)(call + 100 * mpi_rank));
    sum_over_ranks(values, count, wanted);
    require_fine(comm, lcomm_allreduce(comm, values, values, count, LCOMM_FLOAT32, op));
    double off = distance(values, wanted, count, op == LCOMM_AVG ? RANKS : 1);
    require(off <= it->error, "%s in %s: off by %g", it->policy, it->racks, off);
    require(same_everywhere(values, count * sizeof(float)), "%s: the ranks differ", it->policy);
  }
  require_fine(comm, lcomm_destroy(comm));
}

static void sums_by_racks_are_those_of_all_ranks(void) {
  for (int i = 0; i < CASES; i++) {
    check_sum(&cases[i], 20011, i % 2 ? LCOMM_SUM : LCOMM_AVG);
  }
  check_sum(&cases[0], LONG, LCOMM_SUM); /* several chunks */
  check_sum(&cases[6], LONG, LCOMM_AVG);
}

/* 16-bit buffers travel as they are inside racks, too. */
static void sums_of_16_bits_go_by_racks(void) {
  static uint16_t values[20011];
  static float wide[20011];
  static double wanted[20011];
  lcomm_comm *comm = racked_comm("net=int8 min=1", "aaaabbbb", 4);
  fill_gradient(wide, 20011, (uint64_t)mpi_rank);
  for (int i = 0; i < 20011; i++) {
    values[i] = lcomm_f32_to_bf16(wide[i]);
  }
  sum_over_ranks(wide, 20011, wanted);
  require_fine(comm, lcomm_allreduce(comm, values, values, 20011, LCOMM_BFLOAT16, LCOMM_SUM));
  for (int i = 0; i < 20011; i++) {
    wide[i] = lcomm_bf16_to_f32(values[i]);
  }
  require(distance(wide, wanted, 20011, 1) <= 2e-2, "off by %g", distance(wide, wanted, 20011, 1));
  require(same_everywhere(values, sizeof(values)), "the ranks differ");
  require_fine(comm, lcomm_destroy(comm));
}

/* Other types, and extremes, are never compressed. */
static void other_types_are_exact_by_racks(void) {
  static int64_t whole[LONG / 8], other[LONG / 8];
  static double wide[LONG / 8], most[LONG / 8];
  enum { ELEMENTS = LONG / 8 };
  lcomm_comm *comm = racked_comm("net=int8 rack=int8 min=1", "aaaabbbb", 4);
  for (int i = 0; i < ELEMENTS; i++) {
    whole[i] = (int64_t)i * (mpi_rank + 1) * (i % 2 ? 1 : -1);
    wide[i] = (double)((i * 37 + mpi_rank * 11) % 101) / 7;
  }
  MPI_Allreduce(whole, other, ELEMENTS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(wide, most, ELEMENTS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  require_fine(comm, lcomm_allreduce(comm, whole, whole, ELEMENTS, LCOMM_INT64, LCOMM_SUM));
  require_fine(comm, lcomm_allreduce(comm, wide, wide, ELEMENTS, LCOMM_FLOAT64, LCOMM_MAX));
  require(memcmp(whole, other, sizeof(whole)) == 0, "a sum of integers is wrong");
  require(memcmp(wide, most, sizeof(wide)) == 0, "a maximum is wrong");
  require_fine(comm, lcomm_destroy(comm));
}

/* -------------------------------------------------------------------- bytes */

/* Bytes of each class are those of the plan, with a header for each message. */
static void bytes_in_racks_and_between_them_are_counted_apart(void) {
  enum { ELEMENTS = 1 << 16, HEADER = 40, PIECE = ELEMENTS / 4 };
  static float values[ELEMENTS];
  static const struct {
    const char *policy;
    uint64_t rack, net; /* of a piece: a contribution inside, and what goes between racks */
  } sent[] = {{"net=bf16", 4 * PIECE, 2 * PIECE},
              {"net=bf16 rack=bf16", 2 * PIECE, 2 * PIECE},
              {"net=int8", 4 * PIECE, PIECE + PIECE / 32}};
  for (int i = 0; i < 3; i++) {
    lcomm_comm *comm = racked_comm(sent[i].policy, "aaaabbbb", 4);
    lcomm_stats stats;
    lcomm_rack_stats racks;
    fill_gradient(values, ELEMENTS, 7);
    require_fine(comm, lcomm_stats_reset(comm));
    require_fine(comm, lcomm_allreduce(comm, values, values, ELEMENTS, LCOMM_FLOAT32, LCOMM_SUM));
    require_fine(comm, lcomm_stats_get(comm, &stats));
    require_fine(comm, lcomm_rack_stats_get(comm, &racks));
    uint64_t inside = sent[i].rack + 2 * sent[i].net + 3 * HEADER;
    uint64_t across = sent[i].net + HEADER;
    require(racks.racks == 2 && racks.sent_messages == 3 && racks.sent_bytes == inside,
            "%s: %llu racks, %llu messages of %llu bytes inside", sent[i].policy,
            (unsigned long long)racks.racks, (unsigned long long)racks.sent_messages,
            (unsigned long long)racks.sent_bytes);
    require(stats.sent_bytes[LCOMM_LINK_NET] - racks.sent_bytes == across,
            "%s: %llu bytes between nodes", sent[i].policy,
            (unsigned long long)stats.sent_bytes[LCOMM_LINK_NET]);
    require_fine(comm, lcomm_destroy(comm));
  }
}

/* ----------------------------------------------------------- error feedback */

static void keep_accounts(const char *policy, const char *racks, int nodes, lcomm_op op) {
  layer l;
  lcomm_comm *comm = racked_comm(policy, racks, nodes);
  make_layer(&l, comm, COUNT, op);
  for (int step = 0; step < 12; step++) {
    fill_layer(&l, step);
    require_fine(comm, lcomm_allreduce_ef(l.residual, l.gradient, l.result));
    check_layer(&l, policy, step);
  }
  require(!owes_nothing(&l), "%s: a residual is expected", policy);
  fill_layer(&l, 12);
  require_fine(comm, lcomm_allreduce_flush(l.residual, l.gradient, l.result));
  check_layer(&l, policy, 12);
  require(owes_nothing(&l), "%s: something is left behind a flush", policy);
  require_fine(NULL, lcomm_destroy(comm));
  free_layer(&l);
}

static void error_feedback_conserves_sums_by_racks(void) {
  static const char *const policies[] = {
      "net=int8+ef min=1",
      "net=int8+ef rack=int8 min=1 algo=direct",
      "net=int4 rack=bf16 min=1",
      "net=sign rack=fp8e4m3 min=1 undo=on",
      "net=int2:block=32+zstd rack=int8+zstd min=1 algo=direct",
      "net=int4 min=1 undo=on algo=direct",
  };
  for (int i = 0; i < 6; i++) {
    keep_accounts(policies[i], "aaaabbbb", 4, i % 2 ? LCOMM_SUM : LCOMM_AVG);
    keep_accounts(policies[i], "aabbbaab", 8, i % 2 ? LCOMM_AVG : LCOMM_SUM);
  }
}

/* How many ranks hold something of an element, at most. */
static int holders_of(const layer *l) {
  static int32_t holds[COUNT];
  int most = 0;
  for (int i = 0; i < COUNT; i++) {
    holds[i] = l->held[i] != 0;
  }
  MPI_Allreduce(MPI_IN_PLACE, holds, COUNT, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; i++) {
    most = holds[i] > most ? holds[i] : most;
  }
  return most;
}

/* With a codec inside racks each node holds something of an element, else the owners alone. */
static void an_exact_contribution_takes_all_of_the_residual_with_it(void) {
  for (int undo = 0; undo < 2; undo++) {
    layer l;
    char policy[64];
    lcomm_comm *comm = racked_comm("net=int4+ef rack=int8 min=1 algo=direct", "aaaabbbb", 4);
    make_layer(&l, comm, COUNT, LCOMM_SUM);
    snprintf(policy, sizeof(policy), "net=int4+ef min=1 algo=direct%s", undo ? " undo=on" : "");
    for (int step = 0; step < 6; step++) {
      if (step == 3) {
        require_fine(comm, lcomm_policy_set(comm, policy));
      }
      fill_layer(&l, step);
      require_fine(comm, lcomm_allreduce_ef(l.residual, l.gradient, l.result));
      check_layer(&l, policy, step);
      require(holders_of(&l) == (step < 3 ? 4 : 2), "call %d: %d ranks hold an element", step,
              holders_of(&l));
    }
    require_fine(NULL, lcomm_destroy(comm));
    free_layer(&l);
  }
}

/* What is left out inside a rack comes with later steps. */
static void tensors_lose_nothing_inside_racks(void) {
  static float data[COUNT];
  static double wanted[COUNT], given[COUNT], gradient[COUNT];
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = racked_comm("net=int4 rack=int8 min=1", "aaaabbbb", 4);
  require_fine(comm, lcomm_tensor_add(comm, "w", data, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensor));
  memset(wanted, 0, sizeof(wanted));
  memset(given, 0, sizeof(given));
  for (int step = 0; step < 40; step++) {
    fill_gradient(data, COUNT, (uint64_t)(1000 * mpi_rank));
    sum_over_ranks(data, COUNT, gradient);
    require_fine(comm, lcomm_tensor_ready(comm, tensor));
    require_fine(comm, lcomm_tensors_wait(comm));
    require(same_everywhere(data, sizeof(data)), "step %d: the ranks differ", step);
    for (int i = 0; i < COUNT; i++) {
      wanted[i] += gradient[i];
      given[i] += (double)data[i];
    }
  }
  double error = 0, norm = 1e-300;
  for (int i = 0; i < COUNT; i++) {
    error += (given[i] - wanted[i]) * (given[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  require(sqrt(error / norm) <= 2e-2, "after 40 steps off by %g", sqrt(error / norm));
  require_fine(comm, lcomm_destroy(comm));
}

/* ------------------------------------------------------- what does not go so */

/* The same bits as before there were racks. */
static void without_racks_nothing_changes(void) {
  static const char *const policies[] = {"net=int8 rack=bf16 min=1", "net=topk:0.1 min=1"};
  static float one[20011], other[20011];
  for (int i = 0; i < 2; i++) {
    const char *racks = i == 0 ? "aaaaaaaa" : "aaaabbbb"; /* one rack; top-k */
    lcomm_comm *without = racked_comm(policies[i], "", 4);
    lcomm_comm *with = racked_comm(policies[i], racks, 4);
    fill_gradient(one, 20011, (uint64_t)mpi_rank);
    memcpy(other, one, sizeof(one));
    require_plan(with, 20011, i == 0 ? "  algorithm   hier(" : "racks do not count for top-k");
    require_fine(without, lcomm_allreduce(without, one, one, 20011, LCOMM_FLOAT32, LCOMM_SUM));
    require_fine(with, lcomm_allreduce(with, other, other, 20011, LCOMM_FLOAT32, LCOMM_SUM));
    require(memcmp(one, other, sizeof(one)) == 0, "%s: other bits", policies[i]);
    require_fine(with, lcomm_destroy(with));
    require_fine(without, lcomm_destroy(without));
  }
}

/* ------------------------------------------------------------------ mistakes */

static void require_refusal(const char *name, int nodes, const char *word) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.nodes = nodes;
  setenv("LCOMM_RACK", name, 1);
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  unsetenv("LCOMM_RACK");
  require_status_everywhere(NULL, status, LCOMM_ERR_ARGUMENT, word);
}

static void all_ranks_hear_of_a_wrong_rack(void) {
  require_refusal(mpi_rank == 5 ? "two words" : "a", 4, "LCOMM_RACK=two words is no name");
  require_refusal(mpi_rank == 5 ? "b" : "a", 4, "ranks 4 and 5 are on node 2");
  require_refusal(mpi_rank == 5 ? "" : "a", 4, "rank 5 does not; set LCOMM_RACK on all ranks");
}

static const mpi_property properties[] = {
    PROPERTY(sums_by_racks_are_those_of_all_ranks),
    PROPERTY(sums_of_16_bits_go_by_racks),
    PROPERTY(other_types_are_exact_by_racks),
    PROPERTY(bytes_in_racks_and_between_them_are_counted_apart),
    PROPERTY(error_feedback_conserves_sums_by_racks),
    PROPERTY(an_exact_contribution_takes_all_of_the_residual_with_it),
    PROPERTY(tensors_lose_nothing_inside_racks),
    PROPERTY(without_racks_nothing_changes),
    PROPERTY(all_ranks_hear_of_a_wrong_rack),
};
RUN_PROPERTIES(mpi_property_main, properties)
