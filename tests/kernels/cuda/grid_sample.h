/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_GRID_SAMPLE_H
#define LCOMM_TESTS_KERNELS_CUDA_GRID_SAMPLE_H

/* Small kernels that use everything that cuda_grid.cuh offers, and some that use it
 * wrongly. All return 0 or the number of a cudaError_t. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* result[block * threads + thread] = 1000 * block + thread + lane + warp */
int grid_sample_places(uint32_t *result, uint32_t blocks, uint32_t threads, void *stream);

/* result[block] = sum of source[block * threads ..], added over shared memory and
 * barriers, which needs no more than threads numbers of shared memory. */
int grid_sample_sum(const uint32_t *source, uint32_t *result, uint32_t blocks, uint32_t threads,
                    void *stream);

/* The same with shuffles and one barrier. */
int grid_sample_sum_by_warps(const uint32_t *source, uint32_t *result, uint32_t blocks,
                             uint32_t threads, void *stream);

/* For each thread i of a block: 5 numbers result[5 * i ..]: source of lane ^ 5, of
 * lane - 3, of lane (7 * lane) % 32, the ballot of odd sources, and how many
 * threads of the warp were counted. */
int grid_sample_exchange(const uint32_t *source, uint32_t *result, uint32_t threads, void *stream);

/* counts[0] += sum of source, counts[1] = max, counts[2] |= all; *wide += sum. */
int grid_sample_atomics(const uint32_t *source, uint64_t n, uint32_t *counts, uint64_t *wide,
                        void *stream);

/* 4 * n and 2 * n numbers copied, 16 and 8 bytes at a time. */
int grid_sample_copy(const void *source4, void *destination4, const void *source2,
                     void *destination2, uint64_t n, void *stream);

/* What a block finds in shared memory when it begins, and leaves 77 there. */
int grid_sample_shared(uint32_t *found, uint32_t blocks, void *stream);

int grid_sample_set(void *memory, uint64_t size, void *stream);
int grid_sample_copy_in(void *device, const void *host, uint64_t size, void *stream);

/* The bits of the NaNs that come of a[i] and b[i], by kernels/cuda/cuda_nan.cuh. */
int grid_sample_nan(const float *a, const float *b, uint32_t *result, uint32_t n, void *stream);
int grid_sample_nan_f64(const double *a, const double *b, uint64_t *result, uint32_t n,
                        void *stream);

/* Neighbours exchange numbers over shared memory, without the barrier between. */
int grid_sample_lacks_barrier(const uint32_t *source, uint32_t *result, void *stream);

typedef enum grid_sample_mistake {
  GRID_SAMPLE_RETURNS_EARLY,      /* half of the threads, before a barrier */
  GRID_SAMPLE_OTHER_BARRIER,      /* two places of the source */
  GRID_SAMPLE_OTHER_SHUFFLE,      /* one lane takes part in a ballot instead */
  GRID_SAMPLE_BARRIER_OR_SHUFFLE, /* one warp each, and one lane of the second late */
  GRID_SAMPLE_MISALIGNED,
  GRID_SAMPLE_BEYOND_SHARED, /* writes one number behind an array */
  GRID_SAMPLE_MISTAKES
} grid_sample_mistake;

int grid_sample_make(grid_sample_mistake mistake, uint32_t *memory, void *stream);

#ifdef __cplusplus
}
#endif

#endif
