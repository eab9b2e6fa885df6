/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_GUARD_MODEL_H
#define LCOMM_TESTS_TENSOR_GUARD_MODEL_H

/* Two tensors under a guard, and the gradients that they get. Included by one program each. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/element.h"
#include "tests/support/mpi_property.h"

enum { TENSORS = 2, LARGEST = 1600000, LONG = 6400000 };

static uint64_t sizes[TENSORS] = {200000, 100000};
static const char *const names[TENSORS] = {"conv.weight", "fc.weight"};

typedef struct model {
  lcomm_comm *comm;
  lcomm_op op;
  lcomm_tensor *tensors[TENSORS];
  float *data[TENSORS];
} model;

static inline void use_sizes(uint64_t first, uint64_t second) {
  sizes[0] = first;
  sizes[1] = second;
}

static inline void make_model(model *m, const char *policy, int nodes, lcomm_op op) {
  m->comm = make_comm(policy, nodes);
  m->op = op;
  for (int t = 0; t < TENSORS; t++) {
    m->data[t] = calloc(sizes[t], sizeof(float));
    require(lcomm_tensor_add(m->comm, names[t], m->data[t], sizes[t], LCOMM_FLOAT32, op,
                             &m->tensors[t]) == LCOMM_OK,
            "%s", lcomm_last_error(m->comm));
  }
}

static inline void free_model(model *m) {
  require(lcomm_destroy(m->comm) == LCOMM_OK, "%s", lcomm_last_error(NULL));
  for (int t = 0; t < TENSORS; t++) {
    free(m->data[t]);
  }
}

static inline int most_nodes(void) {
  return mpi_size < 2 ? 1 : mpi_size == 4 ? 4 : 2;
}

/* Mostly noise of each rank, and a part that all ranks have in every step. */
static inline void fill_values(float *values, uint64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) {
    double noise = (double)(int32_t)lcomm_random(seed, i) / 2147483648.0;
    double common = (double)(i * 7919 % 1000) / 500.0 - 1.0;
    values[i] = (float)(1e-3 * (noise * noise * noise + 0.2 * common));
  }
}

static inline void fill_model(model *m, int step) {
  for (int t = 0; t < TENSORS; t++) {
    fill_values(m->data[t], sizes[t], (uint64_t)(1 + t + 10 * step + 1000 * mpi_rank));
  }
}

static inline void step_model(model *m) {
  for (int t = 0; t < TENSORS; t++) {
    require(lcomm_tensor_ready(m->comm, m->tensors[t]) == LCOMM_OK, "%s",
            lcomm_last_error(m->comm));
  }
  require(lcomm_tensors_wait(m->comm) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
}

static inline lcomm_guard_figures figures_of(const model *m, int t) {
  lcomm_guard_figures figures = {0};
  require(lcomm_tensor_guard(m->comm, m->tensors[t], &figures) == LCOMM_OK, "%s",
          lcomm_last_error(m->comm));
  return figures;
}

/* Sum over the ranks, in double. Returns `sum`. */
static inline double *sum_of(const float *values, uint64_t count, double *sum) {
  for (uint64_t i = 0; i < count; i++) {
    sum[i] = (double)values[i];
  }
  sum_everywhere(sum, count);
  return sum;
}

static inline void sum_residuals(const model *m, int t, double *sum) {
  static float residual[LARGEST];
  require(lcomm_tensor_residual(m->comm, m->tensors[t], residual) == LCOMM_OK, "%s",
          lcomm_last_error(m->comm));
  sum_of(residual, sizes[t], sum);
}

static inline const char *codec_after(const model *m, int t) {
  static char text[LCOMM_GUARD_CODEC_MAX];
  snprintf(text, sizeof(text), "%s", figures_of(m, t).next);
  return text;
}

#endif
