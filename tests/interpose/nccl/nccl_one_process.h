/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_ONE_PROCESS_H
#define LCOMM_TESTS_NCCL_ONE_PROCESS_H

/* A process with several ranks, each on an emulated device of its own. Included by one program
 * each. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_abi.h"
#include "libcomm/interpose/nccl/nccl_functions.h"
#include "tests/support/emulated/emulated_device.h"
#include "tests/support/emulated/emulated_runtime.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

#define DECLARE(name, kind, n, ...)                                                                \
  LCOMM_NCCL_RETURNS(kind) nccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);
LCOMM_NCCL_LIST(DECLARE)

enum { RANKS_MAX = 8, DEVICES = RANKS_MAX, COUNT = 5000 };

/* What each rank has. */
typedef struct rank_state {
  ncclComm_t comm;
  cudaStream_t stream;
  int *from, *to;
} rank_state;

#define FINE(call)                                                                                 \
  do {                                                                                             \
    ncclResult_t result_ = (call);                                                                 \
    forked_require(self, result_ == ncclSuccess, "%s is %d: %s", #call, (int)result_,              \
                   ncclGetLastError(NULL));                                                        \
  } while (0)
#define CUDA(call)                                                                                 \
  do {                                                                                             \
    cudaError_t error_ = (call);                                                                   \
    forked_require(self, error_ == cudaSuccess, "%s: %s", #call, cudaGetErrorString(error_));      \
  } while (0)

/* ----------------------------------------------------------------- the process */

static inline void begin(const char *policy) {
  const emulated_setup setup = {.devices = DEVICES,
                                .kernels = &lcomm_cuda_kernels_table,
                                .seed = 5,
                                .pause_us_max = 50,
                                .apart = true};
  setenv("LCOMM_NCCL", "alone", 1);
  setenv("LCOMM_POLICY", policy, 1);
  lcomm_device_replace(emulated_begin(&setup));
}

static inline void open_rank(forked *self, rank_state *it, int rank) {
  int values[COUNT];
  for (int i = 0; i < COUNT; i++) {
    values[i] = 100 * rank + i % 7;
  }
  CUDA(cudaSetDevice(rank % DEVICES));
  CUDA(cudaStreamCreate(&it->stream));
  CUDA(cudaMalloc((void **)&it->from, RANKS_MAX * sizeof(values)));
  CUDA(cudaMalloc((void **)&it->to, RANKS_MAX * sizeof(values)));
  CUDA(cudaMemcpy(it->from, values, sizeof(values), cudaMemcpyHostToDevice));
}

static inline void close_rank(forked *self, const rank_state *it) {
  CUDA(cudaStreamSynchronize(it->stream));
  CUDA(cudaStreamDestroy(it->stream));
  CUDA(cudaFree(it->from));
  CUDA(cudaFree(it->to));
}

#endif
