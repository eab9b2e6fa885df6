/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory of devices, and buffers that programs register. */

#include "libcomm/interpose/nccl/nccl_comm.h"

static ncclResult_t alloc(void **memory, size_t size) {
  return memory ? lcomm_nccl_ended(NULL, lcomm_device_memory_alloc(size, memory))
                : lcomm_nccl_fail(ncclInvalidArgument, "ncclMemAlloc: ptr is NULL");
}

static ncclResult_t free_memory(void *memory) {
  return lcomm_nccl_ended(NULL, lcomm_device_memory_free(memory));
}

/* Buffers need no registration; what is not NULL tells programs that it went well. */
static ncclResult_t register_buffer(const ncclComm_t comm, void *buffer, size_t size,
                                    void **handle) {
  (void)size;
  if (!comm || !buffer || !handle) {
    return lcomm_nccl_fail(ncclInvalidArgument, "ncclCommRegister: a pointer is NULL");
  }
  *handle = buffer;
  return ncclSuccess;
}

static ncclResult_t deregister_buffer(const ncclComm_t comm, void *handle) {
  (void)handle;
  return comm ? ncclSuccess
              : lcomm_nccl_fail(ncclInvalidArgument, "ncclCommDeregister: comm is NULL");
}

void lcomm_nccl_take_memory(lcomm_nccl_calls *calls) {
  calls->MemAlloc = alloc;
  calls->MemFree = free_memory;
  calls->CommRegister = register_buffer;
  calls->CommDeregister = deregister_buffer;
}
