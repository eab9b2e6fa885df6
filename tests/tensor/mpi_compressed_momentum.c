/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Compressed momentum (adam=): what arrives in which step, against 1-bit Adam in the plainest way.
 */

#include <math.h>
#include <string.h>

#include "codecs/codec.h"
#include "libcomm/engine/entry.h"
#include "tests/support/require_fine.h"

enum { COUNT = 48 * 128, SMALL = 500, WARMUP = 3, STEPS = 9 };

static const float beta1 = 0.9f;

typedef struct model {
  lcomm_comm *comm;
  lcomm_tensor *tensor, *exempt;
  float data[COUNT], small[SMALL];
  float gradient[COUNT], small_gradient[SMALL];
} model;

static void begin_model(model *m, lcomm_comm *comm, lcomm_op op) {
  memset(m, 0, sizeof *m);
  m->comm = comm;
  require_fine(comm,
               lcomm_tensor_add(comm, "weight", m->data, COUNT, LCOMM_FLOAT32, op, &m->tensor));
  require_fine(comm,
               lcomm_tensor_add(comm, "bias", m->small, SMALL, LCOMM_FLOAT32, op, &m->exempt));
}

static void open_model(model *m, const char *policy, int nodes, lcomm_op op) {
  begin_model(m, make_comm(policy, nodes), op);
}

static void close_model(model *m) {
  require_fine(NULL, lcomm_destroy(m->comm));
}

static void send_model(model *m) {
  memcpy(m->data, m->gradient, sizeof(m->data));
  memcpy(m->small, m->small_gradient, sizeof(m->small));
  require_fine(m->comm, lcomm_tensor_ready(m->comm, m->tensor));
  require_fine(m->comm, lcomm_tensor_ready(m->comm, m->exempt));
  require_fine(m->comm, lcomm_tensors_wait(m->comm));
}

static void step_model(model *m, int step) {
  fill_gradient(m->gradient, COUNT, (uint64_t)(1 + 10 * step + 1000 * mpi_rank));
  fill_gradient(m->small_gradient, SMALL, (uint64_t)(2 + 10 * step + 1000 * mpi_rank));
  send_model(m);
}

static bool brings_momentum(model *m) {
  int is_momentum = -1;
  require_fine(m->comm, lcomm_tensors_momentum(m->comm, &is_momentum));
  return is_momentum == 1;
}

/* The sum over the ranks, times `factor`. */
static void sum_of_ranks(const float *values, int count, double factor, double *sum) {
  for (int i = 0; i < count; i++) {
    sum[i] = factor * (double)values[i];
  }
  sum_everywhere(sum, count);
}

/* m = beta1 * m + (1 - beta1) * gradient */
static void follow(double *m, const double *gradient, int count) {
  for (int i = 0; i < count; i++) {
    m[i] = (double)beta1 * m[i] + (1 - (double)beta1) * gradient[i];
  }
}

