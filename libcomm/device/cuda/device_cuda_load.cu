/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Kernels are loaded when they are first used, which waits for the whole device and
 * keeps all other threads from it ("Lazy Loading" in CUDA's programming guide). So
 * all are asked for something before, which loads them. */

#include <pthread.h>
#include <stdint.h>

#include "kernels/cuda/cuda_grid.cuh"
#include "libcomm/device/cuda/device_cuda_internal.cuh"

enum { DEVICES_REMEMBERED = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t loaded; /* a bit for each device */

static int load_all(void) {
  int error = 0;
  for (const lcomm_cuda_listed *it = lcomm_cuda_list; it && !error; it = it->next) {
    cudaFuncAttributes facts;
    error = LCOMM_CUDA_ASIDE(cudaFuncGetAttributes(&facts, it->kernel));
  }
  return error;
}

int lcomm_cuda_load(void) {
  LCOMM_CUDA_NEED_NO_BAR();
  int device = 0;
  int error = lcomm_cuda_result(cudaGetDevice(&device));
  if (error != 0) {
    return error;
  }
  uint64_t bit = device < DEVICES_REMEMBERED ? UINT64_C(1) << device : 0;
  pthread_mutex_lock(&lock);
  error = (loaded & bit) ? 0 : load_all();
  loaded |= error == 0 ? bit : 0;
  pthread_mutex_unlock(&lock);
  return error;
}
