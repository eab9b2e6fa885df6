/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Low rank (net=lowrank:RANK): what arrives, against PowerSGD in the plainest way; what stays; what
 * goes another way; what is refused. */

#include "kernels/lowrank.h"
#include "tests/tensor/lowrank_model.h"

enum { RANK = 4, STEPS = 50, FACTOR = 200 * RANK };

/* ------------------------------------------------------------------ results */

static void all_ranks_receive_the_same_bits(void) {
  static const char *const policies[] = {
      "net=lowrank:4 min=1", "net=lowrank:1 min=1 bucket=8K", "net=lowrank:4,values=int8 min=1",
      "net=lowrank:2,values=bf16 min=1 clip=1:global", "net=lowrank:3 min=1 algo=ring node=bf16"};
  static model m;
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    for (int nodes = 1; nodes <= mpi_size; nodes++) {
      open_model(&m, policies[i], nodes, i % 2 ? LCOMM_SUM : LCOMM_AVG);
      for (int step = 0; step < 5; step++) {
        step_model(&m, step);
        require_same_bits(&m, step);
      }
      close_model(&m);
    }
  }
}

/* PowerSGD of one matrix in float64, as rank `mpi_rank` sees it. */
typedef struct reference {
  double m[LARGEST], p[FACTOR], q[FACTOR], result[LARGEST];
} reference;

static void orthonormalise(double *vectors, uint64_t n) {
  for (int k = 0; k < RANK; k++) {
    double *own = vectors + (uint64_t)k * n, length = 0;
    for (int other = 0; other < k; other++) {
      const double *before = vectors + (uint64_t)other * n;
      double part = 0;
      for (uint64_t i = 0; i < n; i++) {
        part += own[i] * before[i];
      }
      for (uint64_t i = 0; i < n; i++) {
        own[i] -= part * before[i];
      }
    }
    for (uint64_t i = 0; i < n; i++) {
      length += own[i] * own[i];
    }
    for (uint64_t i = 0; i < n; i++) {
      own[i] /= sqrt(length);
    }
  }
}

static void start_reference(reference *it, int t) {
  float q[FACTOR];
  memset(it, 0, sizeof *it);
  lcomm_lowrank_start(q, shapes[t].columns, RANK, 0);
  for (uint64_t i = 0; i < RANK * shapes[t].columns; i++) {
    it->q[i] = (double)q[i];
  }
}

/* A product and its sum over the ranks: P = M Q, or Q = M' P. */
static void multiply(reference *it, int t, const double *by, double *product) {
  uint64_t rows = shapes[t].rows, columns = shapes[t].columns;
  uint64_t stride = product == it->p ? rows : columns, inner = product == it->p ? columns : rows;
  memset(product, 0, RANK * stride * sizeof *product);
  for (uint64_t k = 0; k < RANK; k++) {
    for (uint64_t i = 0; i < rows; i++) {
      for (uint64_t j = 0; j < columns; j++) {
        uint64_t at = product == it->p ? i : j, from = product == it->p ? j : i;
        product[k * stride + at] += it->m[i * columns + j] * by[k * inner + from];
      }
    }
  }
  sum_everywhere(product, RANK * stride);
}

static void step_reference(reference *it, int t, const float *gradient, lcomm_op op) {
  uint64_t rows = shapes[t].rows, columns = shapes[t].columns;
  double average = 1.0 / mpi_size, units = op == LCOMM_AVG ? average : 1;
  for (uint64_t i = 0; i < rows * columns; i++) {
    it->m[i] += (double)gradient[i];
  }
  multiply(it, t, it->q, it->p);
  orthonormalise(it->p, rows);
  multiply(it, t, it->p, it->q);
  for (uint64_t i = 0; i < rows * columns; i++) {
    double sum = 0;
    for (uint64_t k = 0; k < RANK; k++) {
      sum += it->p[k * rows + i / columns] * it->q[k * columns + i % columns];
    }
    it->result[i] = units * sum;
    it->m[i] -= average * sum;
  }
}

