/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Saved states of compressed momentum (adam=): on other numbers of ranks, and under a policy of
 * another kind. */

#include <math.h>
#include <string.h>

#include "tests/support/require_fine.h"
#include "tests/tensor/saved_blocks.h"

enum { COUNT = 6000, SMALL = 500, STEPS = 6 };

typedef struct model {
  lcomm_comm *comm;
  lcomm_tensor *tensor, *exempt;
  float data[COUNT], small[SMALL];
} model;

static void open_model(model *m, lcomm_comm *comm, lcomm_op op) {
  memset(m, 0, sizeof *m);
  m->comm = comm;
  require_fine(comm,
               lcomm_tensor_add(comm, "weight", m->data, COUNT, LCOMM_FLOAT32, op, &m->tensor));
  require_fine(comm,
               lcomm_tensor_add(comm, "bias", m->small, SMALL, LCOMM_FLOAT32, op, &m->exempt));
}

static void step_model(model *m, int step) {
  fill_gradient(m->data, COUNT, (uint64_t)(1 + 10 * step + 1000 * mpi_rank));
  fill_gradient(m->small, SMALL, (uint64_t)(2 + 10 * step + 1000 * mpi_rank));
  require_fine(m->comm, lcomm_tensor_ready(m->comm, m->tensor));
  require_fine(m->comm, lcomm_tensor_ready(m->comm, m->exempt));
  require_fine(m->comm, lcomm_tensors_wait(m->comm));
}

static void sum_floats(MPI_Comm ranks, const float *values, int count, double *sum) {
  for (int i = 0; i < count; i++) {
    sum[i] = (double)values[i];
  }
  sum_over(ranks, sum, count);
}

static void sum_residuals(const model *m, MPI_Comm ranks, double *sum) {
  static float own[COUNT];
  require_fine(m->comm, lcomm_tensor_residual(m->comm, m->tensor, own));
  sum_floats(ranks, own, COUNT, sum);
}

static double distance(const float *values, const double *wanted, int count) {
  double error = 0, norm = 1e-300;
  for (int i = 0; i < count; i++) {
    error += ((double)values[i] - wanted[i]) * ((double)values[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  return sqrt(error / norm);
}

/* momentum, as the next step of these ranks brings it with nothing left out */
static void expect_next(model *m, MPI_Comm ranks, int step, const float *momentum,
                        const float *small_momentum, const double *before) {
  static double gradient[COUNT], after[COUNT], small[SMALL];
  static float sent[COUNT], small_sent[SMALL];
  fill_gradient(sent, COUNT, (uint64_t)(1 + 10 * step + 1000 * mpi_rank));
  fill_gradient(small_sent, SMALL, (uint64_t)(2 + 10 * step + 1000 * mpi_rank));
  sum_floats(ranks, sent, COUNT, gradient);
  sum_floats(ranks, small_sent, SMALL, small);
  step_model(m, step);
  sum_residuals(m, ranks, after);
  for (int i = 0; i < COUNT; i++) {
    gradient[i] = 0.9 * (double)momentum[i] + 0.1 * gradient[i] + before[i] - after[i];
  }
  for (int i = 0; i < SMALL; i++) {
    small[i] = 0.9 * (double)small_momentum[i] + 0.1 * small[i];
  }
  double far = distance(m->data, gradient, COUNT), small_far = distance(m->small, small, SMALL);
  require(far < 1e-5 && small_far < 1e-5, "step %d: errors of %g and %g", step, far, small_far);
}

/* Saved by all ranks on `nodes`, loaded by the first `ranks` of them on as many nodes. */
static void goes_on(const char *policy, int nodes, int count) {
  static model saved, loaded;
  static double before[COUNT];
  size_t size = 0;
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank < count ? 0 : MPI_UNDEFINED, mpi_rank, &ranks);
  open_model(&saved, make_comm(policy, nodes), LCOMM_SUM);
  for (int step = 0; step < STEPS; step++) {
    step_model(&saved, step);
  }
  sum_residuals(&saved, MPI_COMM_WORLD, before);
  uint8_t *blocks = write_blocks(saved.comm, &size);
  if (ranks != MPI_COMM_NULL) {
    int is_momentum = 0;
    open_model(&loaded, make_comm_over(ranks, policy, count), LCOMM_SUM);
    read_blocks(loaded.comm, blocks, size);
    expect_next(&loaded, ranks, STEPS, saved.data, saved.small, before);
    require_fine(loaded.comm, lcomm_tensors_momentum(loaded.comm, &is_momentum));
    require(is_momentum == 1, "the warm-up began anew");
    require_fine(NULL, lcomm_destroy(loaded.comm));
    MPI_Comm_free(&ranks);
  }
  free(blocks);
  require_fine(NULL, lcomm_destroy(saved.comm));
}

static void momentum_and_what_it_left_out_come_along(void) {
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    for (int count = 1; count <= mpi_size; count++) {
      goes_on("net=sign min=4K adam=onebit warmup=2", nodes, count);
      goes_on("net=int8+ef min=4K adam=onebit,refresh=2 warmup=1", nodes, count);
    }
  }
}

static void states_of_gradients_and_of_momentum_are_not_mixed(void) {
  static const char *const policies[] = {"net=sign min=1", "net=sign min=1 adam=onebit warmup=2"};
  static model saved, loaded;
  for (int i = 0; i < 2; i++) {
    size_t size = 0;
    open_model(&saved, make_comm(policies[i], two_nodes()), LCOMM_AVG);
    step_model(&saved, 0);
    uint8_t *blocks = write_blocks(saved.comm, &size);
    open_model(&loaded, make_comm(policies[1 - i], two_nodes()), LCOMM_AVG);
    require_status_everywhere(loaded.comm, lcomm_state_read(loaded.comm, blocks, size),
                              LCOMM_ERR_ARGUMENT, i ? "with adam=" : "without adam=");
    step_model(&loaded, 0);
    free(blocks);
    require_fine(NULL, lcomm_destroy(saved.comm));
    require_fine(NULL, lcomm_destroy(loaded.comm));
  }
}

static const mpi_property properties[] = {
    PROPERTY(momentum_and_what_it_left_out_come_along),
    PROPERTY(states_of_gradients_and_of_momentum_are_not_mixed),
};
RUN_PROPERTIES(mpi_property_main, properties)
