/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_CUDA_TRAIN_CUDA_BLAS_CUH
#define TRAINER_CUDA_TRAIN_CUDA_BLAS_CUH

#include "trainer/train_backend.h"

/* Matrix products of cuBLASLt, or none of them: see train_cuda_without_blas.cu. */

/* Errors of cuBLASLt are its numbers and this one, beside those of CUDA. */
enum { TRAIN_CUDA_BLAS_ERRORS = 100000 };

typedef int train_cuda_blas_function(const product *of, precision_kind stored, void *stream);

/* Of the device in use. *multiply becomes NULL where there is no cuBLASLt. Returns 0 or an error.
 */
int train_cuda_blas_open(train_cuda_blas_function **multiply);

#endif
