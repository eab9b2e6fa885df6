/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_CUDA_TRAIN_CUDA_H
#define TRAINER_CUDA_TRAIN_CUDA_H

#include "trainer/train_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The back end of CUDA devices. Its kernels run on a device, or on the emulated grid of the tests;
 * what else they need of a device is a table. */

/* Functions return 0, or the number of an error. */
typedef struct train_cuda_calls {
  int (*count)(int *devices);
  /* From now on this thread uses the device: its kernels are there, and a stream for them. */
  int (*open)(int device, void **stream);
  const char *(*explain)(int error);
  int (*get)(size_t size, void **memory);
  int (*free)(void *memory);
  /* Between any two places, in order with the stream. Memory of the host is read before it
   * returns. */
  int (*copy)(void *to, const void *from, size_t size, void *stream);
  int (*clear)(void *memory, size_t size, void *stream);
  int (*finish)(void *stream);
  /* Another stream; what is in a stream now, as an event, which is made where *event is NULL; a
   * stream goes on when that is over. */
  int (*fork)(void **stream);
  int (*record)(void **event, void *stream);
  int (*follow)(void *stream, void *event);
  /* Of elements that are `stored` so. NULL: a plain kernel multiplies. */
  int (*multiply)(const product *of, precision_kind stored, void *stream);
} train_cuda_calls;

/* The back end on device `number` modulo how many there are: ranks may share one; its elements are
 * `stored` so. NULL: `why` is a sentence. Once in a process. */
const backend *train_cuda_open(const train_cuda_calls *calls, int number, precision_kind stored,
                               const char **why);

/* What libtrainer-cuda.so exports: the same with the devices of this machine. */
typedef const backend *trainer_cuda_open_function(int number, precision_kind stored,
                                                  const char **why);
trainer_cuda_open_function trainer_cuda_open;

#ifdef __cplusplus
}
#endif

#endif
