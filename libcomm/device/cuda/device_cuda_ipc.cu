/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory and events of other processes, and of other devices of this one. */

#include <string.h>

#include "libcomm/device/cuda/device_cuda_internal.cuh"

static_assert(sizeof(cudaIpcMemHandle_t) == LCOMM_DEVICE_IPC_SIZE, "handles of memory");
static_assert(sizeof(cudaIpcEventHandle_t) == LCOMM_DEVICE_IPC_SIZE, "handles of events");

/* What is asked of the driver before memory is shared. */
typedef struct sharing {
  CUcontext context; /* NULL for memory of pools */
  uint64_t can_be_shared, number;
} sharing;

static int ask(const void *pointer, sharing *facts) {
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_CONTEXT,
                                 CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                 CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void *answers[] = {&facts->context, &facts->can_be_shared, &facts->number};
  memset(facts, 0, sizeof *facts);
  return (int)lcomm_cuda_driver.pointer_attributes(3, asked, answers,
                                                   (CUdeviceptr)(uintptr_t)pointer);
}

/* While the context that the memory belongs to is current. */
static int describe(const void *pointer, lcomm_device_ipc *ipc) {
  CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer, base = 0;
  cudaIpcMemHandle_t handle;
  size_t size = 0;
  int error = (int)lcomm_cuda_driver.address_range(&base, &size, address);
  if (error == 0) {
    error = LCOMM_CUDA_ASIDE(cudaIpcGetMemHandle(&handle, (void *)(uintptr_t)base));
  }
  if (error == 0) {
    memcpy(ipc->handle, &handle, sizeof(handle));
    ipc->base = base;
    ipc->offset = address - base;
    ipc->size = size;
  }
  return error;
}

int lcomm_cuda_ipc_get(const void *pointer, lcomm_device_ipc *ipc) {
  LCOMM_CUDA_NEED_NO_BAR();
  sharing facts;
  CUcontext popped = NULL;
  memset(ipc, 0, sizeof *ipc);
  int error = ask(pointer, &facts);
  if (error != 0) {
    return error;
  }
  if (!facts.can_be_shared || !facts.context) {
    return (int)cudaErrorNotSupported;
  }
  error = (int)lcomm_cuda_driver.context_push(facts.context);
  if (error != 0) {
    return error;
  }
  error = describe(pointer, ipc);
  ipc->allocation = facts.number;
  (void)lcomm_cuda_driver.context_pop(&popped);
  return error;
}

/* Is there as much memory as the other process said, as far as the driver knows? */
static bool is_large_enough(void *memory, uint64_t size) {
  CUdeviceptr address = (CUdeviceptr)(uintptr_t)memory, base = 0;
  size_t mapped = 0;
  if (lcomm_cuda_driver.address_range(&base, &mapped, address) != CUDA_SUCCESS) {
    return true;
  }
  return size <= mapped && address - base <= mapped - size;
}

int lcomm_cuda_ipc_open(const lcomm_device_ipc *ipc, void **allocation) {
  LCOMM_CUDA_NEED_NO_BAR();
  cudaIpcMemHandle_t handle;
  memcpy(&handle, ipc->handle, sizeof(handle));
  *allocation = NULL;
  int error =
      LCOMM_CUDA_ASIDE(cudaIpcOpenMemHandle(allocation, handle, cudaIpcMemLazyEnablePeerAccess));
  if (error == 0 && !is_large_enough(*allocation, ipc->size)) {
    (void)lcomm_cuda_ipc_close(*allocation);
    *allocation = NULL;
    error = (int)cudaErrorInvalidValue;
  }
  return error;
}

int lcomm_cuda_ipc_close(void *allocation) {
  LCOMM_CUDA_NEED_NO_BAR();
  return allocation ? LCOMM_CUDA_ASIDE(cudaIpcCloseMemHandle(allocation)) : 0;
}

int lcomm_cuda_event_ipc_get(void *event, uint8_t handle[LCOMM_DEVICE_IPC_SIZE]) {
  LCOMM_CUDA_NEED_NO_BAR();
  cudaIpcEventHandle_t its;
  int error = lcomm_cuda_result(cudaIpcGetEventHandle(&its, (cudaEvent_t)event));
  if (error == 0) {
    memcpy(handle, &its, sizeof(its));
  }
  return error;
}

int lcomm_cuda_event_ipc_open(const uint8_t handle[LCOMM_DEVICE_IPC_SIZE], void **event) {
  LCOMM_CUDA_NEED_NO_BAR();
  cudaIpcEventHandle_t its;
  memcpy(&its, handle, sizeof(its));
  *event = NULL;
  return LCOMM_CUDA_ASIDE(cudaIpcOpenEventHandle((cudaEvent_t *)event, its));
}

/* The runtime can switch it on only for the current device, and making another
 * one current would not end with making the old one current again: a program's
 * thread may have none, or a context of its own. So the device's context is put
 * on the driver's stack for a moment. The runtime has it, too, and keeps it. */
static int switch_on(int device, int peer) {
  CUcontext context = NULL, popped = NULL;
  int error = LCOMM_CUDA_ASIDE(cudaInitDevice(device, 0, 0));
  if (error == 0) {
    error = (int)lcomm_cuda_driver.context_retain(&context, (CUdevice)device);
  }
  if (error != 0) {
    return error;
  }
  error = (int)lcomm_cuda_driver.context_push(context);
  if (error == 0) {
    error = lcomm_cuda_result(cudaDeviceEnablePeerAccess(peer, 0));
    (void)lcomm_cuda_driver.context_pop(&popped);
  }
  (void)lcomm_cuda_driver.context_release((CUdevice)device);
  return error == (int)cudaErrorPeerAccessAlreadyEnabled ? 0 : error;
}

int lcomm_cuda_peer_access(int device, int peer, bool *possible) {
  LCOMM_CUDA_NEED_NO_BAR();
  int can = device == peer;
  *possible = false;
  int error = can ? 0 : lcomm_cuda_result(cudaDeviceCanAccessPeer(&can, device, peer));
  if (error == 0 && can && device != peer) {
    error = switch_on(device, peer);
  }
  *possible = error == 0 && can;
  return error;
}
