/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Samples of vectors, see kernels/sample.h: a thread for each element. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_nan.cuh"
#include "kernels/cuda/cuda_span.cuh"

typedef struct sample_args {
  lcomm_cuda_sample of;
  uint64_t elements;
} sample_args;

/* What the vector has there, times the factor; 0 where it has nothing. */
LCOMM_DEVICE float element_of(const lcomm_cuda_sample *a, uint64_t i) {
  uint64_t at = a->offset + lcomm_sample_at(&a->sample, i) - a->first;
  return at < a->count ? lcomm_product_f32(a->factor, a->values[at]) : 0.0f;
}

LCOMM_KERNEL(sample, sample_args) {
  for (uint64_t i = lcomm_loose_first(); i < a.elements; i += lcomm_loose_step()) {
    a.of.destination[i] = element_of(&a.of, i);
  }
}

LCOMM_KERNEL(sample_add, sample_args) {
  for (uint64_t i = lcomm_loose_first(); i < a.elements; i += lcomm_loose_step()) {
    a.of.destination[i] = lcomm_sum_f32(a.of.destination[i], element_of(&a.of, i));
  }
}

static uint32_t blocks_for(uint64_t elements) {
  lcomm_span span = {0, 0, elements};
  return lcomm_span_blocks(span);
}

extern "C" int lcomm_cuda_run_sample(const lcomm_cuda_sample *a, void *stream) {
  sample_args args = {*a, lcomm_sample_elements(&a->sample)};
  return LCOMM_LAUNCH(sample, blocks_for(args.elements), LCOMM_SPAN_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_sample_add(const lcomm_cuda_sample *a, void *stream) {
  sample_args args = {*a, lcomm_sample_elements(&a->sample)};
  return LCOMM_LAUNCH(sample_add, blocks_for(args.elements), LCOMM_SPAN_THREADS, stream, args);
}
