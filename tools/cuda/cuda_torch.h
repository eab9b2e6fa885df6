/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_TORCH_H
#define LCOMM_TOOLS_CUDA_CUDA_TORCH_H

/* The same top-k as a chain of PyTorch calls, in a Python of its own. */

#include "tools/common/tool_timing.h"
#include "tools/cuda/cuda_fixture.h"

typedef struct lcomm_gpu_torch {
  const char *script; /* tools/cuda/torch_topk.py; NULL: not wanted */
  bool measured;
  tool_spread seconds; /* of a step */
  char why[LCOMM_GPU_WHY_MAX];
} lcomm_gpu_torch;

/* Is there anything to say of it? */
static inline bool lcomm_gpu_torch_is_over(const lcomm_gpu_torch *torch) {
  return torch->measured || torch->why[0] != '\0';
}

/* python3 SCRIPT COUNT SAMPLES DEVICE, which prints least, median and greatest
 * seconds. Fills in the rest; false: `why` says what was missing. */
bool lcomm_gpu_torch_run(lcomm_gpu_torch *torch, uint64_t count, size_t samples, int device);

#endif