static void results_are_those(const char *policy, lcomm_op op, int nodes) {
  static model m;
  static reference it[MATRICES];
  open_model(&m, policy, nodes, op);
  for (int t = 0; t < MATRICES; t++) {
    start_reference(&it[t], t);
  }
  for (int step = 0; step < STEPS; step++) {
    step_model(&m, step);
    for (int t = 0; t < MATRICES; t++) {
      static float own[LARGEST];
      step_reference(&it[t], t, m.gradient[t], op);
      double far = distance(m.data[t], it[t].result, size_of(t));
      require(far < 1e-5, "'%s', %d nodes, %s in step %d: an error of %g", policy, nodes,
              shapes[t].name, step, far);
      require_fine(m.comm, lcomm_tensor_residual(m.comm, m.tensors[t], own));
      far = distance(own, it[t].m, size_of(t));
      require(far < 1e-5, "%s in step %d: a residual wrong by %g", shapes[t].name, step, far);
    }
  }
  close_model(&m);
}

static void results_are_those_of_powersgd(void) {
  for (int nodes = 2; nodes <= mpi_size; nodes++) {
    results_are_those("net=lowrank:4 min=1", LCOMM_AVG, nodes);
    results_are_those("net=lowrank:4+ef min=1 bucket=8K undo=on", LCOMM_SUM, nodes);
  }
}

static void loses_nothing(const char *policy, lcomm_op op, int nodes) {
  static model m;
  static double before[MATRICES][LARGEST], after[LARGEST], sum[LARGEST];
  double units = op == LCOMM_AVG ? mpi_size : 1.0;
  memset(before, 0, sizeof before);
  open_model(&m, policy, nodes, op);
  for (int step = 0; step < STEPS; step++) {
    step_model(&m, step);
    for (int t = 0; t < MATRICES; t++) {
      sum_of_ranks(m.gradient[t], size_of(t), 1 / units, sum);
      sum_residuals(&m, t, after);
      for (uint64_t i = 0; i < size_of(t); i++) {
        sum[i] += (before[t][i] - after[i]) / units;
      }
      double far = distance(m.data[t], sum, size_of(t));
      require(far < 2e-5, "'%s', %d nodes, %s in step %d: %g is lost", policy, nodes,
              shapes[t].name, step, far);
      memcpy(before[t], after, sizeof after);
    }
  }
  close_model(&m);
}

static void what_a_step_leaves_out_is_in_the_residuals(void) {
  static const char *const policies[] = {
      "net=lowrank:2 min=1", "net=lowrank:4,values=int8 min=1 bucket=8K",
      "net=lowrank:1,values=bf16 min=1 warmup=3 guard=10,report undo=on"};
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    for (int nodes = 1; nodes <= mpi_size; nodes++) {
      loses_nothing(policies[i], i % 2 ? LCOMM_AVG : LCOMM_SUM, nodes);
    }
  }
}

/* ------------------------------------------------------------- what is exact */

static void expect_exact(const model *m, int t, int step) {
  static double sum[LARGEST];
  sum_of_ranks(m->gradient[t], size_of(t), 1.0 / mpi_size, sum);
  double far = distance(m->data[t], sum, size_of(t));
  require(far < 1e-6, "%s is not exact in step %d: %g", shapes[t].name, step, far);
}

static void only_matrices_that_gain_are_compressed(void) {
  static model m;
  char text[64];
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    open_model(&m, "net=lowrank:4,values=int8 min=1", nodes, LCOMM_AVG);
    for (int t = 0; t < TENSORS; t++) {
      require_fine(m.comm,
                   lcomm_tensor_codec(m.comm, m.tensors[t], LCOMM_LINK_NET, text, sizeof text));
      const char *wanted = t < MATRICES ? "lowrank:4,values=int8" : "none";
      require(strcmp(text, wanted) == 0, "%s: %s", shapes[t].name, text);
    }
    for (int step = 0; step < 4; step++) {
      step_model(&m, step);
      for (int t = nodes > 1 ? MATRICES : 0; t < TENSORS; t++) {
        expect_exact(&m, t, step);
      }
    }
    close_model(&m);
  }
}

