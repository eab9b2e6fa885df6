/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Orthonormal vectors on a device: lcomm_lowrank_orthonormalise of kernels/lowrank.c, a block for
 * each matrix. A sum has the threads of its 8 sums, what has no order all threads. */

#include <math.h>

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_matrices.cuh"
#include "kernels/element.h"

enum { THREADS = LCOMM_THREADS_MAX, SUMS = 8 };

typedef struct vector_set {
  float *values; /* `rank` vectors of n values */
  uint64_t n;
  uint32_t rank;
} vector_set;

/* All threads have it. What they wrote before is there. */
LCOMM_DEVICE double dot(const float *left, const float *right, uint64_t n, double *sums) {
  uint32_t own = lcomm_thread();
  double sum = 0;
  lcomm_sync_block();
  for (uint64_t i = own; own < SUMS && i < n; i += SUMS) {
    sum += (double)left[i] * (double)right[i];
  }
  if (own < SUMS) {
    sums[own] = sum;
  }
  lcomm_sync_block();
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* Takes the parts along the k vectors before it off vector k. */
LCOMM_DEVICE void take_off_earlier(vector_set set, uint32_t k, double *sums) {
  float *vector = set.values + k * set.n;
  LCOMM_ROLLED for (uint32_t other = 0; other < k; other++) {
    const float *earlier = set.values + other * set.n;
    double part = dot(vector, earlier, set.n, sums);
    for (uint64_t i = lcomm_thread(); i < set.n; i += THREADS) {
      vector[i] = (float)((double)vector[i] - part * (double)earlier[i]);
    }
  }
}

LCOMM_DEVICE void normalise(float *vector, uint64_t n, double *sums) {
  double length = sqrt(dot(vector, vector, n, sums));
  for (uint64_t i = lcomm_thread(); length > 0.0 && i < n; i += THREADS) {
    vector[i] = (float)((double)vector[i] / length);
  }
}

LCOMM_DEVICE void fill_by_counter(float *vector, uint64_t n, uint32_t k) {
  for (uint64_t i = lcomm_thread(); i < n; i += THREADS) {
    vector[i] = (float)(int32_t)lcomm_random(0, k * n + i) * 0x1p-31f;
  }
}

/* Values are finite, and so are the sums of their squares. */
LCOMM_DEVICE void orthonormalise_one(vector_set set, uint32_t k, double *sums) {
  float *vector = set.values + k * set.n;
  double before = dot(vector, vector, set.n, sums);
  take_off_earlier(set, k, sums);
  if (dot(vector, vector, set.n, sums) <= LCOMM_LOWRANK_LEAST_LEFT * before) {
    fill_by_counter(vector, set.n, k);
    take_off_earlier(set, k, sums);
  }
  normalise(vector, set.n, sums);
  take_off_earlier(set, k, sums);
  normalise(vector, set.n, sums);
}

LCOMM_DEVICE void orthonormalise(vector_set set, double *sums) {
  for (uint32_t k = 0; k < set.rank; k++) {
    if (k < set.n) {
      orthonormalise_one(set, k, sums);
    } else {
      for (uint64_t i = lcomm_thread(); i < set.n; i += THREADS) {
        set.values[k * set.n + i] = 0;
      }
    }
  }
}

LCOMM_DEVICE bool are_usable(const float *values, uint64_t n, uint32_t *found) {
  bool all = true;
  if (lcomm_thread() == 0) {
    *found = 0;
  }
  lcomm_sync_block();
  for (uint64_t i = lcomm_thread(); i < n; i += THREADS) {
    all = all && lcomm_matrix_is_usable(values[i]);
  }
  if (!all) {
    (void)lcomm_atomic_or(found, 1);
  }
  lcomm_sync_block();
  return *found == 0;
}

LCOMM_DEVICE void copy_values(float *to, const float *from, uint64_t n) {
  for (uint64_t i = lcomm_thread(); to != from && i < n; i += THREADS) {
    to[i] = from[i];
  }
}

LCOMM_KERNEL(make_left, lcomm_matrices_args) {
  LCOMM_SHARED double sums[SUMS];
  LCOMM_SHARED uint32_t found;
  const lcomm_lowrank_matrix *it = &a.matrix[lcomm_block()];
  vector_set set = {it->p, it->rows, it->rank};
  bool usable = are_usable(it->p, it->rank * it->rows, &found);
  if (lcomm_thread() == 0) {
    *it->lost = !usable;
  }
  if (usable) {
    orthonormalise(set, sums);
  }
}

LCOMM_KERNEL(make_basis, lcomm_matrices_args) {
  LCOMM_SHARED double sums[SUMS];
  LCOMM_SHARED uint32_t found;
  const lcomm_lowrank_matrix *it = &a.matrix[lcomm_block()];
  uint64_t n = it->rank * it->columns;
  vector_set set = {it->basis, it->columns, it->rank};
  bool usable = *it->lost == 0 && are_usable(it->q, n, &found);
  copy_values(it->basis, usable ? it->q : it->was_basis, n);
  if (!usable && lcomm_thread() == 0) {
    *it->lost = 1;
  }
  if (usable) {
    orthonormalise(set, sums);
  }
}

static uint64_t one_block(const lcomm_lowrank_matrix *matrix) {
  (void)matrix;
  return 1;
}

extern "C" int lcomm_cuda_run_lowrank_left(const lcomm_lowrank_matrix *list, uint32_t count,
                                           void *stream) {
  lcomm_matrices_args args = {};
  return lcomm_matrices_list(list, count, one_block, &args)
             ? LCOMM_LAUNCH(make_left, count, THREADS, stream, args)
             : LCOMM_CUDA_INVALID_VALUE;
}

extern "C" int lcomm_cuda_run_lowrank_basis(const lcomm_lowrank_matrix *list, uint32_t count,
                                            void *stream) {
  lcomm_matrices_args args = {};
  return lcomm_matrices_list(list, count, one_block, &args)
             ? LCOMM_LAUNCH(make_basis, count, THREADS, stream, args)
             : LCOMM_CUDA_INVALID_VALUE;
}
