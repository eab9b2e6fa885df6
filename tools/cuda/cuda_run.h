/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_RUN_H
#define LCOMM_TOOLS_CUDA_CUDA_RUN_H

/* All that cuda_bench measures on a device. */

#include "tools/cuda/cuda_figure.h"
#include "tools/cuda/cuda_options.h"
#include "tools/cuda/cuda_torch.h"

enum { LCOMM_GPU_CASES_MAX = 32 };

typedef struct lcomm_gpu_results {
  const lcomm_gpu_options *options;
  lcomm_device_facts facts;
  int driver, runtime; /* versions, 13000 is 13.0 */
  lcomm_gpu_figure figures[LCOMM_GPU_CASES_MAX];
  size_t figure_count;
  bool lost; /* the device: what came after the last figure was not tried */
  lcomm_gpu_torch torch;
  char why[LCOMM_GPU_WHY_MAX]; /* nothing could be measured */
} lcomm_gpu_results;

/* Was the case asked for? */
bool lcomm_gpu_is_wanted(const lcomm_gpu_options *options, const lcomm_gpu_case *what);

/* Called before the first case and after every one with what is known so far. */
typedef void lcomm_gpu_after(const lcomm_gpu_results *results);

/* false: `why` says why there are no figures. `after` may be NULL. */
bool lcomm_gpu_bench_run(const lcomm_gpu_options *options, const lcomm_device_table *table,
                         lcomm_gpu_after *after, lcomm_gpu_results *results);

/* How many times as fast as PyTorch top-k was; 0 when one of them was not measured. */
double lcomm_gpu_times_torch(const lcomm_gpu_results *results);

/* Were all results right? PyTorch may be missing. */
bool lcomm_gpu_is_right(const lcomm_gpu_results *results);

#endif
