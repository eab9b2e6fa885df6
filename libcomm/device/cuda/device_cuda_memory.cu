/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/cuda/device_cuda_internal.cuh"

#include "libcomm/base/assert.h"

/* The runtime would make a context on some device to answer this. The driver does
 * not, and knows all memory of this process whatever context it belongs to; what
 * it does not know has memory type 0. */
lcomm_memory_location lcomm_cuda_locate(const void *pointer) {
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  uint64_t type = 0, is_managed = 0; /* wide enough for whatever is written there */
  int device[2] = {-1, 0};
  void *answers[] = {&type, &is_managed, device};
  lcomm_memory_location place = {LCOMM_MEMORY_HOST, -1};
  LCOMM_ASSERT(lcomm_cuda_may_call());
  if (!lcomm_cuda_may_call() || !pointer ||
      lcomm_cuda_driver.pointer_attributes(3, asked, answers, (CUdeviceptr)(uintptr_t)pointer) !=
          CUDA_SUCCESS) {
    return place;
  }
  if (type == 0) {
    return place;
  }
  if (is_managed) {
    place.kind = LCOMM_MEMORY_MANAGED;
    place.device = device[0];
  } else if (type == CU_MEMORYTYPE_DEVICE) {
    place.kind = LCOMM_MEMORY_DEVICE;
    place.device = device[0];
  } else if (type == CU_MEMORYTYPE_HOST) {
    place.kind = LCOMM_MEMORY_PINNED;
  }
  return place;
}

/* Memory of its own allocation, not of a pool, so that it can be shared. */
int lcomm_cuda_memory_get(size_t size, void **memory) {
  LCOMM_CUDA_NEED_NO_BAR();
  *memory = NULL;
  return size ? LCOMM_CUDA_ASIDE(cudaMalloc(memory, size)) : 0;
}

int lcomm_cuda_memory_free(void *memory) {
  LCOMM_CUDA_NEED_NO_BAR();
  return memory ? LCOMM_CUDA_ASIDE(cudaFree(memory)) : 0;
}

int lcomm_cuda_managed_get(size_t size, void **memory) {
  LCOMM_CUDA_NEED_NO_BAR();
  *memory = NULL;
  return size ? LCOMM_CUDA_ASIDE(cudaMallocManaged(memory, size, cudaMemAttachGlobal)) : 0;
}

int lcomm_cuda_pinned_get(size_t size, void **memory) {
  LCOMM_CUDA_NEED_NO_BAR();
  *memory = NULL;
  return size ? LCOMM_CUDA_ASIDE(
                    cudaHostAlloc(memory, size, cudaHostAllocPortable | cudaHostAllocMapped))
              : 0;
}

int lcomm_cuda_pinned_free(void *memory) {
  LCOMM_CUDA_NEED_NO_BAR();
  return memory ? LCOMM_CUDA_ASIDE(cudaFreeHost(memory)) : 0;
}

/* Kernels and streams take the address that the host has. */
int lcomm_cuda_pin(void *memory, size_t size) {
  LCOMM_CUDA_NEED_NO_BAR();
  void *there = NULL;
  int error = LCOMM_CUDA_ASIDE(
      cudaHostRegister(memory, size, cudaHostRegisterPortable | cudaHostRegisterMapped));
  if (error != 0) {
    return error;
  }
  error = LCOMM_CUDA_ASIDE(cudaHostGetDevicePointer(&there, memory, 0));
  if (error == 0 && there == memory) {
    return 0;
  }
  (void)lcomm_cuda_unpin(memory);
  return error ? error : (int)cudaErrorNotSupported;
}

int lcomm_cuda_unpin(void *memory) {
  LCOMM_CUDA_NEED_NO_BAR();
  return memory ? LCOMM_CUDA_ASIDE(cudaHostUnregister(memory)) : 0;
}

int lcomm_cuda_memory_copy(void *destination, const void *source, size_t size, void *stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  return size ? LCOMM_CUDA_ASIDE(cudaMemcpyAsync(destination, source, size, cudaMemcpyDefault,
                                                 (cudaStream_t)stream))
              : 0;
}

int lcomm_cuda_fill(void *memory, int byte, size_t size, void *stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  return size ? lcomm_cuda_result(cudaMemsetAsync(memory, byte, size, (cudaStream_t)stream)) : 0;
}
