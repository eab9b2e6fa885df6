/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SHARDS_ACCOUNTS_H
#define LCOMM_TESTS_SHARDS_ACCOUNTS_H

/* Accounts of a model whose sums do not wait for all ranks. Included by one program each. */

#include <stdio.h>

#include "tests/tensor/tensor_model.h"

static const uint64_t sizes[TENSORS] = {30000, 1, 1000, 4097};
static const char *const names[TENSORS] = {"embed", "scale", "bias", "head"};

/* What this rank brought and what came out so far, over all elements of all tensors, and weights.
 */
static double came[TENSORS][LARGEST], left[TENSORS][LARGEST];
static float weights[TENSORS][LARGEST];

static inline void forget_accounts(void) {
  memset(came, 0, sizeof came);
  memset(left, 0, sizeof left);
  memset(weights, 0, sizeof weights);
}

/* The gradients of the next step are what this rank brings. */
static inline void note_gradients(const model *m) {
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < sizes[t]; i++) {
      came[t][i] += (double)m->data[t][i];
    }
  }
}

static inline void note_results(const model *m) {
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < sizes[t]; i++) {
      left[t][i] += (double)m->data[t][i];
      weights[t][i] += m->data[t][i];
    }
  }
}

/* Of this step, or zeros. */
static inline void make_gradients(model *m, int number, bool brings) {
  for (int t = 0; t < TENSORS; t++) {
    memset(m->data[t], 0, sizes[t] * sizeof(float));
    if (brings) {
      fill_gradient(m->data[t], sizes[t], seed_of(t, number));
    }
  }
}

/* Of sums: all that came has left, or is in a residual. */
static inline void require_conserved(model *m, const char *what) {
  static double residual[LARGEST], all[LARGEST];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int t = 0; t < TENSORS; t++) {
    double miss = 0, norm = 1e-300;
    sum_residuals(m, t, residual);
    MPI_Allreduce(came[t], all, (int)sizes[t], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < sizes[t]; i++) {
      double error = all[i] - left[t][i] - residual[i];
      miss += error * error;
      norm += all[i] * all[i];
    }
    require(sqrt(miss / norm) < 1e-5, "%s: %g of tensor %s is lost", what, sqrt(miss / norm),
            names[t]);
  }
}

static inline void require_equal_replicas(const char *what) {
  for (int t = 0; t < TENSORS; t++) {
    require(same_everywhere(weights[t], sizes[t] * sizeof(float)), "%s: the replicas differ", what);
  }
}

#endif
