/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory in order with streams. As in CUDA's pools by default, what a stream has freed is given
 * back when the program waits for that stream; until then nobody else gets it. */

#include <pthread.h>
#include <stdlib.h>

#include "tests/support/emulated/emulated_runtime_internal.h"

typedef struct leaving {
  struct leaving *next;
  void *memory, *stream;
} leaving;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static leaving *first;

cudaError_t cudaMallocAsync(void **memory, size_t size, cudaStream_t stream) {
  (void)stream; /* it is there at once */
  int error = memory ? emulated_runtime_need_device() : cudaErrorInvalidValue;
  if (error == 0) {
    *memory = size > 0 ? emulated_pool_get(size) : NULL;
    error = size > 0 && !*memory ? cudaErrorMemoryAllocation : 0;
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  leaving *it = memory ? calloc(1, sizeof *it) : NULL;
  if (!it) {
    return emulated_runtime_ended(memory ? cudaErrorMemoryAllocation : 0);
  }
  it->memory = memory;
  it->stream = stream;
  pthread_mutex_lock(&lock);
  it->next = first;
  first = it;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

/* One that was freed in the stream, taken off the list; NULL: there is none. */
static leaving *take_off(const void *stream) {
  pthread_mutex_lock(&lock);
  leaving **it = &first;
  while (*it && (*it)->stream != stream) {
    it = &(*it)->next;
  }
  leaving *found = *it;
  if (found) {
    *it = found->next;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

int emulated_runtime_release(const void *stream) {
  int error = 0;
  leaving *it = take_off(stream);
  while (it) {
    int freed = emulated_table()->memory.free(it->memory);
    error = error ? error : freed;
    free(it);
    it = take_off(stream);
  }
  return error;
}
