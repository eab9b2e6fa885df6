/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 8 */

/* Sums of tensors that do not wait for the slowest rank. The one that is late here waits until the
 * others have made their steps, and not for a time, so that it is late on any machine. */

#include "tests/shards/accounts.h"

enum { AHEAD = 6, TOGETHER = 4, LATE = 1 };

static const char *const codecs[] = {"net=none", "net=int8+ef min=1", "net=topk:0.05+ef min=1",
                                     "net=int4 min=1 bucket=16K", "net=topk:k=100+ef min=1"};
enum { CODECS = sizeof(codecs) / sizeof(codecs[0]) };

/* Gradients of the rank that is late have NaN and Inf. */
static bool is_spoilt;

static model model_of(const char *codec, const char *quorum, int nodes, lcomm_op op) {
  model m;
  char policy[128];
  snprintf(policy, sizeof policy, "%s %s", codec, quorum);
  make_model(&m, policy, nodes, op);
  forget_accounts();
  return m;
}

/* A step with gradients, or with zeros. */
static void step(model *m, int number, bool brings) {
  make_gradients(m, number, brings);
  for (int t = 0; brings && is_spoilt && mpi_rank == LATE && t < TENSORS; t++) {
    m->data[t][0] = NAN;
    m->data[t][sizes[t] - 1] = INFINITY;
  }
  note_gradients(m);
  require_fine(m, step_model(m));
  note_results(m);
}

