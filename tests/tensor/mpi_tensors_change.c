/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 5 */

/* Tensors that change between the steps: frozen, unfrozen, added late. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tensor/change_model.h"

/* ------------------------------------------------------------- accounts */

static const char *const policies[] = {
    "net=topk:0.02+ef min=1",
    "net=topk:0.05+ef min=1 scope=bucket",
    "net=int8+ef min=1 algo=direct",
    "net=int4 min=1 bucket=32K",
    "net=bf16+ef min=1 warmup=2",
    "net=topk:0.02+ef min=8K algo=direct",
    "net=fp8e4m3+ef min=1 bucket=100K",
    "net=topk:k=100+ef min=1 ramp=0.2@2",
    "net[conv*]=bf16+ef net[size<=40000]=int8+ef net=topk:0.02+ef",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* Step `step` freezes tensor t where the bit is set. */
static const unsigned frozen_in[] = {0, 2, 2, 9, 0, 15, 4, 0};

enum { STEPS = sizeof(frozen_in) / sizeof(frozen_in[0]) };

static void freeze_as_in(model *m, int step) {
  for (int t = 0; t < m->count; t++) {
    bool frozen = frozen_in[step] >> t & 1;
    require_fine(m, frozen ? lcomm_tensor_freeze(m->comm, m->tensors[t])
                           : lcomm_tensor_unfreeze(m->comm, m->tensors[t]));
    m->frozen[t] = frozen;
  }
}

/* sum(gradient + residual before) == factor * applied + sum(residual after) for those that
 * take part; the others keep what they have, and their buffers are not touched. */
static void check_step(model *m, int step, lcomm_op op, const char *policy) {
  static double before[LARGEST], gradient[TENSORS][LARGEST], kept[TENSORS][LARGEST];
  double factor = op == LCOMM_AVG ? mpi_size : 1;
  for (int t = 0; t < m->count; t++) {
    sum_residuals(m, t, kept[t]);
  }
  freeze_as_in(m, step);
  fill_model(m, step);
  for (int t = 0; t < m->count; t++) {
    sum_data(m, t, gradient[t]);
  }
  require_fine(m, step_model(m));
  for (int t = 0; t < m->count; t++) {
    double error = 0, norm = 1e-300, applied;
    sum_residuals(m, t, before);
    for (uint64_t i = 0; i < sizes[t]; i++) {
      applied = m->frozen[t] ? gradient[t][i] : factor * (double)m->data[t][i];
      double miss = gradient[t][i] + kept[t][i] - (applied + before[i]);
      error += miss * miss;
      norm += (gradient[t][i] + kept[t][i]) * (gradient[t][i] + kept[t][i]);
    }
    require(sqrt(error / norm) <= 1e-5, "%s, step %d, tensor %d: lost %g", policy, step, t,
            sqrt(error / norm));
    require(m->frozen[t] || same_everywhere(m->data[t], sizes[t] * sizeof(float)),
            "%s, step %d, tensor %d: the ranks differ", policy, step, t);
  }
}

static void no_mass_is_lost_when_tensors_are_frozen(void) {
  for (int nodes = 1; nodes <= mpi_size && nodes <= 3; nodes++) {
    for (int i = 0; i < POLICIES; i++) {
      model m;
      lcomm_op op = i % 2 ? LCOMM_SUM : LCOMM_AVG;
      make_model(&m, policies[i], nodes, op);
      for (int step = 0; step < STEPS; step++) {
        check_step(&m, step, op, policies[i]);
      }
      free_model(&m);
    }
  }
}

static void no_mass_is_lost_when_tensors_are_added(void) {
  for (int i = 0; i < POLICIES; i++) {
    model m;
    lcomm_op op = i % 2 ? LCOMM_SUM : LCOMM_AVG;
    begin_model(&m, policies[i], mpi_size < 2 ? 1 : 2);
    for (int t = 0; t < TENSORS; t++) {
      add_tensor(&m, t, op);
      for (int step = 0; step < 2; step++) {
        check_step(&m, 0, op, policies[i]);
      }
    }
    free_model(&m);
  }
}

/* ----------------------------------------------------------------- bits */

static const char *const exact_bits[] = {
    "net=topk:0.05+ef min=1 algo=gather",
    "net=topk:0.05+ef min=1 algo=gather momentum=0.9",
    "net=topk:0.05+ef min=1 algo=gather momentum=0.9 warmup=3 clip=2",
    "net=none momentum=0.5 net=topk:0.1+ef min=16K algo=gather",
};

static void step_one(model *m, int t, int gradient) {
  fill_gradient(m->data[t], sizes[t], seed_of(t, gradient));
  require_fine(m, lcomm_tensor_ready(m->comm, m->tensors[t]));
}

/* With one rank per node residuals and momentum stay where they are: every tensor does in the
 * steps that it takes part in what it does alone in as many steps. */
static void frozen_tensors_wait_and_others_go_on_bit_for_bit(void) {
  for (int p = 0; p < 2; p++) {
    model m, alone[TENSORS];
    make_model(&m, exact_bits[p], mpi_size, LCOMM_AVG);
    for (int t = 0; t < TENSORS; t++) {
      begin_model(&alone[t], exact_bits[p], mpi_size);
      add_one(&alone[t], t, LCOMM_AVG);
    }
    for (int step = 0; step < STEPS; step++) {
      freeze_as_in(&m, step);
      for (int t = 0; t < TENSORS; t++) {
        if (!m.frozen[t]) {
          step_one(&m, t, step);
          step_one(&alone[t], t, step);
          require_fine(&alone[t], lcomm_tensors_wait(alone[t].comm));
        }
      }
      require_fine(&m, lcomm_tensors_wait(m.comm));
      for (int t = 0; t < TENSORS; t++) {
        require(m.frozen[t] || memcmp(m.data[t], alone[t].data[t], sizes[t] * 4) == 0,
                "%s, step %d: tensor %d differs", exact_bits[p], step, t);
      }
    }
    free_model(&m);
    for (int t = 0; t < TENSORS; t++) {
      free_model(&alone[t]);
    }
  }
}

/* The momentum of exact steps lies with the results, on all ranks. */
static void momentum_of_exact_steps_is_kept(void) {
  model m, twin;
  const char *policy = exact_bits[2];
  make_model(&m, policy, mpi_size, LCOMM_SUM);
  make_model(&twin, policy, mpi_size, LCOMM_SUM);
  for (int step = 0; step < 6; step++) {
    bool without = step == 1 || step == 4;
    require_fine(&m, without ? lcomm_tensor_freeze(m.comm, m.tensors[1])
                             : lcomm_tensor_unfreeze(m.comm, m.tensors[1]));
    m.frozen[1] = without;
    fill_model(&m, step);
    fill_model(&twin, step);
    require_fine(&m, step_model(&m));
    require_fine(&twin, step_model(&twin));
    for (int t = 0; t < TENSORS; t++) {
      require(t == 1 || memcmp(m.data[t], twin.data[t], sizes[t] * 4) == 0,
              "step %d: tensor %d differs", step, t);
    }
  }
  free_model(&m);
  free_model(&twin);
}

static void changes_that_are_taken_back_are_none(void) {
  model m;
  lcomm_stats before, after;
  make_model(&m, "net=int8+ef min=1", mpi_size < 2 ? 1 : 2, LCOMM_SUM);
  fill_model(&m, 0);
  require_fine(&m, step_model(&m));
  uint64_t steps[2];
  for (int i = 0; i < 2; i++) {
    lcomm_stats_get(m.comm, &before);
    if (i == 1 && mpi_rank == 0) {
      lcomm_tensor_freeze(m.comm, m.tensors[2]);
      lcomm_tensor_freeze(m.comm, m.tensors[2]);
      lcomm_tensor_unfreeze(m.comm, m.tensors[2]);
      lcomm_tensor_unfreeze(m.comm, m.tensors[3]);
    }
    fill_model(&m, i);
    require_fine(&m, step_model(&m));
    lcomm_stats_get(m.comm, &after);
    steps[i] = after.operations - before.operations;
  }
  require(steps[0] == steps[1], "%d operations became %d", (int)steps[0], (int)steps[1]);
  free_model(&m);
}

/* ----------------------------------------------------------- differences */

typedef void (*difference)(model *m);

static void freeze_one(model *m) {
  lcomm_tensor_freeze(m->comm, m->tensors[2]);
  m->frozen[2] = true;
}

static void freeze_one_or_another(model *m) {
  int t = mpi_rank == 0 ? 2 : 1;
  lcomm_tensor_freeze(m->comm, m->tensors[t]);
  m->frozen[t] = true;
}

static void freeze_on_the_last_rank(model *m) {
  if (mpi_rank == mpi_size - 1) {
    freeze_one(m);
  }
}

static void freeze_on_the_first_rank(model *m) {
  if (mpi_rank == 0) {
    freeze_one(m);
  }
}

static void check_difference(difference make, const char *policy) {
  model m;
  char text[1024] = "";
  make_model(&m, policy, mpi_size < 3 ? 1 : 2, LCOMM_SUM);
  fill_model(&m, 0);
  require_fine(&m, step_model(&m));
  MPI_Barrier(MPI_COMM_WORLD); /* all have this step behind them */
  make(&m);
  fill_model(&m, 1);
  for (int t = 0; t < TENSORS; t++) {
    if (!m.frozen[t]) {
      (void)lcomm_tensor_ready(m.comm, m.tensors[t]); /* others may have told their fault */
    }
  }
  lcomm_status status = lcomm_tensors_wait(m.comm);
  require(status == LCOMM_ERR_MISMATCH, "%s: %s", lcomm_status_name(status),
          lcomm_last_error(m.comm));
  require(strstr(lcomm_last_error(m.comm), "tensor") != NULL, "%s", lcomm_last_error(m.comm));
  snprintf(text, sizeof(text), "%s", lcomm_last_error(m.comm));
  /* each rank says who it is before the sentence, or who told it */
  const char *what = strstr(text, "tensor number");
  what = what ? what : strstr(text, "ranks call");
  what = what ? what : strstr(text, " #");
  require(what && same_everywhere(what, strlen(what) + 1), "the ranks say different things: %s",
          text);
  lcomm_destroy(m.comm);
  m.comm = NULL;
  free_model(&m);
}

static void ranks_that_differ_say_so_in_one_sentence(void) {
  static const difference all[] = {freeze_one_or_another, freeze_on_the_last_rank,
                                   freeze_on_the_first_rank};
  for (int i = 0; i < 3; i++) {
    check_difference(all[i], "net=none");
    check_difference(all[i], "net=topk:0.1+ef min=1");
  }
}

static void mistakes_are_refused_and_harmless(void) {
  model m;
  lcomm_tensor *tensor = NULL;
  make_model(&m, "net=int8+ef min=1", 1, LCOMM_SUM);
  fill_model(&m, 0);
  require_fine(&m, step_model(&m));
  freeze_one(&m);
  fill_model(&m, 1);
  require(lcomm_tensor_ready(m.comm, m.tensors[2]) == LCOMM_ERR_STATE &&
              strstr(lcomm_last_error(m.comm), "frozen"),
          "a frozen tensor was ready: %s", lcomm_last_error(m.comm));
  require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[0]));
  require(lcomm_tensor_freeze(m.comm, m.tensors[1]) == LCOMM_ERR_STATE, "frozen during a step");
  require(lcomm_tensor_unfreeze(m.comm, m.tensors[2]) == LCOMM_ERR_STATE, "during a step");
  require(lcomm_tensor_add(m.comm, "late", m.data[0], 5, LCOMM_FLOAT32, LCOMM_SUM, &tensor) ==
              LCOMM_ERR_STATE,
          "added during a step");
  require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[1]));
  require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[3]));
  require_fine(&m, lcomm_tensors_wait(m.comm));
  require(lcomm_tensor_freeze(NULL, m.tensors[1]) == LCOMM_ERR_ARGUMENT, "no communicator");
  require(lcomm_tensor_unfreeze(m.comm, NULL) == LCOMM_ERR_ARGUMENT, "no tensor");
  lcomm_comm *other = make_comm("net=none", 1);
  require(lcomm_tensor_freeze(other, m.tensors[1]) == LCOMM_ERR_ARGUMENT, "another's tensor");
  lcomm_destroy(other);
  free_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(no_mass_is_lost_when_tensors_are_frozen),
    PROPERTY(no_mass_is_lost_when_tensors_are_added),
    PROPERTY(frozen_tensors_wait_and_others_go_on_bit_for_bit),
    PROPERTY(momentum_of_exact_steps_is_kept),
    PROPERTY(changes_that_are_taken_back_are_none),
    PROPERTY_OF(2, ranks_that_differ_say_so_in_one_sentence),
    PROPERTY(mistakes_are_refused_and_harmless),
};
RUN_PROPERTIES(mpi_property_main, properties)
