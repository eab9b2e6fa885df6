/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_SHAPE_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_SHAPE_CUH

/* What an encoder needs to know of its shape, on the host. */

#include "kernels/cuda/cuda_topk_tables.cuh"

/* Elements of its tables. */
typedef struct lcomm_topk_counts {
  uint32_t elements, segments, outputs; /* of the view */
  uint32_t pieces, spans, histograms, candidates, chosen, groups, chunks;
} lcomm_topk_counts;

uint32_t lcomm_topk_divide_up(uint64_t count, uint32_t unit);

int lcomm_topk_shape_is_valid(const lcomm_cuda_topk_shape *shape);
/* Of a valid shape. */
lcomm_topk_counts lcomm_topk_count_shape(const lcomm_cuda_topk_shape *shape);

/* Segment i of the shape, which begins with element `first`; its places in tables
 * are not set. */
lcomm_cuda_segment lcomm_topk_segment_of(const lcomm_cuda_topk_shape *shape, uint32_t i,
                                         uint32_t first);
uint32_t lcomm_topk_pieces_of(const lcomm_cuda_segment *segment);

/* Entries of an output, `chosen` being those of all, and the groups of them that may
 * have to be written: one at least, as there is something to write for none too. */
uint32_t lcomm_topk_capacity_of(const lcomm_cuda_topk_shape *shape, uint32_t output,
                                uint32_t chosen);
uint32_t lcomm_topk_groups_of(uint32_t capacity);

#endif
