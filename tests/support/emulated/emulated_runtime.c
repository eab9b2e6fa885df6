/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* CUDA's runtime over the table of emulated devices. Its errors have the table's numbers, which
 * explain() knows. */

#include "tests/support/emulated/emulated_runtime_internal.h"

#include <stdio.h>

static _Thread_local cudaError_t last;

/* Keeps what is no success. */
cudaError_t emulated_runtime_ended(int error) {
  last = error ? (cudaError_t)error : last;
  return (cudaError_t)error;
}

static const lcomm_device_table *table(void) {
  return emulated_table();
}

/* ------------------------------------------------------------------ devices */

int emulated_runtime_current(void) {
  int device = 0;
  return table()->current(&device) == 0 && device >= 0 ? device : 0;
}

int emulated_runtime_need_device(void) {
  int device = LCOMM_DEVICE_NONE;
  int error = table()->current(&device);
  return error || device >= 0 ? error : table()->use(0);
}

cudaError_t cudaGetDeviceCount(int *count) {
  return emulated_runtime_ended(table()->count(count));
}

cudaError_t cudaGetDevice(int *device) {
  *device = emulated_runtime_current();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  int count = 0;
  int error = table()->count(&count);
  bool is_there = error || (device >= 0 && device < count);
  return emulated_runtime_ended(error      ? error
                                : is_there ? table()->use(device)
                                           : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  lcomm_device_facts facts;
  int error = table()->facts(device, &facts);
  if (error == 0) {
    *value = attribute == cudaDevAttrComputeCapabilityMajor   ? facts.major
             : attribute == cudaDevAttrComputeCapabilityMinor ? facts.minor
                                                              : 1;
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device) {
  lcomm_device_facts facts;
  int error = table()->facts(device, &facts);
  if (error == 0) {
    snprintf(id, (size_t)size, "%s", facts.pci);
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  bool possible = false;
  int error = table()->ipc.peer_access(device, peer, &possible);
  *can = possible;
  return emulated_runtime_ended(error);
}

cudaError_t cudaDriverGetVersion(int *version) {
  int runtime;
  return emulated_runtime_ended(table()->version(version, &runtime));
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  int driver;
  return emulated_runtime_ended(table()->version(&driver, version));
}

/* ------------------------------------------------------------------- errors */

cudaError_t cudaGetLastError(void) {
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) {
  return last;
}

const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess         ? "no error"
         : error == cudaErrorNotReady ? "not ready"
                                      : table()->explain((int)error);
}

const char *cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "an error of the emulated device";
}

/* ------------------------------------------------------------------- memory */

cudaError_t cudaMalloc(void **memory, size_t size) {
  int error = memory ? emulated_runtime_need_device() : cudaErrorInvalidValue;
  return emulated_runtime_ended(error ? error : table()->memory.get(size, memory));
}

cudaError_t cudaFree(void *memory) {
  return emulated_runtime_ended(memory ? table()->memory.free(memory) : 0);
}

cudaError_t cudaMallocHost(void **memory, size_t size) {
  int error = memory ? emulated_runtime_need_device() : cudaErrorInvalidValue;
  return emulated_runtime_ended(error ? error : table()->memory.pinned_get(size, memory));
}

cudaError_t cudaHostAlloc(void **memory, size_t size, unsigned flags) {
  (void)flags;
  return cudaMallocHost(memory, size);
}

cudaError_t cudaFreeHost(void *memory) {
  return emulated_runtime_ended(memory ? table()->memory.pinned_free(memory) : 0);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  (void)kind; /* addresses tell */
  int error = emulated_runtime_need_device();
  return emulated_runtime_ended(error || size == 0 ? error : table()->copy(to, from, size, stream));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind) {
  cudaError_t error = cudaMemcpyAsync(to, from, size, kind, NULL);
  return error ? error : cudaStreamSynchronize(NULL);
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t size, cudaStream_t stream) {
  int error = emulated_runtime_need_device();
  return emulated_runtime_ended(error || size == 0 ? error
                                                   : table()->set(memory, byte, size, stream));
}

cudaError_t cudaMemset(void *memory, int byte, size_t size) {
  return cudaMemsetAsync(memory, byte, size, NULL);
}

/* ------------------------------------------------------------------- driver */

int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}

int cuDriverGetVersion(int *version) {
  return (int)cudaDriverGetVersion(version);
}

int cuDeviceGetCount(int *count) {
  return (int)cudaGetDeviceCount(count);
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