/* In the first step all ranks compare their tensors, so nobody goes on without the others. */
static void make_first_step(model *m) {
  step(m, 0, false);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* All others make their steps first; the late one knows then how far it is behind. */
static void make_steps_apart(model *m) {
  int token = 0;
  for (int number = 0; number < AHEAD; number++) {
    uint64_t behind = 99;
    if (mpi_rank == LATE && number == 0) {
      for (int i = 0; i < mpi_size - 1; i++) {
        MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    step(m, number, mpi_rank != LATE || number == 0);
    require_fine(m, lcomm_behind(m->comm, &behind));
    uint64_t expected = mpi_rank == LATE ? (uint64_t)(AHEAD - number) : 0;
    require(behind == expected, "step %d: %d steps behind, not %d", number, (int)behind,
            (int)expected);
  }
  if (mpi_rank != LATE) {
    MPI_Send(&token, 1, MPI_INT, LATE, 1, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void nothing_is_lost_of_a_late_rank_and_replicas_stay_equal(void) {
  char quorum[64];
  snprintf(quorum, sizeof quorum, "quorum=%d late=0", mpi_size - 1);
  for (int c = 0; c < CODECS; c++) {
    for (int nodes = 1; nodes <= mpi_size; nodes *= 2) {
      model m = model_of(codecs[c], quorum, nodes, LCOMM_SUM);
      make_first_step(&m);
      make_steps_apart(&m);
      for (int number = 0; number < TOGETHER; number++) {
        step(&m, AHEAD + number, true);
      }
      require_conserved(&m, codecs[c]);
      require_equal_replicas(codecs[c]);
      free_model(&m);
    }
  }
}

static lcomm_lateness lateness_of(const model *m, int rank) {
  lcomm_lateness known;
  require_fine(m, lcomm_lateness_get(m->comm, rank, &known));
  return known;
}

static void lateness_is_counted_alike_by_all(void) {
  char quorum[64];
  static lcomm_lateness before[64];
  snprintf(quorum, sizeof quorum, "quorum=%d late=0", mpi_size - 1);
  model m = model_of("net=int8+ef min=1", quorum, two_nodes(), LCOMM_AVG);
  make_first_step(&m);
  for (int rank = 0; rank < mpi_size; rank++) {
    before[rank] = lateness_of(&m, rank);
  }
  make_steps_apart(&m);
  for (int rank = 0; rank < mpi_size; rank++) {
    lcomm_lateness after = lateness_of(&m, rank);
    uint64_t sums = after.sums - before[rank].sums, pieces = after.pieces - before[rank].pieces;
    uint64_t late_sums = after.late_sums - before[rank].late_sums;
    uint64_t late_pieces = after.late_pieces - before[rank].late_pieces;
    require(sums >= AHEAD && pieces >= sums, "%d sums of %d pieces", (int)sums, (int)pieces);
    require(late_sums == (rank == LATE ? sums : 0), "rank %d: %d late sums of %d", rank,
            (int)late_sums, (int)sums);
    require(late_pieces == (rank == LATE ? pieces : 0), "rank %d: %d late pieces", rank,
            (int)late_pieces);
  }
  require_equal_replicas("an average");
  free_model(&m);
}

/* What the late rank has brought is in the next sum that uses it. */
static void an_average_is_of_those_that_were_used(void) {
  char quorum[64];
  snprintf(quorum, sizeof quorum, "quorum=%d late=0", mpi_size - 1);
  model m = model_of("net=none", quorum, 1, LCOMM_AVG);
  make_first_step(&m);
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < sizes[t]; i++) {
      m.data[t][i] = mpi_rank == LATE ? 100 : 3;
    }
  }
  int token = 0;
  for (int i = 0; mpi_rank == LATE && i < mpi_size - 1; i++) {
    MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  require_fine(&m, step_model(&m));
  for (int t = 0; t < TENSORS; t++) {
    require(fabsf(m.data[t][0] - 3) < 1e-6f && fabsf(m.data[t][sizes[t] - 1] - 3) < 1e-6f,
            "an average of threes is %g", (double)m.data[t][0]);
  }
  if (mpi_rank != LATE) {
    MPI_Send(&token, 1, MPI_INT, LATE, 1, MPI_COMM_WORLD);
  }
  free_model(&m);
}

/* With all ranks needed nobody is left out: the sums of the plans, but for rounding. */
static void with_all_ranks_the_sums_are_the_exact_ones_and_have_the_same_bits(void) {
  model m = model_of("net=none", "quorum=100% late=0", two_nodes(), LCOMM_AVG);
  model twin = model_of("net=none", "quorum=100%", two_nodes(), LCOMM_AVG);
  model plain = model_of("net=none", "", two_nodes(), LCOMM_AVG);
  for (int number = 0; number < 3; number++) {
    model *all[3] = {&m, &twin, &plain};
    for (int i = 0; i < 3; i++) {
      fill_model(all[i], number);
      require_fine(all[i], step_model(all[i]));
    }
    for (int t = 0; t < TENSORS; t++) {
      require(memcmp(m.data[t], twin.data[t], sizes[t] * sizeof(float)) == 0, "other bits");
      for (uint64_t i = 0; i < sizes[t]; i++) {
        float error = fabsf(m.data[t][i] - plain.data[t][i]);
        require(error <= 1e-5f * (1 + fabsf(plain.data[t][i])), "element %d: %g, not %g", (int)i,
                (double)m.data[t][i], (double)plain.data[t][i]);
      }
    }
  }
  free_model(&m);
  free_model(&twin);
  free_model(&plain);
}

/* By int8 a value takes a quarter of float32, and a little. What a peer has, the sender may count
 * a moment later. */
static void what_is_sent_is_counted(void) {
  enum { STEPS = 10 };
  lcomm_stats stats;
  model m = model_of("net=int8+ef min=1", "quorum=100%", mpi_size, LCOMM_SUM);
  for (int number = 0; number < STEPS; number++) {
    fill_model(&m, number);
    require_fine(&m, step_model(&m));
  }
  require_fine(&m, lcomm_stats_get(m.comm, &stats));
  double elements = STEPS * (30000 + 1 + 1000 + 4097);
  double all = 2 * elements * (mpi_size - 1) / mpi_size;
  double sent = (double)stats.sent_bytes[LCOMM_LINK_NET];
  double exact = (double)stats.exact_bytes[LCOMM_LINK_NET];
  require(sent > 0.8 * all && sent < 1.4 * all, "%g bytes for %g values", sent, all);
  require(exact > 3.2 * all && exact < 4.6 * all, "%g bytes of float32 for %g values", exact, all);
  free_model(&m);
}

static void single_tensors_can_be_waited_for_and_tested(void) {
  model m = model_of("net=none", "quorum=100% bucket=4K", 1, LCOMM_SUM);
  fill_model(&m, 0);
  for (int t = 0; t < TENSORS; t++) {
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[t]));
  }
  require_fine(&m, lcomm_tensor_wait(m.comm, m.tensors[2]));
  for (int done = 0; !done;) {
    require_fine(&m, lcomm_tensor_test(m.comm, m.tensors[3], &done));
  }
  require_fine(&m, lcomm_tensors_wait(m.comm));
  free_model(&m);
}

static void half_precision_is_summed_as_float32(void) {
  static uint16_t half[1000];
  lcomm_comm *comm = make_comm("net=none quorum=100%", two_nodes());
  lcomm_tensor *tensor;
  for (int i = 0; i < 1000; i++) {
    half[i] = 0x3f80; /* 1 as bfloat16 */
  }
  require(lcomm_tensor_add(comm, "half", half, 1000, LCOMM_BFLOAT16, LCOMM_SUM, &tensor) ==
                  LCOMM_OK &&
              lcomm_tensor_ready(comm, tensor) == LCOMM_OK && lcomm_tensors_wait(comm) == LCOMM_OK,
          "%s", lcomm_last_error(comm));
  union {
    uint32_t bits;
    float value;
  } sum = {.bits = (uint32_t)half[999] << 16};
  require(fabsf(sum.value - (float)mpi_size) < 1e-6f, "a sum of ones is %g", (double)sum.value);
  lcomm_destroy(comm);
}

static void what_a_quorum_cannot_do_is_refused(void) {
  static int32_t whole[4];
  lcomm_comm *comm = make_comm("net=none quorum=100%", 1);
  lcomm_tensor *tensor;
  require(lcomm_tensor_add(comm, "whole", whole, 4, LCOMM_INT32, LCOMM_SUM, &tensor) ==
                  LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(comm), "float32, float16 or bfloat16"),
          "integers: %s", lcomm_last_error(comm));
  require(lcomm_policy_set(comm, "net=none") == LCOMM_ERR_STATE &&
              strstr(lcomm_last_error(comm), "quorum="),
          "another policy: %s", lcomm_last_error(comm));
  lcomm_lateness known;
  require(lcomm_lateness_get(comm, mpi_size, &known) == LCOMM_ERR_ARGUMENT, "no such rank");
  lcomm_destroy(comm);
  char policy[64];
  snprintf(policy, sizeof policy, "quorum=%d", mpi_size + 1);
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  require(lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm) == LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(NULL), "more ranks than"),
          "too many: %s", lcomm_last_error(NULL));
}

