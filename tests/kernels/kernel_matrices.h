/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_KERNEL_MATRICES_H
#define LCOMM_TESTS_KERNELS_KERNEL_MATRICES_H

/* Matrices for tests of low rank, and products of them in the plainest way. */

#include "kernels/kernels.h"
#include "tests/kernels/kernel_values.h"

typedef struct matrix_shape {
  size_t rows, columns, rank;
} matrix_shape;

/* What one step reads and writes. */
typedef struct matrices {
  matrix_shape is;
  float *m, *gradient, *p, *q, *result;
} matrices;

/* Zeros. */
static inline matrices matrices_make(matrix_shape is) {
  size_t size = is.rows * is.columns * sizeof(float);
  matrices made = {.is = is};
  made.m = sample_memory(size);
  made.gradient = sample_memory(size);
  made.result = sample_memory(size);
  made.p = sample_memory(is.rank * is.rows * sizeof(float));
  made.q = sample_memory(is.rank * is.columns * sizeof(float));
  return made;
}

static inline void matrices_free(matrices *a) {
  free(a->m);
  free(a->gradient);
  free(a->result);
  free(a->p);
  free(a->q);
}

static inline void matrices_fill(matrices *a, kind k, uint64_t *random) {
  size_t count = a->is.rows * a->is.columns;
  make_values(k, a->m, count, random);
  make_values(k, a->gradient, count, random);
  make_values(k, a->p, a->is.rank * a->is.rows, random);
  make_values(k, a->q, a->is.rank * a->is.columns, random);
}

static inline void matrices_copy(matrices *to, const matrices *from) {
  size_t size = from->is.rows * from->is.columns * sizeof(float);
  memcpy(to->m, from->m, size);
  memcpy(to->gradient, from->gradient, size);
  memcpy(to->result, from->result, size);
  memcpy(to->p, from->p, from->is.rank * from->is.rows * sizeof(float));
  memcpy(to->q, from->q, from->is.rank * from->is.columns * sizeof(float));
}

/* A matrix that is the sum of `terms` products of two vectors. */
static inline void fill_with_products(float *m, matrix_shape is, size_t terms, uint64_t *random) {
  memset(m, 0, is.rows * is.columns * sizeof *m);
  for (size_t t = 0; t < terms; t++) {
    float *column = sample_memory(is.columns * sizeof *column);
    for (size_t j = 0; j < is.columns; j++) {
      column[j] = sample_normal(random);
    }
    for (size_t i = 0; i < is.rows; i++) {
      float factor = sample_normal(random);
      for (size_t j = 0; j < is.columns; j++) {
        m[i * is.columns + j] += factor * column[j];
      }
    }
    free(column);
  }
}

/* One step of one rank alone. */
static inline void lowrank_step(const lcomm_kernels_lowrank *k, matrices *a, float share) {
  matrix_shape is = a->is;
  k->project(a->p, a->m, a->gradient, a->q, is.rows, is.columns, is.rank);
  lcomm_lowrank_orthonormalise(a->p, is.rows, is.rank);
  k->project_back(a->q, a->m, a->p, is.rows, is.columns, is.rank);
  k->expand(a->result, a->m, a->p, a->q, is.rows, is.columns, is.rank, share);
}

#endif
