/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Calls with a residual: nothing is lost, and they do what a tensor does. */

#include "tests/tensor/residuals.h"

enum { COUNT = 9000 };

/* ------------------------------------------------------------- the accounts */

static const char *const policies[] = {
    "net=int8+ef min=1",
    "net=int8+ef min=1 algo=direct",
    "net=int4 min=1",
    "net=sign min=1",
    "net=int2:block=32+zstd min=1 algo=direct",
    "net=fp8e4m3+ef min=1",
    "net=fp8e5m2:block=32,stochastic+ef min=1 algo=direct",
    "net=topk:0.01+ef min=1",
    "net=topk:0.02,values=int8+ef+zstd min=1 algo=direct",
    "net=topk:k=90+ef min=1 warmup=2 ramp=0.25@2,0.05@1",
    "net=none",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* In place and out of place in turn. */
static void call_lasting(layer *l, int step) {
  static float kept[COUNT];
  const float *send = step % 2 ? l->result : l->gradient;
  memcpy(l->result, l->gradient, l->count * sizeof(float));
  memcpy(kept, l->gradient, l->count * sizeof(float));
  require_fine(l->comm, lcomm_allreduce_ef(l->residual, send, l->result));
  require(memcmp(kept, l->gradient, l->count * sizeof(float)) == 0, "what is sent was changed");
}

static void keep_accounts(const char *policy, int nodes, lcomm_op op) {
  layer l;
  lcomm_comm *comm = make_comm(policy, nodes);
  make_layer(&l, comm, COUNT, op);
  for (int step = 0; step < 20; step++) {
    fill_layer(&l, step);
    call_lasting(&l, step);
    check_layer(&l, policy, step);
  }
  require(nodes > 1 ? strstr(policy, "none") || !owes_nothing(&l) : owes_nothing(&l),
          "%s on %d nodes: this residual is not expected", policy, nodes);
  require_fine(NULL, lcomm_destroy(comm));
  free_layer(&l);
}

static void calls_with_a_residual_conserve_the_sum(void) {
  for (int nodes = 1; nodes <= mpi_size; nodes += nodes < 2 ? 1 : 2) {
    for (int i = 0; i < POLICIES; i++) {
      keep_accounts(policies[i], nodes, (i + nodes) % 2 ? LCOMM_SUM : LCOMM_AVG);
    }
  }
}

/* Every seventh call is a flush; what all calls gave is what all ranks put in. */
static void a_flush_pays_everything(void) {
  static double given[COUNT], total[COUNT];
  for (int p = 0; p < 2 * POLICIES; p++) {
    layer l;
    double error = 0, norm = 1e-300;
    lcomm_comm *comm = make_comm(policies[p % POLICIES], two_nodes());
    make_layer(&l, comm, COUNT, p < POLICIES ? LCOMM_SUM : LCOMM_AVG);
    memset(given, 0, sizeof(given));
    memset(total, 0, sizeof(total));
    for (int step = 0; step < 14; step++) {
      fill_layer(&l, step);
      if (step % 7 < 6) {
        call_lasting(&l, step);
      } else {
        memcpy(l.result, l.gradient, COUNT * sizeof(float));
        require_fine(comm,
                     lcomm_allreduce_flush(l.residual, step > 7 ? l.result : l.gradient, l.result));
      }
      check_layer(&l, policies[p % POLICIES], step);
      require(step % 7 < 6 || owes_nothing(&l), "call %d: something is left", step);
      for (int i = 0; i < COUNT; i++) {
        given[i] += (l.op == LCOMM_AVG ? mpi_size : 1) * (double)l.result[i];
        total[i] += l.sum[i];
      }
    }
    for (int i = 0; i < COUNT; i++) {
      error += (given[i] - total[i]) * (given[i] - total[i]);
      norm += total[i] * total[i];
    }
    require(sqrt(error / norm) <= 1e-6, "%s: lost %g", policies[p % POLICIES], sqrt(error / norm));
    require_fine(NULL, lcomm_destroy(comm));
    free_layer(&l);
  }
}

/* ---------------------------------------------------------- what tensors do */

/* With a name the residual does all that a tensor does. */
static void compare_with_tensor(const char *policy, int nodes, lcomm_op op, const char *name) {
  static float data[COUNT], residual[COUNT];
  lcomm_comm *comm = make_comm(policy, nodes);
  lcomm_tensor *tensor = NULL;
  layer l;
  make_layer(&l, comm, COUNT, op);
  if (name) {
    require_fine(comm, lcomm_residual_create_named(comm, name, COUNT, op, &l.residual));
  }
  require_fine(comm, lcomm_tensor_add(comm, "weight", data, COUNT, LCOMM_FLOAT32, op, &tensor));
  for (int step = 0; step < 7; step++) {
    fill_layer(&l, step);
    memcpy(data, l.gradient, sizeof(data));
    lcomm_tensor_ready(comm, tensor);
    call_lasting(&l, step);
    require_fine(comm, lcomm_tensors_wait(comm));
    require(memcmp(data, l.result, sizeof(data)) == 0, "%s, step %d: other bits", policy, step);
    lcomm_tensor_residual(comm, tensor, residual);
    require_fine(comm, lcomm_residual_get(l.residual, l.held));
    require(memcmp(residual, l.held, sizeof(residual)) == 0, "%s, step %d: another residual",
            policy, step);
  }
  require_fine(NULL, lcomm_destroy(comm));
  free_layer(&l);
}

/* Stochastic codecs round by the number of the operation, so they are left out. */
static void they_give_the_bits_of_a_tensor(void) {
  for (int i = 0; i < POLICIES; i++) {
    if (!strstr(policies[i], "stochastic")) {
      compare_with_tensor(policies[i], two_nodes(), i % 2 ? LCOMM_SUM : LCOMM_AVG, NULL);
      compare_with_tensor(policies[i], mpi_size, i % 2 ? LCOMM_AVG : LCOMM_SUM, NULL);
    }
  }
  compare_with_tensor("net=int8 min=1", two_nodes(), LCOMM_SUM, NULL);
  compare_with_tensor("net=int8+ef node=bf16 min=1", two_nodes(), LCOMM_SUM, NULL);
  compare_with_tensor("net=int8+ef min=1G", two_nodes(), LCOMM_SUM, NULL);
  compare_with_tensor("net=int8+ef min=1 match=op=max", two_nodes(), LCOMM_SUM, NULL);
}

static void those_with_a_name_follow_momentum_clip_and_exempt_as_tensors_do(void) {
  static const char *const named[] = {
      "net=topk:0.05+ef min=1 momentum=0.9 clip=0.01",
      "net=topk:0.05+ef min=1 momentum=0.5 warmup=3",
      "net=topk:k=90+ef min=1 momentum=0.9 warmup=2 ramp=0.25@2,0.05@1 clip=0.02",
      "net=topk:0.05+ef min=1 momentum=0.9 exempt=w* clip=0.001",
      "net=topk:0.05+ef min=1G momentum=0.9 clip=0.001",
      "net=int8+ef min=1 clip=0.005",
      "net=int8+ef min=1 exempt=*ght",
  };
  for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
    compare_with_tensor(named[i], two_nodes(), LCOMM_AVG, "weight");
    compare_with_tensor(named[i], mpi_size, LCOMM_SUM, "weight");
    compare_with_tensor(named[i], 1, LCOMM_AVG, "weight");
  }
}

