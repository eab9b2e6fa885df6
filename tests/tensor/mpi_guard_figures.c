/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* The figures of the guard against the whole comparison. */

#include "tests/tensor/guard_model.h"

typedef struct whole {
  double error, cosine, residual;
} whole;

static whole compare_all(const model *m, int t, const double *gradient, const double *residual) {
  double factor = m->op == LCOMM_AVG ? mpi_size : 1, gg = 0, rr = 0, gr = 0, apart = 0, late = 0;
  for (uint64_t i = 0; i < sizes[t]; i++) {
    double result = factor * (double)m->data[t][i];
    gg += gradient[i] * gradient[i];
    rr += result * result;
    gr += gradient[i] * result;
    apart += (result - gradient[i]) * (result - gradient[i]);
    late += residual[i] * residual[i];
  }
  return (whole){sqrt(apart / gg), gr / sqrt(gg * rr), sqrt(late / gg)};
}

static bool is_near(double found, double wanted) {
  return fabs(found - wanted) <= 0.1 * fabs(wanted);
}

static void expect_figures(const model *m, const char *policy, int step, const double *gradient,
                           int t) {
  static double residual[LARGEST];
  sum_residuals(m, t, residual);
  whole all = compare_all(m, t, gradient, residual);
  lcomm_guard_figures found = figures_of(m, t);
  require((int)found.step == step && found.samples > 0 && strcmp(found.tensor, names[t]) == 0,
          "%s, step %d: the last check was in %llu", policy, step, (unsigned long long)found.step);
  require(is_near(found.error, all.error) && is_near(found.cosine, all.cosine) &&
              is_near(found.residual, all.residual),
          "%s, step %d, %s: error %g instead of %g, cosine %g instead of %g, residual %g instead "
          "of %g",
          policy, step, names[t], found.error, all.error, found.cosine, all.cosine, found.residual,
          all.residual);
}

static void check_figures(const char *policy, int nodes, lcomm_op op) {
  static double gradient[TENSORS][LARGEST];
  model m;
  make_model(&m, policy, nodes, op);
  for (int step = 0; step < 4; step++) {
    fill_model(&m, step);
    for (int t = 0; t < TENSORS; t++) {
      sum_of(m.data[t], sizes[t], gradient[t]);
    }
    step_model(&m);
    for (int t = 0; t < TENSORS && step % 2 == 1; t++) {
      expect_figures(&m, policy, step, gradient[t], t);
    }
  }
  free_model(&m);
}

/* Of a sparse result the entries count that the sample meets: here some hundred at least. */
static void figures_agree_with_the_whole_comparison_within_a_tenth(void) {
  static const char *const policies[] = {
      "net=topk:0.1+ef guard=2",
      "net=topk:0.05 guard=2,limit=10 algo=direct",
      "net=int4 guard=2",
      "net=int8+ef guard=2 bucket=4M",
      "net=bf16 guard=2",
      "net=fp8e4m3:stochastic+ef guard=2",
      "net=topk:0.1,values=int8+ef+zstd guard=2 algo=direct scope=bucket",
  };
  use_sizes(LARGEST, LARGEST / 2);
  for (int nodes = 2; nodes <= most_nodes(); nodes += 2) {
    for (int i = 0; i < (int)(sizeof(policies) / sizeof(policies[0])); i++) {
      check_figures(policies[i], nodes, i % 2 ? LCOMM_SUM : LCOMM_AVG);
    }
  }
  use_sizes(200000, 100000);
}

/* At a density of 1 %, in one step: what is left is the residual. */
static void figures_of_long_sparse_tensors_agree_too(void) {
  double gg = 0, rr = 0, gr = 0, apart = 0, late = 0;
  float *data = malloc(LONG * sizeof(float));
  double *gradient = malloc(LONG * sizeof(double));
  lcomm_comm *comm = make_comm("net=topk:0.01+ef guard=1", 2 < mpi_size ? 2 : mpi_size);
  lcomm_tensor *tensor = NULL;
  lcomm_guard_figures found = {0};
  require(lcomm_tensor_add(comm, "long", data, LONG, LCOMM_FLOAT32, LCOMM_SUM, &tensor) == LCOMM_OK,
          "%s", lcomm_last_error(comm));
  fill_values(data, LONG, (uint64_t)mpi_rank + 1);
  sum_of(data, LONG, gradient);
  lcomm_tensor_ready(comm, tensor);
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  for (uint64_t i = 0; i < LONG; i++) {
    double result = (double)data[i], left = gradient[i] - result;
    gg += gradient[i] * gradient[i];
    rr += result * result;
    gr += gradient[i] * result;
    apart += left * left;
    late += left * left;
  }
  lcomm_tensor_guard(comm, tensor, &found);
  require(mpi_size < 2 || (is_near(found.error, sqrt(apart / gg)) &&
                           is_near(found.cosine, gr / sqrt(gg * rr)) &&
                           is_near(found.residual, sqrt(late / gg))),
          "error %g instead of %g, cosine %g instead of %g, residual %g instead of %g", found.error,
          sqrt(apart / gg), found.cosine, gr / sqrt(gg * rr), found.residual, sqrt(late / gg));
  require(lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_last_error(NULL));
  free(data);
  free(gradient);
}

/* With momentum correction what goes into a step is known by what comes out of it and by the
 * residuals: result + residual after - residual before. */
static void gradients_are_looked_at_with_their_momentum(void) {
  static double gradient[LARGEST], before[LARGEST], after[LARGEST];
  model m;
  use_sizes(LARGEST, LARGEST / 2);
  make_model(&m, "net=topk:0.1+ef momentum=0.9 guard=3", most_nodes(), LCOMM_SUM);
  for (int step = 0; step < 6; step++) {
    fill_model(&m, step);
    sum_residuals(&m, 0, before);
    step_model(&m);
    sum_residuals(&m, 0, after);
    for (uint64_t i = 0; i < sizes[0]; i++) {
      gradient[i] = (double)m.data[0][i] + after[i] - before[i];
    }
    if (step % 3 == 2 && most_nodes() > 1) {
      expect_figures(&m, "momentum", step, gradient, 0);
    }
  }
  free_model(&m);
  use_sizes(200000, 100000);
}

static const mpi_property properties[] = {
    PROPERTY(figures_agree_with_the_whole_comparison_within_a_tenth),
    PROPERTY(figures_of_long_sparse_tensors_agree_too),
    PROPERTY(gradients_are_looked_at_with_their_momentum),
};
RUN_PROPERTIES(mpi_property_main, properties)
