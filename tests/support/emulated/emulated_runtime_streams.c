/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Streams and events of CUDA's runtime over the table of emulated devices. */

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/emulated/emulated_runtime_internal.h"

/* ------------------------------------------------------------------ streams */

/* Those that were made, for cudaDeviceSynchronize(). */
typedef struct made {
  struct made *next;
  void *stream;
  int device;
} made;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static made *first;

static int list(void *stream) {
  made *it = calloc(1, sizeof *it);
  if (!it) {
    return cudaErrorMemoryAllocation;
  }
  it->stream = stream;
  it->device = emulated_runtime_current();
  pthread_mutex_lock(&lock);
  it->next = first;
  first = it;
  pthread_mutex_unlock(&lock);
  return 0;
}

static void take_off(const void *stream) {
  pthread_mutex_lock(&lock);
  made **it = &first;
  while (*it && (*it)->stream != stream) {
    it = &(*it)->next;
  }
  made *found = *it;
  if (found) {
    *it = found->next;
  }
  pthread_mutex_unlock(&lock);
  free(found);
}

/* The stream of the n-th that was made on a device; NULL: there are fewer. */
static void *stream_at(int device, int n) {
  void *found = NULL;
  pthread_mutex_lock(&lock);
  for (made *it = first; it && !found; it = it->next) {
    if (it->device == device && n-- == 0) {
      found = it->stream;
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  (void)flags;
  (void)priority;
  void *made_here = NULL;
  int error = stream ? emulated_runtime_need_device() : cudaErrorInvalidValue;
  error = error ? error : emulated_table()->stream.create(&made_here);
  error = error ? error : list(made_here);
  if (error == 0) {
    *stream = made_here;
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

int emulated_runtime_finish(void *stream) {
  int error = emulated_table()->stream.finish(stream);
  return error ? error : emulated_runtime_release(stream);
}

/* As in CUDA what is in the stream is done all the same. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  take_off(stream);
  int error = emulated_runtime_finish(stream);
  return emulated_runtime_ended(error ? error : emulated_table()->stream.destroy(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  int error = emulated_runtime_need_device();
  return emulated_runtime_ended(error ? error : emulated_runtime_finish(stream));
}

cudaError_t cudaDeviceSynchronize(void) {
  int error = cudaStreamSynchronize(NULL), device = emulated_runtime_current();
  void *stream = stream_at(device, 0);
  for (int n = 1; stream && error == 0; n++) {
    error = emulated_runtime_finish(stream);
    stream = stream_at(device, n);
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  (void)flags;
  int error = emulated_runtime_need_device();
  return emulated_runtime_ended(error ? error : emulated_table()->stream.wait(stream, event));
}

/* ------------------------------------------------------------------- events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  (void)flags;
  void *made_here = NULL;
  int error = event ? emulated_runtime_need_device() : cudaErrorInvalidValue;
  error = error ? error : emulated_table()->event.create(false, &made_here);
  if (error == 0) {
    *event = made_here;
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return emulated_runtime_ended(emulated_table()->event.destroy(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  int error = emulated_runtime_need_device();
  return emulated_runtime_ended(error ? error : emulated_table()->event.record(event, stream));
}

/* What is not ready is no error of the thread. */
cudaError_t cudaEventQuery(cudaEvent_t event) {
  bool over = false;
  int error = emulated_table()->event.query(event, &over);
  return error ? emulated_runtime_ended(error) : over ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const struct timespec moment = {.tv_nsec = 20000};
  cudaError_t error = cudaEventQuery(event);
  while (error == cudaErrorNotReady) {
    nanosleep(&moment, NULL);
    error = cudaEventQuery(event);
  }
  return error;
}

/* Emulated devices have no clock. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end) {
  cudaError_t error = cudaEventQuery(begin);
  error = error ? error : cudaEventQuery(end);
  *ms = 1;
  return error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  cudaEvent_t event = NULL;
  cudaError_t error = cudaEventCreate(&event);
  error = error ? error : cudaEventRecord(event, stream);
  error = error ? error : cudaEventQuery(event);
  if (event) {
    (void)emulated_table()->event.destroy(event);
  }
  return error;
}