/* What is made anew keeps what was not sent. */
static void tensors_may_change_between_steps(void) {
  model m = model_of("net=int4 min=1 bucket=16K", "quorum=100%", two_nodes(), LCOMM_SUM);
  for (int number = 0; number < 3; number++) {
    step(&m, number, true);
  }
  require_fine(&m, lcomm_tensor_freeze(m.comm, m.tensors[1]));
  m.frozen[1] = true;
  memset(weights[1], 0, sizeof weights[1]);
  for (int number = 3; number < 6; number++) {
    for (int t = 0; t < TENSORS; t++) {
      fill_gradient(m.data[t], sizes[t], seed_of(t, number));
      for (uint64_t i = 0; t != 1 && i < sizes[t]; i++) {
        came[t][i] += (double)m.data[t][i];
      }
    }
    require_fine(&m, step_model(&m));
    for (int t = 0; t < TENSORS; t++) {
      for (uint64_t i = 0; t != 1 && i < sizes[t]; i++) {
        left[t][i] += (double)m.data[t][i];
      }
    }
  }
  require_conserved(&m, "a frozen tensor");
  free_model(&m);
}

static void what_waits_is_saved_and_loaded(void) {
  static float before[LARGEST], after[LARGEST];
  model m = model_of("net=int4 min=1 bucket=16K", "quorum=100%", two_nodes(), LCOMM_SUM), other;
  for (int number = 0; number < 3; number++) {
    step(&m, number, true);
  }
  size_t size = 0;
  require_fine(&m, lcomm_state_size(m.comm, &size));
  void *bytes = malloc(size);
  require_fine(&m, lcomm_state_write(m.comm, bytes, size));
  other = model_of("net=int4 min=1 bucket=16K", "quorum=100%", two_nodes(), LCOMM_SUM);
  require_fine(&other, lcomm_state_read(other.comm, bytes, size));
  for (int t = 0; t < TENSORS; t++) {
    require_fine(&m, lcomm_tensor_residual(m.comm, m.tensors[t], before));
    require_fine(&other, lcomm_tensor_residual(other.comm, other.tensors[t], after));
    require(memcmp(before, after, sizes[t] * sizeof(float)) == 0, "tensor %d has another residual",
            t);
  }
  fill_model(&m, 3);
  fill_model(&other, 3);
  require_fine(&m, step_model(&m));
  require_fine(&other, step_model(&other));
  for (int t = 0; t < TENSORS; t++) {
    require(memcmp(m.data[t], other.data[t], sizes[t] * sizeof(float)) == 0,
            "tensor %d goes on with other bits", t);
  }
  free(bytes);
  free_model(&m);
  free_model(&other);
}

