/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_DENSE_H
#define LCOMM_KERNELS_CUDA_CUDA_DENSE_H

/* The functions `encode` and `sum` of the table in kernels/cuda.h, and lists of such. What they are
 * asked for wrongly (a kind, block or address that there is not) is answered with
 * LCOMM_CUDA_INVALID_VALUE, and nothing is launched. */

#include "kernels/cuda.h"

enum { LCOMM_CUDA_INVALID_VALUE = 1 }; /* cudaErrorInvalidValue */

#ifdef __cplusplus
extern "C" {
#endif

int lcomm_cuda_run_encode(const lcomm_cuda_encode *a, void *stream);
int lcomm_cuda_run_sum(const lcomm_cuda_sum *a, void *stream);
int lcomm_cuda_run_encode_list(const lcomm_cuda_encode *list, uint32_t count, void *stream);
int lcomm_cuda_run_decode_list(const lcomm_cuda_decode *list, uint32_t count, void *stream);
int lcomm_cuda_run_copy_list(const lcomm_cuda_copy *list, uint32_t count, void *stream);
int lcomm_cuda_run_fetch_list(const lcomm_cuda_fetch *list, uint32_t count, void *stream);
int lcomm_cuda_run_numbers(const lcomm_cuda_number *list, uint32_t count, void *stream);
int lcomm_cuda_run_gates(const lcomm_cuda_gate *list, uint32_t count, void *stream);
int lcomm_cuda_run_unaligned16_load(lcomm_cuda_kind kind, const void *codes, float factor,
                                    float *destination, uint64_t n, void *stream);
int lcomm_cuda_run_unaligned16_store(lcomm_cuda_kind kind, const float *source, void *codes,
                                     uint64_t n, void *stream);

#ifdef __cplusplus
}
#endif

#endif
