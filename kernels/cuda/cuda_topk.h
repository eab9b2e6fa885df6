/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_H
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_H

/* Top-k of the kernel table, see lcomm_cuda_kernels in kernels/cuda.h. */

#include "kernels/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t lcomm_cuda_run_topk_size(const lcomm_cuda_topk_shape *shape);
lcomm_cuda_topk *lcomm_cuda_run_topk_create(const lcomm_cuda_topk_shape *shape, void *memory,
                                            void *stream);
void lcomm_cuda_run_topk_destroy(lcomm_cuda_topk *topk);
int lcomm_cuda_run_topk_encode(lcomm_cuda_topk *topk, const lcomm_cuda_topk_encode *a,
                               void *stream);
size_t lcomm_cuda_run_topk_scratch(uint64_t entries, uint64_t size);
int lcomm_cuda_run_topk_add(const lcomm_cuda_sparse *a, float factor, float *base, void *stream);
int lcomm_cuda_run_topk_decode(const lcomm_cuda_sparse *a, float factor, float *base, void *stream);
int lcomm_cuda_run_topk_decode_list(const lcomm_cuda_topk_decode *list, uint32_t count,
                                    float factor, void *stream);
int lcomm_cuda_run_topk_add_list(const lcomm_cuda_sparse *list, uint32_t count, float factor,
                                 float *base, void *stream);
int lcomm_cuda_run_topk_commit(const lcomm_cuda_sparse *sent, const lcomm_cuda_sparse *applied,
                               float *residual, void *stream);
int lcomm_cuda_run_topk_mask(const lcomm_cuda_sparse *sent, const lcomm_cuda_sparse *applied,
                             float *momentum, void *stream);

#ifdef __cplusplus
}
#endif

#endif
