/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_ELASTIC_MEMORY_H
#define LCOMM_TESTS_TENSOR_ELASTIC_MEMORY_H

/* Memory for buffers of elastic communicators: of the host, or, with ELASTIC_ON_DEVICE=1, of an
 * emulated device of each rank, whose memory the host reads and writes, too, while nothing works
 * with it. Included by one program each. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/device/device.h"
#include "tests/support/emulated/emulated_device.h"

static const lcomm_device_table *elastic_device; /* of this rank; NULL: its memory is the host's */

/* Not before the rank is forked: devices have threads. */
static inline void elastic_begin(void) {
  static const emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 13, .pause_us_max = 20};
  const char *wanted = getenv("ELASTIC_ON_DEVICE");
  if (!elastic_device && wanted && strcmp(wanted, "1") == 0) {
    elastic_device = emulated_begin(&setup);
    lcomm_device_replace(elastic_device);
    (void)elastic_device->use(0);
  }
}

/* Zeros; NULL without memory. */
static inline void *elastic_memory_get(size_t size) {
  void *memory = NULL;
  elastic_begin();
  if (!elastic_device) {
    return calloc(1, size);
  }
  return elastic_device->memory.get(size, &memory) == 0 ? memset(memory, 0, size) : NULL;
}

static inline void elastic_memory_free(void *memory) {
  if (elastic_device) {
    (void)elastic_device->memory.free(memory);
  } else {
    free(memory);
  }
}

#endif
