/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_STREAM_STREAM_LOAD_H
#define LCOMM_TOOLS_STREAM_STREAM_LOAD_H

/* What a device computes beside sums: products of matrices, as training does. */

#include "libcomm/device/device.h"

typedef struct stream_load {
  void *state;
  int (*put)(void *state, void *stream); /* one product into the stream; 0, or it failed */
  void (*free)(void *state);
} stream_load;

/* Of cuBLAS, which is opened now; false with a sentence where there is none. */
bool stream_load_cublas(const lcomm_device_table *device, stream_load *load, lcomm_why *why);

#endif
