/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_REPORT_H
#define LCOMM_TOOLS_CUDA_CUDA_REPORT_H

#include <stdio.h>

#include "tools/cuda/cuda_run.h"

/* PyTorch's chain of calls is to take so many times as long. */
#define LCOMM_GPU_TORCH_TARGET 5.0

/* Each returns false when the file took not everything. */

/* A table for people. */
bool lcomm_gpu_print(const lcomm_gpu_results *results, FILE *file);

/* One line a case under the head
 *   case,target,verdict,share,share_min,share_max,bytes_per_value,
 *   seconds,seconds_min,seconds_max,gb_s,copy_gb_s,why
 * What was not measured is empty. The comparison with PyTorch is the case
 * "top-k against torch", its share how many times as fast the kernel was and its
 * seconds those of PyTorch. */
bool lcomm_gpu_csv(const lcomm_gpu_results *results, FILE *file);

/* An object: device, count, samples, launches, and the same of all cases. */
bool lcomm_gpu_json(const lcomm_gpu_results *results, FILE *file);

/* The lines of the CSV that all these options would give, with target and name
 * only: case,target. */
bool lcomm_gpu_list(const lcomm_gpu_options *options, FILE *file);

#endif