static double distance(const float *values, const double *wanted, int count) {
  double error = 0, norm = 1e-300;
  for (int i = 0; i < count; i++) {
    error += ((double)values[i] - wanted[i]) * ((double)values[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  return sqrt(error / norm);
}

/* ------------------------------------------------------------------ steps */

static void steps_of_the_warm_up_have_the_bits_of_exact_ones(void) {
  static model compressed, exact;
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    open_model(&compressed, "net=sign min=1 adam=onebit warmup=3", nodes, LCOMM_AVG);
    open_model(&exact, "min=1", nodes, LCOMM_AVG);
    require(!brings_momentum(&compressed), "there is momentum before the first step");
    for (int step = 0; step < WARMUP; step++) {
      step_model(&compressed, step);
      step_model(&exact, step);
      require(memcmp(compressed.data, exact.data, sizeof(exact.data)) == 0 &&
                  memcmp(compressed.small, exact.small, sizeof(exact.small)) == 0,
              "step %d on %d nodes is another one", step, nodes);
      require(!brings_momentum(&compressed) && !brings_momentum(&exact), "step %d", step);
    }
    close_model(&compressed);
    close_model(&exact);
  }
}

static void momentum_arrives_in_the_same_steps_on_all_ranks(void) {
  static const char wanted[] = "000110111101111111101";
  static model m;
  open_model(&m, "net=sign min=1 adam=onebit,refresh=2 warmup=3", two_nodes(), LCOMM_AVG);
  for (int step = 0; wanted[step]; step++) {
    step_model(&m, step);
    bool momentum = brings_momentum(&m);
    require(momentum == (wanted[step] == '1'), "step %d: %d", step, momentum);
    require(same_everywhere(&momentum, sizeof momentum), "ranks were told different things");
    require(same_everywhere(m.data, sizeof(m.data)) && same_everywhere(m.small, sizeof(m.small)),
            "step %d: other bits on some ranks", step);
  }
  close_model(&m);
}

/* Tensors below min= have no codec, and yet the momentum of all ranks. */
static void exact_tensors_bring_their_momentum(lcomm_op op, const char *policy) {
  static model m;
  double sum[SMALL], mean[SMALL] = {0};
  open_model(&m, policy, two_nodes(), op);
  for (int step = 0; step < STEPS; step++) {
    step_model(&m, step);
    sum_of_ranks(m.small_gradient, SMALL, op == LCOMM_AVG ? 1.0 / mpi_size : 1.0, sum);
    follow(mean, sum, SMALL);
    double error = distance(m.small, brings_momentum(&m) ? mean : sum, SMALL);
    require(error < 1e-5, "'%s', step %d: an error of %g", policy, step, error);
  }
  close_model(&m);
}

static void tensors_that_stay_exact_bring_momentum(void) {
  exact_tensors_bring_their_momentum(LCOMM_AVG, "net=sign min=4K adam=onebit warmup=3");
  exact_tensors_bring_their_momentum(LCOMM_SUM, "net=sign min=4K adam=onebit warmup=3");
  exact_tensors_bring_their_momentum(LCOMM_AVG, "net=sign min=4K adam=onebit,refresh=1 warmup=2");
}

/* ------------------------------------------------------------- 1-bit Adam */

/* What a worker sends: the signs and the mean magnitude of each block. */
static void compress(const float *values, float *sent) {
  enum { BLOCK = 128 };
  static uint8_t payload[COUNT];
  const lcomm_format format = {.codec = &lcomm_codec_sign, .block = BLOCK};
  lcomm_range all = lcomm_range_whole(COUNT);
  lcomm_encode(&format, &lcomm_kernels_scalar, values, all, 0, payload);
  lcomm_decode(&format, &lcomm_kernels_scalar, payload, all, 1.0f, sent);
}

/* One exchange of what all have compressed (algo=gather), of one rank on each node: each result is
 * the average of what workers have sent, given the momentum before. */
static void momentum_is_that_of_one_bit_adam(void) {
  static model m;
  static float mean[COUNT], error[COUNT], value[COUNT], sent[COUNT];
  static double wanted[COUNT];
  memset(mean, 0, sizeof mean);
  memset(error, 0, sizeof error);
  open_model(&m, "net=sign min=1 exempt=bias adam=onebit warmup=3 algo=gather", mpi_size,
             LCOMM_AVG);
  for (int step = 0; step < STEPS; step++) {
    step_model(&m, step);
    for (int i = 0; i < COUNT; i++) {
      value[i] = beta1 * mean[i] + (float)(1 - 0.9) * m.gradient[i] + error[i];
    }
    compress(value, sent);
    for (int i = 0; i < COUNT && step >= WARMUP && mpi_size > 1; i++) {
      error[i] = value[i] - sent[i];
    }
    sum_of_ranks(mpi_size > 1 ? sent : value, COUNT, 1.0 / mpi_size, wanted);
    double far = distance(m.data, wanted, COUNT);
    require(step < WARMUP || far < 1e-6, "step %d: an error of %g", step, far);
    for (int i = 0; i < COUNT; i++) {
      mean[i] = step < WARMUP ? beta1 * mean[i] + (float)(1 - 0.9) * m.data[i] : m.data[i];
    }
  }
  close_model(&m);
}

static void sum_residuals(model *m, double *sum) {
  static float own[COUNT];
  require_fine(m->comm, lcomm_tensor_residual(m->comm, m->tensor, own));
  sum_of_ranks(own, COUNT, 1.0, sum);
}

/* What workers and owners left out of the momentum is in their residuals, and nothing else. Where
 * net=auto chooses, bytes are what sums are predicted to spend most on. */
static void loses_nothing(const char *policy, int nodes, lcomm_op op) {
  static model m;
  static double mean[COUNT], gradient[COUNT], before[COUNT], after[COUNT];
  double units = op == LCOMM_AVG ? mpi_size : 1.0;
  memset(mean, 0, sizeof mean);
  memset(before, 0, sizeof before);
  open_model(&m, policy, nodes, op);
  m.comm->topo.cost[LCOMM_LINK_NET] =
      (lcomm_link_cost){.latency_us = 1, .message_us = 0.1, .bandwidth_gb_s = 0.001};
  for (int step = 0; step < STEPS; step++) {
    step_model(&m, step);
    sum_of_ranks(m.gradient, COUNT, 1.0 / units, gradient);
    follow(mean, gradient, COUNT);
    sum_residuals(&m, after);
    for (int i = 0; i < COUNT; i++) {
      gradient[i] = mean[i] + (before[i] - after[i]) / units;
      before[i] = after[i];
    }
    double far = distance(m.data, gradient, COUNT);
    require(!brings_momentum(&m) || far < 1e-5, "'%s', %d nodes, step %d: an error of %g", policy,
            nodes, step, far);
    for (int i = 0; i < COUNT && brings_momentum(&m); i++) {
      mean[i] = (double)m.data[i];
    }
  }
  double left = 0;
  for (int i = 0; i < COUNT; i++) {
    left += after[i] * after[i];
  }
  require(nodes == 1 || left > 0, "'%s', %d nodes: nothing was compressed", policy, nodes);
  close_model(&m);
}

static void what_momentum_loses_is_kept_on_both_sides(void) {
  static const char *const policies[] = {
      "net=sign min=1 adam=onebit warmup=3",
      "net=int2 min=1 adam=onebit,beta1=0.9 warmup=2",
      "net=int8+ef min=1 adam=onebit,refresh=2 warmup=1 algo=direct",
      "net=sign min=1 adam=onebit warmup=3 undo=on guard=1,report",
      "net=auto:sign min=1 adam=onebit warmup=3",
      "net=auto:int2 min=1 adam=onebit,refresh=1 warmup=2"};
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    for (int nodes = 1; nodes <= mpi_size; nodes++) {
      loses_nothing(policies[i], nodes, LCOMM_AVG);
      loses_nothing(policies[i], nodes, LCOMM_SUM);
    }
  }
}

/* ---------------------------------------------------------------- trouble */

static void what_is_not_finite_stays_in_its_step(void) {
  static model m;
  for (int bad = 1; bad <= 5; bad += 4) {
    open_model(&m, "net=sign min=1 adam=onebit warmup=3", two_nodes(), LCOMM_AVG);
    for (int step = 0; step < STEPS; step++) {
      fill_gradient(m.gradient, COUNT, (uint64_t)(1 + 10 * step + 1000 * mpi_rank));
      m.gradient[77] = step == bad ? INFINITY : m.gradient[77];
      send_model(&m);
      uint64_t found = lcomm_tensors_not_finite(m.comm);
      require((found > 0) == (step == bad), "step %d: %d are not finite", step, (int)found);
    }
    close_model(&m);
  }
}

static void another_momentum_is_refused_after_the_first_step(void) {
  static model m;
  double wide[4] = {0};
  lcomm_tensor *tensor = NULL;
  open_model(&m, "net=sign min=1 adam=onebit warmup=3", two_nodes(), LCOMM_AVG);
  require_status_everywhere(
      m.comm, lcomm_tensor_add(m.comm, "wide", wide, 4, LCOMM_FLOAT64, LCOMM_SUM, &tensor),
      LCOMM_ERR_ARGUMENT, "float64");
  step_model(&m, 0);
  static const char *const others[] = {"net=sign", "net=sign adam=onebit,beta1=0.5 warmup=3",
                                       "net=sign adam=onebit,refresh=4 warmup=3"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    require_status_everywhere(m.comm, lcomm_policy_set(m.comm, others[i]), LCOMM_ERR_STATE,
                              "adam= is another one");
  }
  require_fine(m.comm, lcomm_policy_set(m.comm, "net=int2 min=1 adam=onebit warmup=3"));
  step_model(&m, 1);
  close_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(steps_of_the_warm_up_have_the_bits_of_exact_ones),
    PROPERTY(momentum_arrives_in_the_same_steps_on_all_ranks),
    PROPERTY(tensors_that_stay_exact_bring_momentum),
    PROPERTY(momentum_is_that_of_one_bit_adam),
    PROPERTY(what_momentum_loses_is_kept_on_both_sides),
    PROPERTY(what_is_not_finite_stays_in_its_step),
    PROPERTY(another_momentum_is_refused_after_the_first_step),
};
RUN_PROPERTIES(mpi_property_main, properties)