/* 20 x 40: 2 * 7 * 60 = 840 > 800, 2 * 6 * 60 = 720. */
static void shapes_that_do_not_gain_stay_exact(void) {
  static const struct {
    const char *policy, *codec;
  } cases[] = {{"net=lowrank:6 min=1", "lowrank:6"},
               {"net=lowrank:7 min=1", "none"},
               {"net=lowrank:6", "none"},
               {"net[w]=lowrank:6", "lowrank:6"},
               {"net=lowrank:6 min=1 exempt=w", "none"},
               {"net[w]=int8 net=lowrank:6", "int8"}};
  static float data[800];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[64];
    lcomm_tensor *tensor = NULL;
    lcomm_comm *comm = make_comm(cases[i].policy, two_nodes());
    require_fine(
        comm, lcomm_tensor_add_shaped(comm, "w", data, 20, 40, LCOMM_FLOAT32, LCOMM_SUM, &tensor));
    require_fine(comm, lcomm_tensor_codec(comm, tensor, LCOMM_LINK_NET, text, sizeof text));
    require(strcmp(text, cases[i].codec) == 0, "'%s': %s", cases[i].policy, text);
    require_fine(NULL, lcomm_destroy(comm));
  }
}

static void steps_of_the_warm_up_have_the_bits_of_exact_ones(void) {
  static model m, exact;
  open_model(&m, "net=lowrank:4 min=1 warmup=3", two_nodes(), LCOMM_AVG);
  open_model(&exact, "min=1", two_nodes(), LCOMM_AVG);
  for (int step = 0; step < 5; step++) {
    step_model(&m, step);
    step_model(&exact, step);
    bool same = memcmp(m.data, exact.data, sizeof m.data) == 0;
    require(same == (step < 3 || mpi_size == 1), "step %d: %d", step, same);
  }
  close_model(&m);
  close_model(&exact);
}

/* Factors of 4 * (96 + 64) values are 9.6 times fewer than 96 * 64. */
static void fewer_bytes_travel_between_nodes(void) {
  lcomm_tensor *tensor = NULL;
  lcomm_stats stats;
  static float data[96 * 64];
  lcomm_comm *comm = make_comm("net=lowrank:4 min=1", two_nodes());
  require_fine(comm,
               lcomm_tensor_add_shaped(comm, "w", data, 96, 64, LCOMM_FLOAT32, LCOMM_AVG, &tensor));
  for (int step = 0; step < 3; step++) {
    fill_gradient(data, 96 * 64, (uint64_t)(1 + step + 1000 * mpi_rank));
    require_fine(comm, lcomm_tensor_ready(comm, tensor));
    require_fine(comm, lcomm_tensors_wait(comm));
  }
  require_fine(comm, lcomm_stats_get(comm, &stats));
  bool sends = stats.sent_bytes[LCOMM_LINK_NET] > 0;
  double ratio =
      (double)stats.exact_bytes[LCOMM_LINK_NET] / (double)stats.sent_bytes[LCOMM_LINK_NET];
  require(!sends || (ratio > 8 && ratio < 11), "%g times fewer bytes", ratio);
  require_fine(NULL, lcomm_destroy(comm));
}

/* ---------------------------------------------------------------- trouble */

