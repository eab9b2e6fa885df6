/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_DEVICE_H
#define TRAINER_TRAIN_DEVICE_H

#include "trainer/cuda/train_cuda.h"
#include "trainer/train_backend.h"
#include "trainer/train_peers.h"

/* Which back end a rank computes with. That of CUDA is in libtrainer-cuda.so, which is opened when
 * it is asked for, so that the trainer runs where there is no driver. */

typedef enum device_kind {
  DEVICE_CPU,
  DEVICE_CUDA,
  DEVICE_AUTO, /* cuda where it can be had */
  DEVICE_COUNT
} device_kind;

/* "cuda", and the kind of such a name; DEVICE_COUNT: none. */
const char *device_name(device_kind kind);
device_kind device_find(const char *name);

/* Rank r uses device r modulo those that there are: ranks may share one. A device stores elements
 * of the precision, a processor float32. Once in a process. Returns NULL with `why`. */
const backend *device_open(device_kind kind, int rank, precision_kind stored, failure *why);

/* For tests: what opens CUDA devices from now on. */
void device_replace(trainer_cuda_open_function *open);

#endif
