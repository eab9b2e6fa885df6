/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_TOPK_DEVICE_SHAPE_H
#define LCOMM_TESTS_KERNELS_CUDA_TOPK_DEVICE_SHAPE_H

/* What a device's encoder of top-k is made of, from the codec's. */

#include "kernels/cuda.h"
#include "tests/codecs/topk_shapes.h"

/* The segments as `here` has them: those that have elements. `count` and `kept` have room for each
 * of them, `capacity` for each output; all three outlive the result. */
static inline lcomm_cuda_topk_shape device_shape(const lcomm_topk *here,
                                                 const lcomm_topk_shape *shape, uint64_t *count,
                                                 uint64_t *kept, uint64_t *capacity) {
  size_t segments = lcomm_topk_segments(here);
  for (size_t i = 0; i < segments; i++) {
    lcomm_topk_segment_get(here, i, &count[i], &kept[i]);
  }
  for (uint32_t o = 0; o < shape->outputs; o++) {
    capacity[o] = lcomm_topk_output_capacity(here, o);
  }
  return (lcomm_cuda_topk_shape){.base_count = shape->base_count,
                                 .parts = shape->parts,
                                 .part = shape->part,
                                 .outputs = shape->outputs,
                                 .int8 = shape->format->variant == LCOMM_TOPK_INT8,
                                 .segments = (uint32_t)segments,
                                 .segment_count = count,
                                 .segment_kept = kept,
                                 .output_capacity = capacity};
}

#endif
