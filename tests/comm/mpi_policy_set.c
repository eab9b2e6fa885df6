/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Another policy between the steps. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tensor/change_model.h"

static const char *const policies[] = {"net=topk:0.02+ef min=1",
                                       "net=int8+ef min=1 algo=direct",
                                       "net=int4 min=1 bucket=32K",
                                       "net=none",
                                       "net=topk:0.05+ef min=1",
                                       "net=bf16",
                                       "net=bf16+ef min=16K",
                                       "net=topk:0.1+ef min=1 scope=bucket",
                                       "net[conv*,embed]=int8+ef net=topk:0.05+ef min=1",
                                       "net[embed]=topk:0.05+ef net=int8+ef min=1"};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* See lost_of_step: also over every change. */
static void no_mass_is_lost_when_the_policy_changes(void) {
  static double before[TENSORS][LARGEST], gradient[TENSORS][LARGEST];
  for (int nodes = 1; nodes <= mpi_size && nodes <= 3; nodes++) {
    lcomm_op op = nodes % 2 ? LCOMM_AVG : LCOMM_SUM;
    double factor = op == LCOMM_AVG ? mpi_size : 1;
    model m;
    make_model(&m, "net=int8+ef min=1", nodes, op);
    memset(before, 0, sizeof(before));
    for (int step = 0; step < 2 * POLICIES; step++) {
      if (step % 2 == 0) {
        require_fine(&m, lcomm_policy_set(m.comm, policies[step / 2]));
      }
      fill_model(&m, step);
      for (int t = 0; t < TENSORS; t++) {
        sum_data(&m, t, gradient[t]);
      }
      require_fine(&m, step_model(&m));
      for (int t = 0; t < TENSORS; t++) {
        double lost = lost_of_step(&m, t, gradient[t], factor, before[t]);
        /* without +ef rounding is lost, as it is told */
        bool plain = strcmp(policies[step / 2], "net=bf16") == 0;
        require(lost <= (plain ? 1e-2 : 1e-5), "%s, step %d, tensor %d: lost %g",
                policies[step / 2], step, t, lost);
        require(same_everywhere(m.data[t], sizes[t] * 4), "the ranks differ");
      }
    }
    free_model(&m);
  }
}

/* What the same policy means again, bit for bit where nothing moves. */
static void the_same_policy_again_changes_no_bit(void) {
  const char *policy = "net=topk:0.05+ef min=1 momentum=0.9 warmup=1";
  model m, twin;
  make_model(&m, policy, mpi_size, LCOMM_AVG);
  make_model(&twin, policy, mpi_size, LCOMM_AVG);
  for (int step = 0; step < 5; step++) {
    require_same_step(&m, &twin, step);
    require_fine(&m, lcomm_policy_set(m.comm, policy));
  }
  free_model(&m);
  free_model(&twin);
}

/* Whole numbers are exact in float32 and not in top-k. */
static void plain_calls_follow_the_policy(void) {
  enum { COUNT = 40000 };
  static float values[COUNT];
  lcomm_comm *comm = make_comm("net=none", two_nodes());
  for (int round = 0; round < 4; round++) {
    const char *policy = round % 2 ? "net=topk:0.01 min=1" : "net=none";
    require(lcomm_policy_set(comm, policy) == LCOMM_OK, "%s", lcomm_last_error(comm));
    uint64_t zeros = 0;
    for (int i = 0; i < COUNT; i++) {
      values[i] = (float)(1 + i % 100);
    }
    require(lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK,
            "%s", lcomm_last_error(comm));
    for (int i = 0; i < COUNT; i++) {
      zeros += values[i] == 0;
    }
    bool lossy = round % 2 && mpi_size > 1;
    require(lossy ? zeros > COUNT / 2 : zeros == 0, "round %d: %d zeros", round, (int)zeros);
  }
  require(lcomm_policy_set(comm, "") == LCOMM_OK, "%s", lcomm_last_error(comm));
  lcomm_destroy(comm);
}

