/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory for callers' buffers that peers of this host can view. */

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm.h"
#include "libcomm/transport/shm/shm_heap.h"

lcomm_status lcomm_memory_alloc(size_t size, void **memory) {
  if (!memory) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "lcomm_memory_alloc: there is nowhere to write the address to");
  }
  void *got = lcomm_shm_heap_get(size);
  if (!got) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "lcomm_memory_alloc: no memory for %zu bytes",
                              size);
  }
  *memory = got;
  return LCOMM_OK;
}

lcomm_status lcomm_memory_free(void *memory) {
  if (!memory || lcomm_shm_heap_free(memory)) {
    return LCOMM_OK;
  }
  return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                            "lcomm_memory_free: %p is not what lcomm_memory_alloc() gave to this "
                            "process, or it was freed before",
                            memory);
}
