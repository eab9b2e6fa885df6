/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_VIEW_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_VIEW_CUH

/* Elements of a view of top-k: where they are, how they rank, what stays of them. */

#include "kernels/cuda/cuda_nan.cuh"
#include "kernels/cuda/cuda_topk_scan.cuh"

LCOMM_DEVICE uint64_t lcomm_topk_global_of(uint32_t local, uint32_t parts, uint32_t part) {
  return ((uint64_t)(local / LCOMM_TILE) * parts + part) * LCOMM_TILE + local % LCOMM_TILE;
}

LCOMM_DEVICE uint64_t lcomm_topk_global(const lcomm_topk_tables *t, uint32_t local) {
  return lcomm_topk_global_of(local, t->parts, t->part);
}

LCOMM_DEVICE uint32_t lcomm_topk_magnitude(float value) {
  return (uint32_t)lcomm_f32_magnitude(value);
}

/* The order of choice: magnitude first, then the lower position. Keys of different
 * positions are different. */
LCOMM_DEVICE uint64_t lcomm_topk_key(const lcomm_topk_tables *t, float value, uint32_t position) {
  return (uint64_t)lcomm_topk_magnitude(value) << 32 | (t->count - 1 - position);
}

LCOMM_DEVICE float lcomm_topk_bf16_error(float value) {
  return lcomm_error_kept(value, lcomm_bf16_to_f32(lcomm_f32_to_bf16_finite(value)));
}

/* What the residual holds of a candidate until it is known what is sent. */
LCOMM_DEVICE float lcomm_topk_left(float value, uint32_t early) {
  return early ? lcomm_topk_bf16_error(value) : lcomm_finite_or_zero(value);
}

/* Did the sample mislead? Then either candidates or room for them are missing. */
LCOMM_DEVICE int lcomm_topk_misled(const lcomm_cuda_segment *segment,
                                   const lcomm_topk_search *search) {
  return search->found < segment->kept || search->found > segment->capacity;
}

/* The i-th of `parts` equal parts of `count` elements. */
typedef struct lcomm_topk_range {
  uint64_t begin, end;
} lcomm_topk_range;

LCOMM_DEVICE lcomm_topk_range lcomm_topk_part_of(uint32_t count, uint32_t i, uint32_t parts) {
  lcomm_topk_range range = {(uint64_t)count * i / parts, (uint64_t)count * (i + 1) / parts};
  return range;
}

#endif
