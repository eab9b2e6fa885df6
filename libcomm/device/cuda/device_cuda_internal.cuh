/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DEVICE_CUDA_DEVICE_CUDA_INTERNAL_CUH
#define LCOMM_DEVICE_CUDA_DEVICE_CUDA_INTERNAL_CUH

/* What the parts of CUDA's table offer to each other. Each of its functions but explain begins with
 * LCOMM_CUDA_NEED_NO_BAR. They use the runtime, which
 * is linked statically and so has errors and a current device of its own, beside
 * those of the program's runtime; both follow the driver's current context. The
 * driver itself is asked where the runtime would make a context just to answer,
 * or would leave another device current.
 */

#include <cuda.h>
#include <cuda_runtime.h>

#include "kernels/cuda/cuda_bar.h"
#include "libcomm/device/device.h"

/* Headers of CUDA 13 name a later one only, which older drivers lack. */
extern "C" CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream,
                                                      CUstreamCaptureStatus *status,
                                                      cuuint64_t *capture, CUgraph *graph,
                                                      const CUgraphNode **dependencies,
                                                      size_t *count);

/* Our names, and those that the driver exports: a suffix is part of what is called. */
#define LCOMM_CUDA_DRIVER_FUNCTIONS(X)                                                             \
  X(init, cuInit)                                                                                  \
  X(attribute, cuDeviceGetAttribute)                                                               \
  X(context_retain, cuDevicePrimaryCtxRetain)                                                      \
  X(context_release, cuDevicePrimaryCtxRelease_v2)                                                 \
  X(context_current, cuCtxGetCurrent)                                                              \
  X(context_set, cuCtxSetCurrent)                                                                  \
  X(context_device, cuCtxGetDevice)                                                                \
  X(context_push, cuCtxPushCurrent_v2)                                                             \
  X(context_pop, cuCtxPopCurrent_v2)                                                               \
  X(pointer_attributes, cuPointerGetAttributes)                                                    \
  X(address_range, cuMemGetAddressRange_v2)                                                        \
  X(capture_mode, cuThreadExchangeStreamCaptureMode)                                               \
  X(capture_info, cuStreamGetCaptureInfo_v2)                                                       \
  X(numbers, cuStreamBatchMemOp_v2)

typedef struct lcomm_cuda_driver_functions {
#define LCOMM_CUDA_FIELD(field, function) __typeof__(function) *field;
  LCOMM_CUDA_DRIVER_FUNCTIONS(LCOMM_CUDA_FIELD)
#undef LCOMM_CUDA_FIELD
} lcomm_cuda_driver_functions;

/* All NULL before lcomm_cuda_driver_open() returned 0. */
extern lcomm_cuda_driver_functions lcomm_cuda_driver;
int lcomm_cuda_driver_open(void);

/* Errors of runtime and driver have the same numbers. No error stays behind. */
static inline int lcomm_cuda_result(cudaError_t error) {
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
  }
  return (int)error;
}

/* A call that a capture of the program would forbid, and be spoilt by: in the usual
 * mode one thread's capture does that to all threads. What we do is no part of it. */
#define LCOMM_CUDA_ASIDE(call)                                                                     \
  ({                                                                                               \
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;                                    \
    (void)lcomm_cuda_driver.capture_mode(&mode_);                                                  \
    int error_ = lcomm_cuda_result(call);                                                          \
    (void)lcomm_cuda_driver.capture_mode(&mode_);                                                  \
    error_;                                                                                        \
  })

/* The driver's functions need a current context, which the runtime makes when it
 * is first needed: do as it does. */
int lcomm_cuda_need_context(void);

/* device_cuda_table.cu: can its streams wait for values, and write them? */
bool lcomm_cuda_waits_for_values(int device);

/* device_cuda_load.cu */
int lcomm_cuda_load(void);

/* device_cuda_memory.cu */
lcomm_memory_location lcomm_cuda_locate(const void *pointer);
int lcomm_cuda_memory_get(size_t size, void **memory);
int lcomm_cuda_memory_free(void *memory);
int lcomm_cuda_managed_get(size_t size, void **memory);
int lcomm_cuda_pinned_get(size_t size, void **memory);
int lcomm_cuda_pinned_free(void *memory);
int lcomm_cuda_pin(void *memory, size_t size);
int lcomm_cuda_unpin(void *memory);
int lcomm_cuda_memory_copy(void *destination, const void *source, size_t size, void *stream);
int lcomm_cuda_fill(void *memory, int byte, size_t size, void *stream);

/* device_cuda_stream.cu */
int lcomm_cuda_stream_create(void **stream);
int lcomm_cuda_work_stream_create(void **stream);
int lcomm_cuda_stream_destroy(void *stream);
int lcomm_cuda_stream_finish(void *stream);
int lcomm_cuda_stream_captured(void *stream, uint64_t *capture);
int lcomm_cuda_stream_retain(void *stream, void (*released)(void *data), void *data);
int lcomm_cuda_event_create(bool for_processes, void **event);
int lcomm_cuda_event_destroy(void *event);
int lcomm_cuda_event_record(void *event, void *stream);
int lcomm_cuda_event_query(void *event, bool *over);
int lcomm_cuda_stream_wait(void *stream, void *event);
int lcomm_cuda_stream_numbers(void *stream, const lcomm_device_number *list, uint32_t count);
int lcomm_cuda_stream_gates(void *stream, const lcomm_device_gate *list, uint32_t count);

/* device_cuda_ipc.cu */
int lcomm_cuda_ipc_get(const void *pointer, lcomm_device_ipc *ipc);
int lcomm_cuda_ipc_open(const lcomm_device_ipc *ipc, void **allocation);
int lcomm_cuda_ipc_close(void *allocation);
int lcomm_cuda_event_ipc_get(void *event, uint8_t handle[LCOMM_DEVICE_IPC_SIZE]);
int lcomm_cuda_event_ipc_open(const uint8_t handle[LCOMM_DEVICE_IPC_SIZE], void **event);
int lcomm_cuda_peer_access(int device, int peer, bool *possible);

#endif