static void require_finite(model *m, const char *codec, const char *what) {
  static double residual[LARGEST];
  require(lcomm_tensors_not_finite(m->comm) == 0, "'%s', %s: results are not finite", codec, what);
  for (int t = 0; t < TENSORS; t++) {
    sum_residuals(m, t, residual);
    for (uint64_t i = 0; i < sizes[t]; i++) {
      require(isfinite(residual[i]), "'%s', %s: element %d of a residual is not finite", codec,
              what, (int)i);
    }
  }
}

static void what_is_not_finite_is_told_once_and_remembered_nowhere(void) {
  for (int c = 0; c < CODECS; c++) {
    model m = model_of(codecs[c], "quorum=100%", two_nodes(), LCOMM_AVG);
    make_first_step(&m);
    is_spoilt = true;
    step(&m, 1, true);
    is_spoilt = false;
    require(lcomm_tensors_not_finite(m.comm) > 0, "'%s': NaN is not told", codecs[c]);
    step(&m, 2, true);
    require_finite(&m, codecs[c], "with all ranks");
    free_model(&m);
  }
}

static void what_is_not_finite_and_late_is_forgotten(void) {
  char quorum[64];
  snprintf(quorum, sizeof quorum, "quorum=%d late=0", mpi_size - 1);
  for (int c = 0; c < CODECS; c++) {
    model m = model_of(codecs[c], quorum, two_nodes(), LCOMM_AVG);
    make_first_step(&m);
    is_spoilt = true;
    make_steps_apart(&m);
    is_spoilt = false;
    require_finite(&m, codecs[c], "late");
    free_model(&m);
  }
}

static const mpi_property properties[] = {
    PROPERTY(nothing_is_lost_of_a_late_rank_and_replicas_stay_equal),
    PROPERTY(lateness_is_counted_alike_by_all),
    PROPERTY(an_average_is_of_those_that_were_used),
    PROPERTY(with_all_ranks_the_sums_are_the_exact_ones_and_have_the_same_bits),
    PROPERTY(what_is_sent_is_counted),
    PROPERTY(single_tensors_can_be_waited_for_and_tested),
    PROPERTY(half_precision_is_summed_as_float32),
    PROPERTY(what_a_quorum_cannot_do_is_refused),
    PROPERTY(tensors_may_change_between_steps),
    PROPERTY(what_waits_is_saved_and_loaded),
    PROPERTY(what_is_not_finite_is_told_once_and_remembered_nowhere),
    PROPERTY(what_is_not_finite_and_late_is_forgotten),
};
RUN_PROPERTIES(mpi_property_main, properties)
