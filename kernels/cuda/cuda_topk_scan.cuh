/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_SCAN_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_SCAN_CUH

/* Prefix sums over the threads of a warp and of a block, and detection of the block
 * that ends last. All threads take part. */

#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/cuda_hardware.cuh"

#include "kernels/cuda/cuda_topk_tables.cuh"

/* The values of this lane and of those before it. */
LCOMM_DEVICE uint32_t lcomm_scan_warp(uint32_t value) {
  uint32_t lane = lcomm_lane();
  LCOMM_UNROLL for (uint32_t distance = 1; distance < LCOMM_WARP; distance *= 2) {
    uint32_t before = lcomm_shuffle_up(value, distance);
    value += lane >= distance ? before : 0;
  }
  return value;
}

/* The values of the threads before this one, and of all. `sums` is shared memory,
 * free again when this returns. */
LCOMM_DEVICE uint32_t lcomm_scan_block(uint32_t value, uint32_t sums[LCOMM_TOPK_WARPS],
                                       uint32_t *all) {
  uint32_t own = lcomm_scan_warp(value), before = 0, total = 0;
  if (lcomm_lane() == LCOMM_WARP - 1) {
    sums[lcomm_warp()] = own;
  }
  lcomm_sync_block();
  LCOMM_UNROLL for (uint32_t i = 0; i < LCOMM_TOPK_WARPS; i++) {
    before += i < lcomm_warp() ? sums[i] : 0;
    total += sums[i];
  }
  lcomm_sync_block();
  *all = total;
  return before + own - value;
}

/* Is this the last of `blocks` to come here? Then it sees what the others wrote before,
 * if it reads with lcomm_read_shared(). The counter `ticket` is 0 at first, and the
 * last block resets it. */
LCOMM_DEVICE uint32_t lcomm_is_last(uint32_t *ticket, uint32_t blocks, uint32_t *shared) {
  lcomm_fence();
  lcomm_sync_block();
  if (lcomm_thread() == 0) {
    *shared = lcomm_atomic_add(ticket, 1) == blocks - 1;
    if (*shared) {
      *ticket = 0;
    }
  }
  lcomm_sync_block();
  if (!*shared) {
    return 0;
  }
  lcomm_fence();
  return 1;
}

/* What another block wrote in this kernel, past the cache of this block's
 * processor. */
LCOMM_DEVICE uint32_t lcomm_read_shared(uint32_t *place) {
  return lcomm_atomic_add(place, 0);
}

/* Running sums of `count` numbers that other blocks wrote in this kernel, in their
 * place; returns the sum of all. */
LCOMM_DEVICE uint32_t lcomm_scan_written(uint32_t *number, uint32_t count,
                                         uint32_t sums[LCOMM_TOPK_WARPS]) {
  uint32_t before = 0;
  for (uint64_t first = 0; first < count; first += LCOMM_TOPK_THREADS) {
    uint64_t i = first + lcomm_thread();
    uint32_t all, value = i < count ? lcomm_read_shared(&number[i]) : 0;
    uint32_t sum = before + lcomm_scan_block(value, sums, &all);
    if (i < count) {
      number[i] = sum;
    }
    before += all;
  }
  return before;
}

#endif
