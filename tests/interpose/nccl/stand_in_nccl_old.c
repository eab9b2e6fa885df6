/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* An NCCL that lacks most functions. */

#include "libcomm/interpose/nccl/nccl_abi.h"

#define API __attribute__((visibility("default")))

API ncclResult_t ncclGetVersion(int *version);
API const char *ncclGetLastError(ncclComm_t comm);
API ncclResult_t ncclCommCount(ncclComm_t comm, int *count);

ncclResult_t ncclGetVersion(int *version) {
  *version = 21805;
  return ncclSuccess;
}

const char *ncclGetLastError(ncclComm_t comm) {
  return comm ? "the old one's sentence" : "";
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count) {
  *count = comm ? 1 : 0;
  return ncclSuccess;
}
