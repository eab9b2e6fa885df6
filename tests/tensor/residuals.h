/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_RESIDUALS_H
#define LCOMM_TESTS_TENSOR_RESIDUALS_H

/* What mpi_residual*.c work with: a buffer whose gradients go through a residual, and
 * its accounts in double precision. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/require_fine.h"

static inline void sum_over_ranks(const float *values, uint64_t count, double *sum) {
  for (uint64_t i = 0; i < count; i++) {
    sum[i] = values[i];
  }
  sum_everywhere(sum, count);
}

/* One layer's gradient. */
typedef struct layer {
  lcomm_comm *comm;
  lcomm_residual *residual;
  uint64_t count;
  lcomm_op op;
  float *gradient, *result, *held;
  double *carried, *sum, *after; /* over all ranks: before a call, in it, after it */
} layer;

static inline void make_layer(layer *l, lcomm_comm *comm, uint64_t count, lcomm_op op) {
  *l = (layer){.comm = comm, .count = count, .op = op};
  l->gradient = calloc(count + 1, sizeof(float));
  l->result = calloc(count + 1, sizeof(float));
  l->held = calloc(count + 1, sizeof(float));
  l->carried = calloc(count + 1, sizeof(double));
  l->sum = calloc(count + 1, sizeof(double));
  l->after = calloc(count + 1, sizeof(double));
  require_fine(comm, lcomm_residual_create(comm, count, op, &l->residual));
}

/* The residual lives on, until the communicator goes. */
static inline void free_layer(layer *l) {
  free(l->gradient);
  free(l->result);
  free(l->held);
  free(l->carried);
  free(l->sum);
  free(l->after);
}

static inline void fill_layer(layer *l, int seed) {
  fill_gradient(l->gradient, l->count, (uint64_t)(seed + 1000 * mpi_rank));
  sum_over_ranks(l->gradient, l->count, l->sum);
}

/* sum(gradient + residual before) == factor * result + sum(residual after), relative to
 * the norm of the left side; and the ranks agree. */
static inline void check_layer(layer *l, const char *what, int step) {
  double error = 0, norm = 1e-300, factor = l->op == LCOMM_AVG ? mpi_size : 1;
  require_fine(l->comm, lcomm_residual_get(l->residual, l->held));
  sum_over_ranks(l->held, l->count, l->after);
  for (uint64_t i = 0; i < l->count; i++) {
    double left = l->sum[i] + l->carried[i];
    double miss = left - (factor * (double)l->result[i] + l->after[i]);
    error += miss * miss;
    norm += left * left;
  }
  require(sqrt(error / norm) <= 1e-5, "%s, call %d of %llu elements: lost %g", what, step,
          (unsigned long long)l->count, sqrt(error / norm));
  require(same_everywhere(l->result, l->count * sizeof(float)), "%s, call %d: the ranks differ",
          what, step);
  memcpy(l->carried, l->after, l->count * sizeof(double));
}

static inline bool owes_nothing(const layer *l) {
  for (uint64_t i = 0; i < l->count; i++) {
    if (l->carried[i] != 0 || l->held[i] != 0) {
      return false;
    }
  }
  return true;
}

#endif