static void what_is_not_finite_stays_in_its_step(void) {
  static model m;
  static double kept[LARGEST], before[LARGEST], sum[LARGEST];
  static const float bad[] = {NAN, INFINITY, -INFINITY};
  for (int nodes = 2; nodes <= mpi_size; nodes++) {
    open_model(&m, "net=lowrank:4 min=1", nodes, LCOMM_AVG);
    for (int step = 0; step < 9; step++) {
      bool spoilt = step % 3 == 1;
      sum_residuals(&m, 0, before);
      fill_model(&m, step);
      if (spoilt && mpi_rank == mpi_size - 1) {
        m.gradient[0][77] = bad[step / 3];
      }
      send_model(&m);
      require_same_bits(&m, step);
      uint64_t wanted = spoilt ? size_of(0) : 0;
      require(lcomm_tensors_not_finite(m.comm) == wanted, "step %d: %d are not finite", step,
              (int)lcomm_tensors_not_finite(m.comm));
      m.gradient[0][77] = isfinite(m.gradient[0][77]) ? m.gradient[0][77] : 0;
      sum_of_ranks(m.gradient[0], size_of(0), 1.0, sum);
      sum_residuals(&m, 0, kept);
      before[77] = kept[77] - sum[77]; /* what that rank had there is gone */
      for (uint64_t i = 0; i < size_of(0) && spoilt; i++) {
        double error = fabs(kept[i] - before[i] - sum[i]);
        require(error < 1e-4, "step %d: element %d is wrong by %g", step, (int)i, error);
      }
    }
    close_model(&m);
  }
}

static void gradients_of_zeros_do_no_harm(void) {
  static model m;
  static double sum[LARGEST];
  open_model(&m, "net=lowrank:4 min=1", two_nodes(), LCOMM_AVG);
  for (int step = 0; step < 3; step++) {
    memset(m.gradient, 0, sizeof m.gradient);
    send_model(&m);
    sum_of_ranks(m.data[0], size_of(0), 1, sum);
    require(distance(m.gradient[0], sum, size_of(0)) < 1e-9, "zeros have become something");
  }
  for (int step = 0; step < 20; step++) { /* of rank 1: all of it arrives */
    for (uint64_t i = 0; i < size_of(0); i++) {
      m.gradient[0][i] = (float)(i / 64 % 7) * (float)(i % 64 % 5);
    }
    send_model(&m);
    expect_exact(&m, 0, step < 2 ? 0 : step);
  }
  close_model(&m);
}

static void other_shapes_are_a_mismatch(void) {
  static float data[1200];
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = make_comm("net=lowrank:2 min=1", two_nodes());
  uint64_t rows = mpi_rank == 0 ? 30 : 40;
  require_fine(comm, lcomm_tensor_add_shaped(comm, "w", data, rows, 1200 / rows, LCOMM_FLOAT32,
                                             LCOMM_SUM, &tensor));
  require_fine(comm, lcomm_tensor_ready(comm, tensor));
  lcomm_status status = lcomm_tensors_wait(comm);
  if (mpi_size == 1) {
    require_fine(comm, status);
  } else {
    require_status_everywhere(comm, status, LCOMM_ERR_MISMATCH, "rows of");
  }
  (void)lcomm_destroy(comm);
}

static void what_is_no_matrix_is_refused(void) {
  static float data[4];
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = make_comm("net=lowrank:2 min=1", two_nodes());
  static const uint64_t wrong[][2] = {{0, 4}, {4, 0}, {UINT64_MAX / 2, 4}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    require_status_everywhere(comm,
                              lcomm_tensor_add_shaped(comm, "w", data, wrong[i][0], wrong[i][1],
                                                      LCOMM_FLOAT32, LCOMM_SUM, &tensor),
                              LCOMM_ERR_ARGUMENT, "are no matrix");
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(all_ranks_receive_the_same_bits),
    PROPERTY(results_are_those_of_powersgd),
    PROPERTY(what_a_step_leaves_out_is_in_the_residuals),
    PROPERTY(only_matrices_that_gain_are_compressed),
    PROPERTY(shapes_that_do_not_gain_stay_exact),
    PROPERTY(steps_of_the_warm_up_have_the_bits_of_exact_ones),
    PROPERTY(fewer_bytes_travel_between_nodes),
    PROPERTY(what_is_not_finite_stays_in_its_step),
    PROPERTY(gradients_of_zeros_do_no_harm),
    PROPERTY(other_shapes_are_a_mismatch),
    PROPERTY(what_is_no_matrix_is_refused),
};
RUN_PROPERTIES(mpi_property_main, properties)
