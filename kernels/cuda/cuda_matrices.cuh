/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_MATRICES_CUH
#define LCOMM_KERNELS_CUDA_CUDA_MATRICES_CUH

/* A launch for a list of matrices that travel by low rank. */

#include "kernels/cuda/cuda_list.cuh"

typedef struct lcomm_matrices_args {
  lcomm_list_blocks blocks;
  lcomm_lowrank_matrix matrix[LCOMM_CUDA_LIST_MAX];
} lcomm_matrices_args;

/* NaN compares with nothing. */
LCOMM_DEVICE bool lcomm_matrix_is_usable(float value) {
  return fabsf(value) < LCOMM_LOWRANK_TOO_LARGE;
}

/* Each with as many blocks as `blocks_of` says. False: no launch has so many. */
static inline bool lcomm_matrices_list(const lcomm_lowrank_matrix *list, uint32_t count,
                                       uint64_t (*blocks_of)(const lcomm_lowrank_matrix *matrix),
                                       lcomm_matrices_args *args) {
  bool fits = count <= LCOMM_CUDA_LIST_MAX;
  for (uint32_t i = 0; fits && i < count; i++) {
    args->matrix[i] = list[i];
    fits = lcomm_list_add(&args->blocks, blocks_of(&list[i]));
  }
  return fits;
}

#endif
