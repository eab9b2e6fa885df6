/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_LIST_CUH
#define LCOMM_KERNELS_CUDA_CUDA_LIST_CUH

/* One launch for a list of pieces, each of which has blocks of its own: a block finds its piece,
 * and does there what a launch for that piece alone would do. */

#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/cuda_hardware.cuh"

#include "kernels/cuda.h"

typedef struct lcomm_list_blocks {
  uint32_t end[LCOMM_CUDA_LIST_MAX]; /* blocks of each piece and of those before it */
  uint32_t count;
} lcomm_list_blocks;

typedef struct lcomm_list_place {
  uint32_t piece, block; /* number `block` of that piece */
} lcomm_list_place;

/* False: no grid has so many blocks. */
static inline bool lcomm_list_add(lcomm_list_blocks *list, uint64_t blocks) {
  uint64_t end = (list->count > 0 ? list->end[list->count - 1] : 0) + blocks;
  list->end[list->count++] = (uint32_t)end;
  return end <= INT32_MAX;
}

static inline uint32_t lcomm_list_blocks_all(const lcomm_list_blocks *list) {
  return list->end[list->count - 1];
}

/* Pieces without elements have no block. */
LCOMM_DEVICE lcomm_list_place lcomm_list_place_of(const lcomm_list_blocks *list) {
  uint32_t block = lcomm_block(), piece = 0, before = 0;
  LCOMM_ROLLED while (block >= list->end[piece]) {
    before = list->end[piece++];
  }
  lcomm_list_place place = {piece, block - before};
  return place;
}

#endif
