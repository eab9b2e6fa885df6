/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Calls with a residual among other calls: many at once, in both modes of progress. */

#include "tests/tensor/residuals.h"

enum { LAYERS = 4, PLAIN = 3000 };

static lcomm_comm *make_mode(const char *policy, int nodes, lcomm_progress_mode mode) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.nodes = nodes;
  config.progress = mode;
  config.timeout_s = 20;
  if (mode == LCOMM_PROGRESS_THREAD && mpi_threads < MPI_THREAD_MULTIPLE) {
    config.transport = "shm";
  }
  return make_comm_if_possible(&config);
}

/* ------------------------------------------------------------ many at once */

typedef struct crowd {
  lcomm_comm *comm;
  layer layers[LAYERS];
  lcomm_tensor *tensor;
  float data[PLAIN], plain[PLAIN];
  double data_sum[PLAIN], plain_sum[PLAIN];
  lcomm_request requests[LAYERS], all_reduce, barrier;
} crowd;

static const uint64_t counts[LAYERS] = {20000, 777, 5000, 5000};

static void fill_values(float *values, double *sum, int seed) {
  fill_gradient(values, PLAIN, (uint64_t)(seed + 1000 * mpi_rank));
  sum_over_ranks(values, PLAIN, sum);
}

/* Every third call of a residual flushes; the second layer is in place. */
static lcomm_status start_layer(crowd *c, int i, int step) {
  layer *l = &c->layers[i];
  const float *send = i == 1 ? l->result : l->gradient;
  memcpy(l->result, l->gradient, l->count * sizeof(float));
  return (step + i) % 3 == 2 ? lcomm_iallreduce_flush(l->residual, send, l->result, &c->requests[i])
                             : lcomm_iallreduce_ef(l->residual, send, l->result, &c->requests[i]);
}

/* The tensor is ready at another place between the calls on every rank. */
static void start_all(crowd *c, int step) {
  for (int i = 0; i < LAYERS; i++) {
    if (i == (mpi_rank + step) % LAYERS) {
      require_fine(c->comm, lcomm_tensor_ready(c->comm, c->tensor));
    }
    require_fine(c->comm, start_layer(c, i, step));
    if (i == 1) {
      require_fine(c->comm, lcomm_iallreduce(c->comm, c->plain, c->plain, PLAIN, LCOMM_FLOAT32,
                                             LCOMM_SUM, &c->all_reduce));
    }
    if (i == 2) {
      require_fine(c->comm, lcomm_ibarrier(c->comm, &c->barrier));
    }
  }
}

static void wait_for_all(crowd *c, int step) {
  lcomm_request *others[] = {&c->barrier, &c->all_reduce};
  for (int i = 0; i < LAYERS + 2; i++) {
    int k = (i * (step % 2 ? 5 : 1) + mpi_rank) % (LAYERS + 2); /* in another order on each rank */
    require_fine(c->comm, lcomm_wait(c->comm, k < LAYERS ? &c->requests[k] : others[k - LAYERS]));
  }
  require_fine(c->comm, lcomm_tensors_wait(c->comm));
}

static void check_exact(const float *values, const double *sum, const char *what) {
  for (int i = 0; i < PLAIN; i++) {
    require(fabs((double)values[i] - sum[i]) <= 1e-6 * (1e-2 + fabs(sum[i])),
            "%s: element %d is %g, not %g", what, i, (double)values[i], sum[i]);
  }
}

static void step_crowd(crowd *c, const char *policy, int step) {
  for (int i = 0; i < LAYERS; i++) {
    fill_layer(&c->layers[i], 10 * step + i);
  }
  fill_values(c->data, c->data_sum, 10 * step + 8);
  fill_values(c->plain, c->plain_sum, 10 * step + 9);
  start_all(c, step);
  wait_for_all(c, step);
  for (int i = 0; i < LAYERS; i++) {
    check_layer(&c->layers[i], policy, step);
    require((step + i) % 3 != 2 || owes_nothing(&c->layers[i]), "%s: a flush left something",
            policy);
  }
  check_exact(c->plain, c->plain_sum, "a plain call");
  check_exact(c->data, c->data_sum, "an exempt tensor");
}

