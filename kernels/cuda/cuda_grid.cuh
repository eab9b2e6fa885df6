/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_GRID_CUH
#define LCOMM_KERNELS_CUDA_CUDA_GRID_CUH

/* The grid of a CUDA device: how a kernel is written and launched, who a thread
 * is, and what threads can do together. Tests replace this header by
 * tests/support/emulated/emulated_grid.cuh, which runs the same source on a
 * processor: the compiler includes that one first, and it defines the guard
 * above, so that this one is empty there.
 *
 * A kernel takes one structure by value, named `a`:
 *
 *   typedef struct scale_args { float *values; float factor; uint64_t n; } scale_args;
 *   LCOMM_KERNEL(scale, scale_args) { ... a.values[i] *= a.factor ... }
 *   int error = LCOMM_LAUNCH(scale, blocks, threads, stream, args);
 *
 * A block has 32 to LCOMM_THREADS_MAX threads, a multiple of 32. No blocks are
 * no launch. The value of LCOMM_LAUNCH is 0 or the number of a cudaError_t.
 */

#ifndef __CUDACC__
#error "the grid of a device needs nvcc; on a processor, include emulated_hardware.cuh first"
#endif

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

#include "kernels/cuda/cuda_bar.h"

enum { LCOMM_WARP = 32, LCOMM_THREADS_MAX = 256 };

/* All kernels of the module, for whoever loads them before they are launched. */
typedef struct lcomm_cuda_listed {
  const void *kernel;
  const struct lcomm_cuda_listed *next;
} lcomm_cuda_listed;

__attribute__((weak)) const lcomm_cuda_listed *lcomm_cuda_list; /* one for all files */

/* The argument is a grid constant: it is not copied to local memory, so arrays in it
 * can be indexed by variables. LCOMM_KERNEL_BESIDE limits registers so that `beside`
 * full blocks fit on a multiprocessor: 4 at most, because every device has room for so
 * many threads. */
#define LCOMM_KERNEL(name, args_type)                                                              \
  LCOMM_BOUND_KERNEL(name, args_type, __launch_bounds__(LCOMM_THREADS_MAX))
#define LCOMM_KERNEL_BESIDE(name, args_type, beside)                                               \
  LCOMM_BOUND_KERNEL(name, args_type, __launch_bounds__(LCOMM_THREADS_MAX, beside))

#define LCOMM_BOUND_KERNEL(name, args_type, bound)                                                 \
  static __global__ void name(const __grid_constant__ args_type a);                                \
  __attribute__((constructor)) static void list_##name(void) {                                     \
    static lcomm_cuda_listed own;                                                                  \
    own.kernel = (const void *)name;                                                               \
    own.next = lcomm_cuda_list;                                                                    \
    lcomm_cuda_list = &own;                                                                        \
  }                                                                                                \
  static inline int launch_##name(uint32_t blocks, uint32_t threads, void *stream,                 \
                                  args_type args) {                                                \
    return lcomm_cuda_launch((const void *)name, blocks, threads, stream, &args);                  \
  }                                                                                                \
  static __global__ void bound name(const __grid_constant__ args_type a)

#define LCOMM_LAUNCH(name, blocks, threads, stream, args)                                          \
  launch_##name(blocks, threads, stream, args)

#define LCOMM_DEVICE static __device__ __forceinline__

/* Arrays of a block, at the top of a kernel. They hold anything at first. */
#define LCOMM_SHARED __shared__

static inline int lcomm_cuda_launch(const void *kernel, uint32_t blocks, uint32_t threads,
                                    void *stream, void *args) {
  LCOMM_CUDA_NEED_NO_BAR();
  if (blocks == 0) {
    return 0;
  }
  return (int)cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), &args, 0, (cudaStream_t)stream);
}

/* Fill memory with zeros. */
static inline int lcomm_cuda_set(void *memory, size_t size, void *stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  return size ? (int)cudaMemsetAsync(memory, 0, size, (cudaStream_t)stream) : 0;
}

/* Copy from host memory, which must not change until the stream has done it. */
static inline int lcomm_cuda_copy_in(void *device, const void *host, size_t size, void *stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  return size ? (int)cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice,
                                     (cudaStream_t)stream)
              : 0;
}

/* ------------------------------------------------------- thread and block index */

LCOMM_DEVICE uint32_t lcomm_thread(void) {
  return threadIdx.x;
}

LCOMM_DEVICE uint32_t lcomm_threads(void) {
  return blockDim.x;
}

LCOMM_DEVICE uint32_t lcomm_block(void) {
  return blockIdx.x;
}

LCOMM_DEVICE uint32_t lcomm_blocks(void) {
  return gridDim.x;
}

