/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_CLIENT_H
#define LCOMM_TESTS_NCCL_CLIENT_H

/* What programs share that know NCCL and CUDA's runtime only: with libraries that stand in for
 * both, or with both. Included by one program each. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_abi.h"
#include "libcomm/interpose/nccl/nccl_functions.h"
#include "tests/support/emulated/emulated_runtime.h"

#define DECLARE(name, kind, n, ...)                                                                \
  LCOMM_NCCL_RETURNS(kind) nccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);
LCOMM_NCCL_LIST(DECLARE)

#define NCCL(call)                                                                                 \
  do {                                                                                             \
    ncclResult_t result_ = (call);                                                                 \
    if (result_ != ncclSuccess) {                                                                  \
      printf("%s: %s: %s\n", #call, ncclGetErrorString(result_), ncclGetLastError(NULL));          \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)
#define CUDA(call)                                                                                 \
  do {                                                                                             \
    cudaError_t error_ = (call);                                                                   \
    if (error_ != cudaSuccess) {                                                                   \
      printf("%s: %s\n", #call, cudaGetErrorString(error_));                                       \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* Rank 0 leaves the id in a file, which is complete when it has its name. */
static inline ncclUniqueId share_id(int rank, const char *path) {
  ncclUniqueId id;
  char unready[4096];
  FILE *file = NULL;
  snprintf(unready, sizeof(unready), "%s.unready", path);
  if (rank == 0) {
    NCCL(ncclGetUniqueId(&id));
    file = fopen(unready, "wb");
    if (!file || fwrite(&id, sizeof(id), 1, file) != 1 || fclose(file) != 0 ||
        rename(unready, path) != 0) {
      printf("%s cannot be written\n", path);
      exit(1);
    }
    return id;
  }
  while (!(file = fopen(path, "rb"))) {
    usleep(1000);
  }
  if (fread(&id, sizeof(id), 1, file) != 1) {
    printf("%s cannot be read\n", path);
    exit(1);
  }
  fclose(file);
  return id;
}

#endif
