/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The table of CUDA devices, and what the module exports. */

#include <stdio.h>
#include <string.h>

#include "libcomm/device/cuda/device_cuda_internal.cuh"
#include "libcomm/include/libcomm.h"

/* That there is no device is no error. */
static int count(int *devices) {
  LCOMM_CUDA_NEED_NO_BAR();
  *devices = 0;
  int error = lcomm_cuda_result(cudaGetDeviceCount(devices));
  if (error == (int)cudaErrorNoDevice) {
    *devices = 0;
    return 0;
  }
  return error ? error : lcomm_cuda_driver_open();
}

static const char *explain(int error) {
  static const char barred[] = "a thread of libcomm called CUDA that never may, because devices "
                               "wait for it; this is a fault "
                               "of libcomm, please report it";
  return error == LCOMM_CUDA_BARRED ? barred : cudaGetErrorString((cudaError_t)error);
}

/* 32-bit waits have no attribute of their own; what has the longer ones has them. */
bool lcomm_cuda_waits_for_values(int device) {
  int has = 0;
  return lcomm_cuda_driver.attribute(&has, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
                                     (CUdevice)device) == CUDA_SUCCESS &&
         has;
}

static int describe(int device, lcomm_device_facts *facts) {
  LCOMM_CUDA_NEED_NO_BAR();
  cudaDeviceProp its;
  memset(facts, 0, sizeof *facts);
  int error = lcomm_cuda_result(cudaGetDeviceProperties(&its, device));
  if (error != 0) {
    return error;
  }
  snprintf(facts->name, sizeof(facts->name), "%.*s", LCOMM_DEVICE_NAME_MAX - 1, its.name);
  snprintf(facts->pci, sizeof(facts->pci), "%04x:%02x:%02x.0",
           (unsigned)its.pciDomainID & 0xfffffff, (unsigned)its.pciBusID & 0xff,
           (unsigned)its.pciDeviceID & 0xff);
  memcpy(facts->uuid, its.uuid.bytes, sizeof(facts->uuid));
  facts->major = its.major;
  facts->minor = its.minor;
  facts->memory_size = its.totalGlobalMem;
  facts->waits_for_values = lcomm_cuda_waits_for_values(device);
  facts->shares_memory = its.unifiedAddressing && its.ipcEventSupported;
  return 0;
}

static int version(int *driver, int *runtime) {
  LCOMM_CUDA_NEED_NO_BAR();
  int error = lcomm_cuda_result(cudaDriverGetVersion(driver));
  return error ? error : lcomm_cuda_result(cudaRuntimeGetVersion(runtime));
}

/* The runtime would name device 0 where there is no context, and to use that
 * afterwards would make one there, of some hundred megabytes, in every process. */
static int current(int *device) {
  LCOMM_CUDA_NEED_NO_BAR();
  CUcontext context = NULL;
  CUdevice its = LCOMM_DEVICE_NONE;
  int error = (int)lcomm_cuda_driver.context_current(&context);
  if (error == 0 && context) {
    error = (int)lcomm_cuda_driver.context_device(&its);
  }
  *device = (int)its;
  return error;
}

/* Where the runtime remembers a device whose context was taken away since. */
static int use_context(int device) {
  CUcontext context = NULL;
  int error = (int)lcomm_cuda_driver.context_retain(&context, (CUdevice)device);
  if (error != 0) {
    return error;
  }
  error = (int)lcomm_cuda_driver.context_set(context);
  (void)lcomm_cuda_driver.context_release((CUdevice)device); /* the runtime has it, too */
  return error;
}

static int use(int device) {
  LCOMM_CUDA_NEED_NO_BAR();
  if (device == LCOMM_DEVICE_NONE) {
    return (int)lcomm_cuda_driver.context_set(NULL);
  }
  CUcontext context = NULL;
  LCOMM_DEVICE_TRY(LCOMM_CUDA_ASIDE(cudaSetDevice(device)));
  LCOMM_DEVICE_TRY((int)lcomm_cuda_driver.context_current(&context));
  return context ? 0 : use_context(device);
}

static const lcomm_device_table table = {
    .name = "cuda",
    .kernels = &lcomm_cuda_kernels_table,
    .count = count,
    .explain = explain,
    .facts = describe,
    .version = version,
    .current = current,
    .use = use,
    .load = lcomm_cuda_load,
    .locate = lcomm_cuda_locate,
    .memory = {.get = lcomm_cuda_memory_get,
               .free = lcomm_cuda_memory_free,
               .managed_get = lcomm_cuda_managed_get,
               .pinned_get = lcomm_cuda_pinned_get,
               .pinned_free = lcomm_cuda_pinned_free,
               .pin = lcomm_cuda_pin,
               .unpin = lcomm_cuda_unpin},
    .stream = {.create = lcomm_cuda_stream_create,
               .work_create = lcomm_cuda_work_stream_create,
               .destroy = lcomm_cuda_stream_destroy,
               .finish = lcomm_cuda_stream_finish,
               .captured = lcomm_cuda_stream_captured,
               .retain = lcomm_cuda_stream_retain,
               .wait = lcomm_cuda_stream_wait,
               .numbers = lcomm_cuda_stream_numbers,
               .gates = lcomm_cuda_stream_gates},
    .event = {.create = lcomm_cuda_event_create,
              .destroy = lcomm_cuda_event_destroy,
              .record = lcomm_cuda_event_record,
              .query = lcomm_cuda_event_query},
    .ipc = {.get = lcomm_cuda_ipc_get,
            .open = lcomm_cuda_ipc_open,
            .close = lcomm_cuda_ipc_close,
            .event_get = lcomm_cuda_event_ipc_get,
            .event_open = lcomm_cuda_event_ipc_open,
            .peer_access = lcomm_cuda_peer_access},
    .copy = lcomm_cuda_memory_copy,
    .set = lcomm_cuda_fill,
};

extern "C" {
__attribute__((visibility("default"))) extern const struct lcomm_device_module lcomm_device_module;

const struct lcomm_device_module lcomm_device_module = {
    LCOMM_DEVICE_MODULE_SIZE,
    LCOMM_VERSION_MAJOR * 10000 + LCOMM_VERSION_MINOR * 100 + LCOMM_VERSION_PATCH,
    &table,
    &lcomm_cuda_is_barred,
};
}
