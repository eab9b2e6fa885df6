/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Emulated devices (tests/support/emulated/) for programs that open libcomm.so instead of being
 * linked with it: libcomm-cuda.so and CUDA's driver in one library. A process that has opened it
 * has devices; it is opened after a fork, as its streams are threads. */

#include "libcomm/device/device.h"
#include "libcomm/include/libcomm.h"
#include "tests/support/emulated/emulated_device.h"

#define EXPORTED __attribute__((visibility("default")))

extern EXPORTED struct lcomm_device_module lcomm_device_module;
struct lcomm_device_module lcomm_device_module;

__attribute__((constructor)) static void begin(void) {
  const emulated_setup setup = {
      .devices = 2, .kernels = &lcomm_cuda_kernels_table, .seed = 11, .pause_us_max = 500};
  lcomm_device_module = (struct lcomm_device_module){
      .size = LCOMM_DEVICE_MODULE_SIZE,
      .version = (uint32_t)lcomm_version(),
      .table = emulated_begin(&setup),
  };
}

/* What a framework does with a device. 0 on success. */

EXPORTED int device_memory_get(size_t size, void **memory);
int device_memory_get(size_t size, void **memory) {
  return emulated_table()->memory.get(size, memory);
}

EXPORTED int device_stream_create(void **stream);
int device_stream_create(void **stream) {
  return emulated_table()->stream.create(stream);
}

EXPORTED int device_copy(void *destination, const void *source, size_t size, void *stream);
int device_copy(void *destination, const void *source, size_t size, void *stream) {
  return emulated_table()->copy(destination, source, size, stream);
}

/* CUDA's own name of its driver's function. */
EXPORTED int cuStreamSynchronize(void *stream);
int cuStreamSynchronize(void *stream) {
  return emulated_table()->stream.finish(stream);
}
