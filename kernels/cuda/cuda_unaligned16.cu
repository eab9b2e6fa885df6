/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Conversions of 16-bit arrays that are aligned to their elements only, one element at
 * a time. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_dense.h"
#include "kernels/cuda/cuda_nan.cuh"
#include "kernels/element.h"

enum { THREADS = 256 };

typedef struct unaligned16_args {
  uint16_t *codes;
  float *values;
  float factor;
  uint64_t n;
  uint32_t bf16;
} unaligned16_args;

LCOMM_KERNEL(load_unaligned16, unaligned16_args) {
  uint64_t step = (uint64_t)lcomm_blocks() * lcomm_threads();
  for (uint64_t i = (uint64_t)lcomm_block() * lcomm_threads() + lcomm_thread(); i < a.n;
       i += step) {
    uint16_t code = a.codes[i];
    float value = a.bf16 ? lcomm_bf16_to_f32(code) : lcomm_f16_to_f32(code);
    a.values[i] = lcomm_product_f32(a.factor, value);
  }
}

LCOMM_KERNEL(store_unaligned16, unaligned16_args) {
  uint64_t step = (uint64_t)lcomm_blocks() * lcomm_threads();
  for (uint64_t i = (uint64_t)lcomm_block() * lcomm_threads() + lcomm_thread(); i < a.n;
       i += step) {
    float value = a.values[i];
    a.codes[i] = a.bf16 ? lcomm_f32_to_bf16(value) : lcomm_f32_to_f16(value);
  }
}

static bool is_valid(lcomm_cuda_kind kind, const void *codes, const float *values) {
  return (kind == LCOMM_CUDA_F16 || kind == LCOMM_CUDA_BF16) && codes && values &&
         (uintptr_t)codes % sizeof(uint16_t) == 0 && (uintptr_t)values % sizeof(float) == 0;
}

static uint32_t blocks_for(uint64_t n) {
  uint64_t blocks = (n + 4 * THREADS - 1) / (4 * THREADS);
  return blocks < 65536 ? (uint32_t)blocks : 65536u;
}

extern "C" int lcomm_cuda_run_unaligned16_load(lcomm_cuda_kind kind, const void *codes,
                                               float factor, float *destination, uint64_t n,
                                               void *stream) {
  if (n == 0) {
    return 0;
  }
  if (!is_valid(kind, codes, destination)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  unaligned16_args args = {(uint16_t *)(uintptr_t)codes, destination, factor, n,
                           kind == LCOMM_CUDA_BF16};
  return LCOMM_LAUNCH(load_unaligned16, blocks_for(n), THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_unaligned16_store(lcomm_cuda_kind kind, const float *source,
                                                void *codes, uint64_t n, void *stream) {
  if (n == 0) {
    return 0;
  }
  if (!is_valid(kind, codes, source)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  unaligned16_args args = {(uint16_t *)codes, (float *)(uintptr_t)source, 1.0f, n,
                           kind == LCOMM_CUDA_BF16};
  return LCOMM_LAUNCH(store_unaligned16, blocks_for(n), THREADS, stream, args);
}