/* Of calls with a residual: what is kept, or flushed by the next call. */
static void residuals_of_calls_keep_their_accounts(void) {
  enum { COUNT = 20000 };
  static const char *const space[] = {"net=topk:0.02+ef min=1", "net=topk:0.1+ef min=1", "net=none",
                                      "net=int4 min=1 algo=direct",
                                      "net=topk:0.02+ef min=1 algo=gather"};
  static float values[COUNT], kept[COUNT];
  static double gradient[COUNT], before[COUNT], after[COUNT];
  lcomm_comm *comm = make_comm(space[0], two_nodes());
  lcomm_residual *residual = NULL;
  require(lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residual) == LCOMM_OK, "create");
  for (int step = 0; step < 15; step++) {
    if (step % 3 == 0) {
      require(lcomm_policy_set(comm, space[step / 3]) == LCOMM_OK, "%s", lcomm_last_error(comm));
    }
    fill_gradient(values, COUNT, (uint64_t)(step + 100 * mpi_rank));
    for (int i = 0; i < COUNT; i++) {
      gradient[i] = values[i] + before[i] / mpi_size;
    }
    sum_everywhere(gradient, COUNT);
    require(lcomm_allreduce_ef(residual, values, values) == LCOMM_OK, "%s", lcomm_last_error(comm));
    require(lcomm_residual_get(residual, kept) == LCOMM_OK, "%s", lcomm_last_error(comm));
    double error = 0, norm = 1e-300;
    for (int i = 0; i < COUNT; i++) {
      after[i] = kept[i];
    }
    MPI_Allreduce(after, before, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
      double miss = gradient[i] - ((double)values[i] + before[i]);
      error += miss * miss;
      norm += gradient[i] * gradient[i];
    }
    require(sqrt(error / norm) <= 1e-5, "step %d: lost %g", step, sqrt(error / norm));
  }
  lcomm_destroy(comm);
}

/* ----------------------------------------------------------------- refused */

/* The same sentence everywhere, and the policy before. */
static void check_refused(model *m, const char *policy, lcomm_status wanted, const char *named) {
  char before[1024], text[1024];
  snprintf(before, sizeof(before), "%s", lcomm_policy_string(m->comm));
  lcomm_status status = lcomm_policy_set(m->comm, policy);
  require(status == wanted, "%s: %s", lcomm_status_name(status), lcomm_last_error(m->comm));
  snprintf(text, sizeof(text), "%s", lcomm_last_error(m->comm));
  const char *sentence = strstr(text, "lcomm_policy_set");
  require(sentence && same_everywhere(sentence, strlen(sentence) + 1),
          "the ranks say different things: %s", text);
  require(strstr(text, named) != NULL, "'%s' is not in: %s", named, text);
  require(strcmp(before, lcomm_policy_string(m->comm)) == 0, "the policy has changed");
}

static void a_bad_or_different_policy_changes_nothing(void) {
  model m, twin;
  bool last = mpi_rank == mpi_size - 1;
  const char *policy = "net=topk:0.05+ef min=1";
  make_model(&m, policy, two_nodes(), LCOMM_AVG);
  make_model(&twin, policy, two_nodes(), LCOMM_AVG);
  for (int step = 0; step < 3; step++) {
    require_same_step(&m, &twin, step);
    check_refused(&m, "net=int9", LCOMM_ERR_POLICY, "int9");
    check_refused(&m, last ? "net=int9" : "net=int8", LCOMM_ERR_POLICY, "int9");
    check_refused(&m, last ? NULL : "net=int8", LCOMM_ERR_ARGUMENT, "no policy");
    if (mpi_size > 1) {
      check_refused(&m, last ? "net=int8" : "net=bf16", LCOMM_ERR_MISMATCH, "net=int8");
    }
  }
  free_model(&m);
  free_model(&twin);
}

static void a_policy_is_not_changed_under_way(void) {
  model m;
  float one = 1;
  double wide[4] = {0};
  lcomm_request request;
  bool last = mpi_rank == mpi_size - 1;
  make_model(&m, "net=int8+ef min=1", two_nodes(), LCOMM_SUM);
  fill_model(&m, 0);
  if (last) {
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[0]));
  }
  check_refused(&m, "net=none", LCOMM_ERR_STATE, "a step is in flight");
  for (int t = last ? 1 : 0; t < TENSORS; t++) {
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[t]));
  }
  require_fine(&m, lcomm_tensors_wait(m.comm));
  require_fine(&m, lcomm_iallreduce(m.comm, &one, &one, 1, LCOMM_FLOAT32, LCOMM_SUM, &request));
  check_refused(&m, "net=none", LCOMM_ERR_STATE, "wait for it");
  require_fine(&m, lcomm_wait(m.comm, &request));
  lcomm_tensor *tensor = NULL;
  require_fine(&m, lcomm_tensor_add(m.comm, "wide", wide, 4, LCOMM_FLOAT64, LCOMM_SUM, &tensor));
  check_refused(&m, "net=topk:0.1+ef momentum=0.5", LCOMM_ERR_ARGUMENT, "wide");
  require(lcomm_policy_set(NULL, "net=none") == LCOMM_ERR_ARGUMENT, "no communicator");
  require_fine(&m, lcomm_policy_set(m.comm, "net=none"));
  free_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(no_mass_is_lost_when_the_policy_changes),
    PROPERTY(the_same_policy_again_changes_no_bit),
    PROPERTY(plain_calls_follow_the_policy),
    PROPERTY(residuals_of_calls_keep_their_accounts),
    PROPERTY(a_bad_or_different_policy_changes_nothing),
    PROPERTY(a_policy_is_not_changed_under_way),
};
RUN_PROPERTIES(mpi_property_main, properties)
