/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_LAUNCH_H
#define LCOMM_KERNELS_CUDA_CUDA_LAUNCH_H

/* The functions of the table in kernels/cuda.h that work on values as they are;
 * cuda_dense.h has those of the dense codecs. What they are asked for wrongly is
 * answered with LCOMM_CUDA_INVALID_VALUE, and nothing is launched. */

#include "kernels/cuda.h"
#include "kernels/cuda/cuda_dense.h"

#ifdef __cplusplus
extern "C" {
#endif

int lcomm_cuda_run_combine(const lcomm_cuda_combine *a, void *stream);
/* Of a divisor above 0. */
int lcomm_cuda_run_divide_i32(int32_t *values, int32_t divisor, uint64_t n, void *stream);
int lcomm_cuda_run_divide_i64(int64_t *values, int64_t divisor, uint64_t n, void *stream);
int lcomm_cuda_run_divide_i8(int8_t *values, int32_t divisor, uint64_t n, void *stream);
int lcomm_cuda_run_divide_u8(uint8_t *values, int32_t divisor, uint64_t n, void *stream);

int lcomm_cuda_run_fold(float *values, const float *before, float *residual, uint64_t n,
                        void *stream);
int lcomm_cuda_run_add_to_f64(double *sums, const float *values, uint64_t n, void *stream);
int lcomm_cuda_run_momentum(float factor, const float *before, float *momentum, float *gradient,
                            uint64_t n, void *stream);
int lcomm_cuda_run_mean(float keep, const float *before, float take, const float *values,
                        float *mean, uint64_t n, void *stream);
int lcomm_cuda_run_count_not_finite(const float *source, uint64_t n, uint64_t *found, void *stream);
int lcomm_cuda_run_count_not_finite_f64(const double *source, uint64_t n, uint64_t *found,
                                        void *stream);
int lcomm_cuda_run_squares(const float *values, uint64_t n, const double *before, double *total,
                           void *stream);
int lcomm_cuda_run_squares_f64(const double *values, uint64_t n, const double *before,
                               double *total, void *stream);
int lcomm_cuda_run_clip_to(float *values, uint64_t n, const double *total, double limit,
                           void *stream);
int lcomm_cuda_run_clip_to_f64(double *values, uint64_t n, const double *total, double limit,
                               void *stream);
int lcomm_cuda_run_sample(const lcomm_cuda_sample *a, void *stream);
int lcomm_cuda_run_sample_add(const lcomm_cuda_sample *a, void *stream);

int lcomm_cuda_run_split(unsigned width, const uint8_t *source, uint8_t *const *plane, uint64_t n,
                         void *stream);
int lcomm_cuda_run_join(unsigned width, const uint8_t *const *plane, uint8_t *destination,
                        uint64_t n, void *stream);

int lcomm_cuda_run_lowrank_project(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);
int lcomm_cuda_run_lowrank_turn(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);
int lcomm_cuda_run_lowrank_finish(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);
/* Parts of the last two: P, and the kept Q; see there what happens to those that are lost. */
int lcomm_cuda_run_lowrank_left(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);
int lcomm_cuda_run_lowrank_basis(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);

#ifdef __cplusplus
}
#endif

#endif
