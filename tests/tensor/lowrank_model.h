/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_LOWRANK_MODEL_H
#define LCOMM_TESTS_TENSOR_LOWRANK_MODEL_H

/* Matrices that travel by low rank, beside tensors that do not. */

#include <math.h>
#include <string.h>

#include "tests/support/require_fine.h"

enum { TENSORS = 4, MATRICES = 2, LARGEST = 48 * 200 };

static const struct shape {
  const char *name;
  uint64_t rows, columns; /* 1 row: it is added without a shape */
} shapes[TENSORS] = {{"first", 96, 64}, {"second", 48, 200}, {"bias", 1, 500}, {"norm", 1, 1000}};

typedef struct model {
  lcomm_comm *comm;
  lcomm_tensor *tensors[TENSORS];
  float data[TENSORS][LARGEST], gradient[TENSORS][LARGEST];
} model;

static inline uint64_t size_of(int t) {
  return shapes[t].rows * shapes[t].columns;
}

static inline void add_tensor(model *m, int t, lcomm_op op) {
  const struct shape *it = &shapes[t];
  lcomm_status status =
      t < MATRICES ? lcomm_tensor_add_shaped(m->comm, it->name, m->data[t], it->rows, it->columns,
                                             LCOMM_FLOAT32, op, &m->tensors[t])
                   : lcomm_tensor_add(m->comm, it->name, m->data[t], it->columns, LCOMM_FLOAT32, op,
                                      &m->tensors[t]);
  require_fine(m->comm, status);
}

static inline void begin_model(model *m, lcomm_comm *comm, lcomm_op op) {
  memset(m, 0, sizeof *m);
  m->comm = comm;
  for (int t = 0; t < TENSORS; t++) {
    add_tensor(m, (t + 2) % TENSORS, op); /* others before, and between */
  }
}

static inline void open_model(model *m, const char *policy, int nodes, lcomm_op op) {
  begin_model(m, make_comm(policy, nodes), op);
}

static inline void close_model(model *m) {
  require_fine(NULL, lcomm_destroy(m->comm));
}

/* Add a matrix of rank 1, in each step another one of its multiples. */
static inline void add_pattern(model *m, int t, int which, int step) {
  float row[LARGEST], weight[LARGEST], scale;
  fill_gradient(row, shapes[t].columns, (uint64_t)(7 + t + 100 * which));
  fill_gradient(weight, shapes[t].rows, (uint64_t)(9 + t + 100 * which));
  scale = (float)(40000 >> which) * (1 + 0.3f * sinf((float)(step * (which + 1))));
  for (uint64_t i = 0; i < size_of(t); i++) {
    m->gradient[t][i] += scale * weight[i / shapes[t].columns] * row[i % shapes[t].columns];
  }
}

/* A few patterns that stay, and noise that is another one on every rank. */
static inline void fill_model(model *m, int step) {
  for (int t = 0; t < TENSORS; t++) {
    fill_gradient(m->gradient[t], size_of(t), (uint64_t)(1 + t + 10 * step + 1000 * mpi_rank));
    for (int which = 0; which < 4; which++) {
      add_pattern(m, t, which, step);
    }
  }
}

/* In another order on every rank. */
static inline void send_model(model *m) {
  memcpy(m->data, m->gradient, sizeof(m->data));
  for (int i = 0; i < TENSORS; i++) {
    int t = (i + mpi_rank) % TENSORS;
    require_fine(m->comm, lcomm_tensor_ready(m->comm, m->tensors[t]));
    require_fine(m->comm, lcomm_progress(m->comm));
  }
  require_fine(m->comm, lcomm_tensors_wait(m->comm));
}

static inline void step_model(model *m, int step) {
  fill_model(m, step);
  send_model(m);
}

static inline void require_same_bits(const model *m, int step) {
  for (int t = 0; t < TENSORS; t++) {
    require(same_everywhere(m->data[t], size_of(t) * sizeof(float)),
            "step %d: other bits of %s on some ranks", step, shapes[t].name);
  }
}

/* The sum over the ranks, times `factor`. */
static inline void sum_of_ranks(const float *values, uint64_t count, double factor, double *sum) {
  for (uint64_t i = 0; i < count; i++) {
    sum[i] = factor * (double)values[i];
  }
  sum_everywhere(sum, count);
}

static inline void sum_residuals(const model *m, int t, double *sum) {
  static float own[LARGEST];
  require_fine(m->comm, lcomm_tensor_residual(m->comm, m->tensors[t], own));
  sum_of_ranks(own, size_of(t), 1.0, sum);
}

static inline double distance(const float *values, const double *wanted, uint64_t count) {
  double error = 0, norm = 1e-300;
  for (uint64_t i = 0; i < count; i++) {
    error += ((double)values[i] - wanted[i]) * ((double)values[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  return sqrt(error / norm);
}

#endif