/* Momentum and clipping replace what an optimiser does: not where a residual's meaning is a guess.
 */
static void momentum_and_clipping_do_not_act_without_a_name(void) {
  layer with, without;
  lcomm_comm *comm = make_comm("net=topk:0.05+ef min=1 momentum=0.9 clip=0.001", two_nodes());
  lcomm_comm *other = make_comm("net=topk:0.05+ef min=1", two_nodes());
  make_layer(&with, comm, COUNT, LCOMM_SUM);
  make_layer(&without, other, COUNT, LCOMM_SUM);
  for (int step = 0; step < 4; step++) {
    fill_layer(&with, step);
    fill_layer(&without, step);
    call_lasting(&with, step);
    call_lasting(&without, step);
    require(memcmp(with.result, without.result, COUNT * sizeof(float)) == 0, "they act");
  }
  require_fine(NULL, lcomm_destroy(comm));
  require_fine(NULL, lcomm_destroy(other));
  free_layer(&with);
  free_layer(&without);
}

/* A flush is none of the calls that the stages count. */
static void warm_up_counts_the_calls_of_each_residual(void) {
  static float exact[COUNT];
  layer first, late;
  lcomm_comm *comm = make_comm("net=topk:0.01+ef min=1 warmup=2", two_nodes());
  lcomm_comm *plain = make_comm("net=none", two_nodes());
  make_layer(&first, comm, COUNT, LCOMM_SUM);
  for (int step = 0; step < 8; step++) {
    bool flushes = step == 1, second = step >= 4;
    layer *l = second ? &late : &first;
    if (step == 4) {
      make_layer(&late, comm, COUNT, LCOMM_SUM);
    }
    fill_layer(l, step);
    require_fine(plain,
                 lcomm_allreduce(plain, l->gradient, exact, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
    require_fine(comm, flushes ? lcomm_allreduce_flush(l->residual, l->gradient, l->result)
                               : lcomm_allreduce_ef(l->residual, l->gradient, l->result));
    bool same = memcmp(exact, l->result, sizeof(exact)) == 0;
    require(same == (mpi_size < 2 || (second ? step < 6 : step < 3)), "call %d is %s", step,
            same ? "exact" : "not exact");
  }
  require_fine(NULL, lcomm_destroy(comm));
  require_fine(NULL, lcomm_destroy(plain));
  free_layer(&first);
  free_layer(&late);
}

/* ------------------------------------------------------------------ training */

/* What became of 50 steps: how far the weights are from where they should be, and how
 * much of all gradients was never applied, both relative. */
typedef struct outcome {
  double away, lost;
} outcome;

static double relative(const double *is, const double *wanted) {
  double error = 0, norm = 1e-300;
  for (int i = 0; i < COUNT; i++) {
    error += (is[i] - wanted[i]) * (is[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  return sqrt(error / norm);
}

static lcomm_status average(layer *l, int step, bool with_residual) {
  if (!with_residual) {
    return lcomm_allreduce(l->comm, l->gradient, l->result, COUNT, LCOMM_FLOAT32, LCOMM_AVG);
  }
  return step < 49 ? lcomm_allreduce_ef(l->residual, l->gradient, l->result)
                   : lcomm_allreduce_flush(l->residual, l->gradient, l->result);
}

/* Each rank pulls the weights towards a point of its own; all together they come to the
 * mean. The last step flushes. */
static outcome train(const char *policy, bool with_residual) {
  static float weights[COUNT], target[COUNT];
  static double mean[COUNT], reached[COUNT], applied[COUNT], all[COUNT];
  layer l;
  make_layer(&l, make_comm(policy, two_nodes()), COUNT, LCOMM_AVG);
  fill_gradient(target, COUNT, (uint64_t)(77 + mpi_rank));
  sum_over_ranks(target, COUNT, mean);
  memset(weights, 0, sizeof(weights));
  memset(applied, 0, sizeof(applied));
  memset(all, 0, sizeof(all));
  for (int step = 0; step < 50; step++) {
    for (int i = 0; i < COUNT; i++) {
      l.gradient[i] = 0.05f * (weights[i] - target[i]);
    }
    sum_over_ranks(l.gradient, COUNT, l.sum);
    require_fine(l.comm, average(&l, step, with_residual));
    for (int i = 0; i < COUNT; i++) {
      weights[i] -= l.result[i];
      applied[i] += (double)l.result[i];
      all[i] += l.sum[i] / mpi_size;
    }
  }
  for (int i = 0; i < COUNT; i++) {
    mean[i] /= mpi_size;
    reached[i] = weights[i];
  }
  require_fine(NULL, lcomm_destroy(l.comm));
  free_layer(&l);
  return (outcome){relative(reached, mean), relative(applied, all)};
}

static void training_needs_the_residual(void) {
  outcome exact = train("net=none", false);
  outcome with = train("net=topk:0.05+ef min=1", true);
  outcome without = train("net=topk:0.05 min=1", false);
  require(exact.lost < 1e-5 && with.lost < 1e-5, "lost %g, with a residual %g", exact.lost,
          with.lost);
  require(without.lost > 0.1, "without a residual lost %g", without.lost);
  require(with.away < 2 * exact.away && without.away > 2 * with.away,
          "exact %g, with %g, without %g", exact.away, with.away, without.away);
}

static const mpi_property properties[] = {
    PROPERTY(calls_with_a_residual_conserve_the_sum),
    PROPERTY(a_flush_pays_everything),
    PROPERTY(they_give_the_bits_of_a_tensor),
    PROPERTY(those_with_a_name_follow_momentum_clip_and_exempt_as_tensors_do),
    PROPERTY(momentum_and_clipping_do_not_act_without_a_name),
    PROPERTY(warm_up_counts_the_calls_of_each_residual),
    PROPERTY_OF(2, training_needs_the_residual),
};
RUN_PROPERTIES(mpi_property_main, properties)