static void run_crowd(const char *policy, int nodes, lcomm_progress_mode mode) {
  static crowd c;
  memset(&c, 0, sizeof(c));
  c.comm = make_mode(policy, nodes, mode);
  if (!c.comm) {
    return;
  }
  for (int i = 0; i < LAYERS; i++) {
    make_layer(&c.layers[i], c.comm, counts[i], i % 2 ? LCOMM_AVG : LCOMM_SUM);
  }
  require_fine(
      c.comm, lcomm_tensor_add(c.comm, "norm", c.data, PLAIN, LCOMM_FLOAT32, LCOMM_SUM, &c.tensor));
  uint64_t memory_bytes = 0;
  for (int step = 0; step < 8; step++) {
    lcomm_stats stats;
    step_crowd(&c, policy, step);
    lcomm_stats_get(c.comm, &stats);
    require(step < 4 || stats.memory_bytes == memory_bytes, "%s, step %d: memory grew", policy,
            step);
    memory_bytes = stats.memory_bytes;
  }
  require_fine(NULL, lcomm_destroy(c.comm));
  for (int i = 0; i < LAYERS; i++) {
    free_layer(&c.layers[i]);
  }
}

static void many_are_in_flight_among_plain_calls_and_tensors(void) {
  static const char *const policies[] = {"net=int8+ef min=1 exempt=*",
                                         "net=topk:0.02+ef min=4K exempt=*",
                                         "net=fp8e4m3:stochastic+ef min=1 algo=direct exempt=*"};
  for (int i = 0; i < 3; i++) {
    for (int mode = LCOMM_PROGRESS_CALLS; mode <= LCOMM_PROGRESS_THREAD; mode++) {
      run_crowd(policies[i], two_nodes(), (lcomm_progress_mode)mode);
      run_crowd(policies[i], mpi_size, (lcomm_progress_mode)mode);
    }
  }
}

/* -------------------------------------------------------------------- lives */

static void residuals_come_and_go(void) {
  lcomm_comm *comm = make_comm("net=topk:0.02+ef min=1", two_nodes());
  lcomm_stats before, after;
  lcomm_stats_get(comm, &before);
  for (int round = 0; round < 20; round++) {
    layer l[3];
    for (int i = 0; i < 3; i++) {
      make_layer(&l[i], comm, (uint64_t)(4000 * i * (1 + round % 2)), LCOMM_SUM); /* 0, too */
      fill_layer(&l[i], round);
      require_fine(comm, lcomm_allreduce_ef(l[i].residual, l[i].gradient, l[i].result));
      check_layer(&l[i], "a new residual", round);
      fill_layer(&l[i], round + 100);
      require_fine(comm, lcomm_allreduce_flush(l[i].residual, l[i].gradient, l[i].result));
      check_layer(&l[i], "a new residual, flushed", round);
    }
    for (int i = 0; i < 3; i++) { /* from the middle, the end and the beginning */
      require_fine(comm, lcomm_residual_destroy(l[(i + 1) % 3].residual));
      free_layer(&l[i]);
    }
  }
  lcomm_stats_get(comm, &after);
  require(after.memory_bytes == before.memory_bytes, "%lld bytes are left",
          (long long)(after.memory_bytes - before.memory_bytes));
  require_fine(NULL, lcomm_destroy(comm));
}

/* The program gives up with a call in flight. */
static void a_communicator_takes_its_residuals_with_it(void) {
  static lcomm_request request;
  layer l;
  lcomm_comm *comm = make_comm("net=int8+ef min=1", two_nodes());
  make_layer(&l, comm, 20000, LCOMM_SUM);
  for (int step = 0; step < 2; step++) {
    fill_layer(&l, step);
    require_fine(comm, lcomm_allreduce_ef(l.residual, l.gradient, l.result));
  }
  MPI_Barrier(MPI_COMM_WORLD); /* a rank that hears of the end can make no call */
  if (mpi_rank > 0 || mpi_size < 2) {
    require_fine(comm, lcomm_iallreduce_flush(l.residual, l.gradient, l.result, &request));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_abort(comm, "this is a test");
  require(lcomm_destroy(comm) == LCOMM_ERR_ABORTED, "it did not end as aborted");
  MPI_Barrier(MPI_COMM_WORLD);
  free_layer(&l);
}

static const mpi_property properties[] = {
    PROPERTY(many_are_in_flight_among_plain_calls_and_tensors),
    PROPERTY(residuals_come_and_go),
    PROPERTY(a_communicator_takes_its_residuals_with_it),
};
RUN_PROPERTIES(mpi_property_main_threads, properties)
