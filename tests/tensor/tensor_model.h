/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_TENSOR_MODEL_H
#define LCOMM_TESTS_TENSOR_TENSOR_MODEL_H

/* A small model of tensors in float32, and what error feedback owes of each. Included by one
 * program each, which says how large the tensors are and how they are called. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/mpi_property.h"

enum { TENSORS = 4, LARGEST = 30000 };

static const uint64_t sizes[TENSORS]; /* at most LARGEST each */
static const char *const names[TENSORS];

typedef struct model {
  lcomm_comm *comm;
  lcomm_tensor *tensors[TENSORS];
  float *data[TENSORS];
  bool frozen[TENSORS];
  int count; /* tensors, from the first */
} model;

static inline void require_fine(const model *m, lcomm_status status) {
  require(status == LCOMM_OK, "%s", lcomm_last_error(m->comm));
}

static inline void begin_model(model *m, const char *policy, int nodes) {
  memset(m, 0, sizeof *m);
  m->comm = make_comm(policy, nodes);
}

static inline void add_one(model *m, int t, lcomm_op op) {
  m->data[t] = calloc(sizes[t], sizeof(float));
  require_fine(m, lcomm_tensor_add(m->comm, names[t], m->data[t], sizes[t], LCOMM_FLOAT32, op,
                                   &m->tensors[t]));
}

static inline void add_tensor(model *m, int t, lcomm_op op) {
  add_one(m, t, op);
  m->count = t + 1;
}

static inline void make_model(model *m, const char *policy, int nodes, lcomm_op op) {
  begin_model(m, policy, nodes);
  for (int t = 0; t < TENSORS; t++) {
    add_tensor(m, t, op);
  }
}

static inline void free_model(model *m) {
  require(!m->comm || lcomm_destroy(m->comm) == LCOMM_OK, "destroy");
  for (int t = 0; t < TENSORS; t++) {
    free(m->data[t]);
  }
}

static inline uint64_t seed_of(int t, int step) {
  return (uint64_t)(1 + t + 10 * step + 1000 * mpi_rank);
}

static inline void fill_model(model *m, int step) {
  for (int t = 0; t < m->count; t++) {
    fill_gradient(m->data[t], sizes[t], seed_of(t, step));
  }
}

/* In another order on every rank. */
static inline lcomm_status step_model(model *m) {
  for (int i = 0; i < m->count; i++) {
    int t = (i + mpi_rank) % m->count;
    if (!m->frozen[t]) {
      require_fine(m, lcomm_tensor_ready(m->comm, m->tensors[t]));
      lcomm_progress(m->comm);
    }
  }
  return lcomm_tensors_wait(m->comm);
}

/* Over the ranks, in double. */
static inline void sum_values(const float *values, int t, double *sum) {
  for (uint64_t i = 0; i < sizes[t]; i++) {
    sum[i] = values[i];
  }
  sum_everywhere(sum, sizes[t]);
}

static inline void sum_data(const model *m, int t, double *sum) {
  sum_values(m->data[t], t, sum);
}

static inline void sum_residuals(const model *m, int t, double *sum) {
  static float residual[LARGEST];
  require_fine(m, lcomm_tensor_residual(m->comm, m->tensors[t], residual));
  sum_values(residual, t, sum);
}

/* What was lost of a tensor in a step, relative to the norm of what came in: the sums over the
 * ranks of gradient and residual before, less `factor` times the data and the residual after.
 * `before` becomes that. */
static inline double lost_of_step(const model *m, int t, const double *gradient, double factor,
                                  double *before) {
  static double after[LARGEST];
  double error = 0, norm = 1e-300;
  sum_residuals(m, t, after);
  for (uint64_t i = 0; i < sizes[t]; i++) {
    double came = gradient[i] + before[i];
    double miss = came - (factor * (double)m->data[t][i] + after[i]);
    error += miss * miss;
    norm += came * came;
  }
  memcpy(before, after, sizes[t] * sizeof(double));
  return sqrt(error / norm);
}

/* A step of two models with the same gradients: not one bit differs. */
static inline void require_same_step(model *m, model *twin, int step) {
  fill_model(m, step);
  fill_model(twin, step);
  require_fine(m, step_model(m));
  require_fine(twin, step_model(twin));
  for (int t = 0; t < m->count; t++) {
    require(memcmp(m->data[t], twin->data[t], sizes[t] * sizeof(float)) == 0,
            "step %d: tensor %d differs", step, t);
  }
}

#endif
