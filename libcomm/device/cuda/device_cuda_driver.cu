/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The driver's library, opened at run time: the module must load without it, to
 * say that it is missing. */

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "libcomm/device/cuda/device_cuda_internal.cuh"

static const struct {
  const char *name;
  size_t place;
} functions[] = {
#define ENTRY(field, function) {#function, offsetof(lcomm_cuda_driver_functions, field)},
    LCOMM_CUDA_DRIVER_FUNCTIONS(ENTRY)
#undef ENTRY
};

lcomm_cuda_driver_functions lcomm_cuda_driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int verdict;

/* Never closed: the runtime uses it, too. */
static void open_once(void) {
  lcomm_cuda_driver_functions found;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  verdict = library ? 0 : (int)cudaErrorInsufficientDriver;
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && verdict == 0; i++) {
    void *address = dlsym(library, functions[i].name);
    if (!address) {
      verdict = (int)cudaErrorInsufficientDriver;
    }
    memcpy((char *)&found + functions[i].place, &address, sizeof(address));
  }
  if (verdict == 0) {
    verdict = (int)found.init(0);
  }
  if (verdict == 0) {
    lcomm_cuda_driver = found;
  }
}

int lcomm_cuda_driver_open(void) {
  pthread_once(&once, open_once);
  return verdict;
}

int lcomm_cuda_need_context(void) {
  CUcontext context = NULL;
  int device = 0;
  int error = (int)lcomm_cuda_driver.context_current(&context);
  if (error != 0 || context) {
    return error;
  }
  error = lcomm_cuda_result(cudaGetDevice(&device));
  return error ? error : lcomm_cuda_result(cudaSetDevice(device));
}
