/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_CHECK_H
#define LCOMM_TOOLS_CUDA_CUDA_CHECK_H

#include "tools/cuda/cuda_fixture.h"

enum { LCOMM_GPU_SAMPLE = 1 << 20 }; /* values compared at a time */

/* Are `count` units of `size` bytes (1 to 4) at `found`, in device memory, those
 * at `wanted`, in host memory? Else the fixture's `why` names the first that differs;
 * `first` is the number of unit 0. */
bool lcomm_gpu_same(lcomm_gpu_fixture *fixture, const char *what, const void *found,
                    const void *wanted, size_t count, size_t size, uint64_t first);

#endif
