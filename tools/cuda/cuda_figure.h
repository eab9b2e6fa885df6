/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_FIGURE_H
#define LCOMM_TOOLS_CUDA_CUDA_FIGURE_H

/* What a case took, beside a copy inside the device in the same run. */

#include "tools/common/tool_timing.h"
#include "tools/cuda/cuda_case.h"
#include "tools/cuda/cuda_fixture.h"

typedef enum lcomm_gpu_verdict {
  LCOMM_GPU_MET,
  LCOMM_GPU_MISSED,
  LCOMM_GPU_NO_TARGET,
  LCOMM_GPU_WRONG /* not measured: results differ, or the device failed */
} lcomm_gpu_verdict;

typedef struct lcomm_gpu_figure {
  const lcomm_gpu_case *what;
  double bytes;        /* of a value */
  tool_spread seconds; /* of a launch */
  tool_spread gb_s, copy_gb_s;
  tool_spread of_copy; /* how many times as fast as the copy */
  lcomm_gpu_verdict verdict;
  char why[LCOMM_GPU_WHY_MAX]; /* WRONG */
} lcomm_gpu_figure;

/* Bytes that the copy beside a case copies: it reads and writes as many as the
 * case does at the least. */
size_t lcomm_gpu_copy_size(const lcomm_gpu_case *what, uint64_t count);

/* Launch the case `launches` times where `samples` is 0. Else check it, then time `samples` (at
 * most TOOL_REPETITIONS_MAX) times `launches` launches and as many copies in turn. */
lcomm_gpu_figure lcomm_gpu_measure(lcomm_gpu_fixture *fixture, const lcomm_gpu_case *what,
                                   size_t samples, uint64_t launches);

/* "met", "missed", "", "not measured". */
const char *lcomm_gpu_verdict_name(lcomm_gpu_verdict verdict);

#endif
