/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What programs ask CUDA's runtime and driver about devices, memory and functions. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/emulated/emulated_runtime_internal.h"

/* ------------------------------------------------------------------ devices */

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  lcomm_device_facts facts;
  int count = 0;
  int error = properties ? emulated_table()->count(&count) : cudaErrorInvalidValue;
  error = error || (device >= 0 && device < count) ? error : cudaErrorInvalidDevice;
  error = error ? error : emulated_table()->facts(device, &facts);
  if (error == 0) {
    memset(properties, 0, sizeof *properties);
    properties->totalGlobalMem = facts.memory_size;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->major = facts.major;
    properties->minor = facts.minor;
    properties->multiProcessorCount = 1;
    snprintf(properties->name, sizeof(properties->name), "%s", facts.name);
    memcpy(properties->uuid, facts.uuid, sizeof(properties->uuid));
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *all) {
  int error = unused && all ? emulated_runtime_need_device() : cudaErrorInvalidValue;
  if (error == 0) {
    emulated_memory_info(emulated_runtime_current(), unused, all);
  }
  return emulated_runtime_ended(error);
}

/* ------------------------------------------------------------------ pointers */

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  static const cudaMemoryType types[LCOMM_MEMORY_KIND_COUNT] = {
      [LCOMM_MEMORY_HOST] = cudaMemoryTypeUnregistered,
      [LCOMM_MEMORY_PINNED] = cudaMemoryTypeHost,
      [LCOMM_MEMORY_DEVICE] = cudaMemoryTypeDevice,
      [LCOMM_MEMORY_MANAGED] = cudaMemoryTypeManaged};
  int error = attributes ? emulated_runtime_need_device() : cudaErrorInvalidValue;
  if (error == 0) {
    lcomm_memory_location there = emulated_table()->locate(pointer);
    bool is_known = there.kind != LCOMM_MEMORY_HOST;
    *attributes = (cudaPointerAttributes){
        .type = types[there.kind],
        .device = !is_known          ? -2 /* cudaInvalidDeviceId */
                  : there.device < 0 ? emulated_runtime_current()
                                     : there.device,
        .devicePointer = is_known ? (void *)(uintptr_t)pointer : NULL,
        .hostPointer = there.kind != LCOMM_MEMORY_DEVICE ? (void *)(uintptr_t)pointer : NULL};
  }
  return emulated_runtime_ended(error);
}

/* As the driver: host memory that it does not know is an error, and no error of the runtime. */
int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer) {
  cudaPointerAttributes it;
  if (!value || cudaPointerGetAttributes(&it, (const void *)(uintptr_t)pointer) != cudaSuccess ||
      it.type == cudaMemoryTypeUnregistered) {
    return cudaErrorInvalidValue;
  }
  bool is_on_device = it.type != cudaMemoryTypeHost;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)value = is_on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    return 0;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *(unsigned long long *)value = pointer;
    return 0;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    *(int *)value = it.type == cudaMemoryTypeManaged;
    return 0;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *(int *)value = it.device;
    return 0;
  default:
    return cudaErrorInvalidValue;
  }
}

/* ------------------------------------------------------------------ contexts */

/* Each device has one, its primary one, whose name is its ordinal and one. */
static void *context_of(int device) {
  return (void *)(uintptr_t)(device + 1); /* NOLINT(performance-no-int-to-ptr) */
}

int cuCtxGetCurrent(void **context) {
  int device = LCOMM_DEVICE_NONE;
  int error = context ? emulated_table()->current(&device) : cudaErrorInvalidValue;
  if (error == 0) {
    *context = device >= 0 ? context_of(device) : NULL;
  }
  return error;
}

int cuCtxSetCurrent(void *context) {
  int device = (int)(uintptr_t)context - 1, count = 0;
  int error = emulated_table()->count(&count);
  error = error || (device >= 0 && device < count) ? error : cudaErrorInvalidValue;
  return error ? error : emulated_table()->use(device);
}

int cuCtxGetDevice(int *device) {
  void *context = NULL;
  int error = device ? cuCtxGetCurrent(&context) : cudaErrorInvalidValue;
  error = error || context ? error : cudaErrorDeviceUninitialized;
  if (error == 0) {
    *device = (int)(uintptr_t)context - 1;
  }
  return error;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  int count = 0;
  int error = context ? emulated_table()->count(&count) : cudaErrorInvalidValue;
  error = error || (device >= 0 && device < count) ? error : cudaErrorInvalidDevice;
  if (error == 0) {
    *context = context_of(device);
  }
  return error;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  return 0;
}

/* ----------------------------------------------------------------- functions */

/* Of functions that have versions the newest. */
static void *find_function(const char *name) {
  char versioned[128];
  snprintf(versioned, sizeof(versioned), "%s_v2", name);
  void *newest = dlsym(RTLD_DEFAULT, versioned);
  return newest ? newest : dlsym(RTLD_DEFAULT, name);
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    int *status) {
  (void)flags;
  if (!name || !function) {
    return emulated_runtime_ended(cudaErrorInvalidValue);
  }
  *function = strncmp(name, "cu", 2) == 0 ? find_function(name) : NULL;
  if (status) {
    *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags, int *status) {
  (void)version;
  return cudaGetDriverEntryPoint(name, function, flags, status);
}
