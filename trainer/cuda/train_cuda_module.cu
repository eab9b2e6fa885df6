/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The devices of this machine, and what libtrainer-cuda.so exports. */

#include "trainer/cuda/train_cuda_blas.cuh"
#include "trainer/cuda/train_cuda_internal.cuh"

/* No error stays behind. */
static int result(cudaError_t error) {
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
  }
  return (int)error;
}

static int count(int *devices) {
  *devices = 0;
  int error = result(cudaGetDeviceCount(devices));
  return error == (int)cudaErrorNoDevice ? 0 : error;
}

/* A kernel that is used for the first time is loaded, which waits for the whole device, and so for
 * gradients on their way. All are asked for something now, which loads them. */
static int load_kernels(void) {
  int error = 0;
  for (const lcomm_cuda_listed *it = lcomm_cuda_list; it && !error; it = it->next) {
    cudaFuncAttributes facts;
    error = result(cudaFuncGetAttributes(&facts, it->kernel));
  }
  return error;
}

static train_cuda_calls calls;

static int open_device(int device, void **stream) {
  int error = result(cudaSetDevice(device));
  error = error ? error : load_kernels();
  error = error ? error
                : result(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking));
  return error ? error : train_cuda_blas_open(&calls.multiply);
}

static const char *explain(int error) {
  return error >= TRAIN_CUDA_BLAS_ERRORS ? "a matrix product of cuBLASLt failed"
                                         : cudaGetErrorString((cudaError_t)error);
}

static int get(size_t size, void **memory) {
  return result(cudaMalloc(memory, size ? size : 1));
}

static int release(void *memory) {
  return result(cudaFree(memory));
}

static int copy(void *to, const void *from, size_t size, void *stream) {
  return result(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, (cudaStream_t)stream));
}

static int clear(void *memory, size_t size, void *stream) {
  return result(cudaMemsetAsync(memory, 0, size, (cudaStream_t)stream));
}

static int finish(void *stream) {
  return result(cudaStreamSynchronize((cudaStream_t)stream));
}

static int fork_stream(void **stream) {
  return result(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking));
}

static int record(void **event, void *stream) {
  int error =
      *event ? 0 : result(cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventDisableTiming));
  return error ? error : result(cudaEventRecord((cudaEvent_t)*event, (cudaStream_t)stream));
}

static int follow(void *stream, void *event) {
  return result(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}

extern "C" __attribute__((visibility("default"))) const backend *
trainer_cuda_open(int number, precision_kind stored, const char **why) {
  calls.count = count;
  calls.open = open_device;
  calls.explain = explain;
  calls.get = get;
  calls.free = release;
  calls.copy = copy;
  calls.clear = clear;
  calls.finish = finish;
  calls.fork = fork_stream;
  calls.record = record;
  calls.follow = follow;
  return train_cuda_open(&calls, number, stored, why);
}