LCOMM_DEVICE uint32_t lcomm_lane(void) {
  return threadIdx.x % LCOMM_WARP;
}

LCOMM_DEVICE uint32_t lcomm_warp(void) {
  return threadIdx.x / LCOMM_WARP;
}

/* --------------------------------------------------------- barriers and shuffles */

/* All threads of the block, or of the warp, take part in each of these, at one
 * place of the source; none may have returned before. */

LCOMM_DEVICE void lcomm_sync_block(void) {
  __syncthreads();
}

LCOMM_DEVICE void lcomm_sync_warp(void) {
  __syncwarp();
}

/* The value of lane `own ^ mask`, mask < 32. */
LCOMM_DEVICE uint32_t lcomm_shuffle_xor(uint32_t value, unsigned mask) {
  return __shfl_xor_sync(0xffffffffu, value, (int)mask);
}

/* The value of lane `own - distance`; the first `distance` lanes keep theirs. */
LCOMM_DEVICE uint32_t lcomm_shuffle_up(uint32_t value, unsigned distance) {
  return __shfl_up_sync(0xffffffffu, value, distance);
}

/* The value of lane `lane` < 32. */
LCOMM_DEVICE uint32_t lcomm_shuffle(uint32_t value, unsigned lane) {
  return __shfl_sync(0xffffffffu, value, (int)lane);
}

/* One bit for each lane whose condition is not 0. */
LCOMM_DEVICE uint32_t lcomm_ballot(int condition) {
  return __ballot_sync(0xffffffffu, condition);
}

/* ------------------------------------------------------------------ atomics */

/* On shared or device memory; all return what was there before. */

LCOMM_DEVICE uint32_t lcomm_atomic_add(uint32_t *place, uint32_t value) {
  return atomicAdd(place, value);
}

LCOMM_DEVICE uint64_t lcomm_atomic_add64(uint64_t *place, uint64_t value) {
  return atomicAdd((unsigned long long *)place, (unsigned long long)value);
}

LCOMM_DEVICE uint32_t lcomm_atomic_max(uint32_t *place, uint32_t value) {
  return atomicMax(place, value);
}

LCOMM_DEVICE uint32_t lcomm_atomic_or(uint32_t *place, uint32_t value) {
  return atomicOr(place, value);
}

/* Writes before it are seen by other blocks before those after it. */
LCOMM_DEVICE void lcomm_fence(void) {
  __threadfence();
}

/* ------------------------------------------------------------------- memory */

/* Vector access: 16 and 8 bytes at once, aligned to their size. `once` is a streaming
 * access, for device memory only: the data will not be read again soon and is evicted
 * from the caches first. Stores are written in PTX, because a compiler may split the
 * store of a structure. */

typedef struct alignas(16) lcomm_vec4 {
  uint32_t x, y, z, w;
} lcomm_vec4;

typedef struct alignas(8) lcomm_vec2 {
  uint32_t x, y;
} lcomm_vec2;

LCOMM_DEVICE lcomm_vec4 lcomm_load4(const void *p) {
  uint4 v = *(const uint4 *)p;
  lcomm_vec4 value = {v.x, v.y, v.z, v.w};
  return value;
}

LCOMM_DEVICE lcomm_vec4 lcomm_load4_once(const void *p) {
  uint4 v = __ldcs((const uint4 *)p);
  lcomm_vec4 value = {v.x, v.y, v.z, v.w};
  return value;
}

LCOMM_DEVICE void lcomm_store4(void *p, lcomm_vec4 value) {
  asm volatile("st.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(p), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

LCOMM_DEVICE void lcomm_store4_once(void *p, lcomm_vec4 value) {
  __stcs((uint4 *)p, make_uint4(value.x, value.y, value.z, value.w));
}

LCOMM_DEVICE lcomm_vec2 lcomm_load2(const void *p) {
  uint2 v = *(const uint2 *)p;
  lcomm_vec2 value = {v.x, v.y};
  return value;
}

LCOMM_DEVICE lcomm_vec2 lcomm_load2_once(const void *p) {
  uint2 v = __ldcs((const uint2 *)p);
  lcomm_vec2 value = {v.x, v.y};
  return value;
}

LCOMM_DEVICE void lcomm_store2(void *p, lcomm_vec2 value) {
  asm volatile("st.v2.u32 [%0], {%1, %2};" : : "l"(p), "r"(value.x), "r"(value.y) : "memory");
}

LCOMM_DEVICE void lcomm_store2_once(void *p, lcomm_vec2 value) {
  __stcs((uint2 *)p, make_uint2(value.x, value.y));
}

#endif
