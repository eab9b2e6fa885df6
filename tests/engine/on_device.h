/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_ON_DEVICE_H
#define LCOMM_TESTS_ENGINE_ON_DEVICE_H

/* Buffers on a device, for the same calls as on the host. The device is a real one
 * where the program has chosen it, else an emulated one, whose streams take their
 * time. Included by one program each. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/device/device.h"
#include "tests/support/require_fine.h"

static const lcomm_device_table *device;

/* The exit code for main: properties share the first real device. Without one the program says
 * that it is skipped, and why. */
static inline int real_device_main(int *argc, char ***argv, const char *program,
                                   const mpi_property *properties, int count) {
  lcomm_why why;
  device = lcomm_device_get(&why);
  if (!device) {
    printf("SKIP %s: %s\n", program, why.text);
    return 77;
  }
  device->use(0);
  return mpi_property_main_threads(argc, argv, properties, count);
}

static inline void check(int error) {
  require(error == 0, "the device: %s", error == 0 ? "" : device->explain(error));
}

static inline void *on_device(size_t size) {
  void *memory = NULL;
  check(device->memory.get(size + 1, &memory));
  return memory;
}

/* Copies that are over when they return. */
static inline void to_device(void *there, const void *here, size_t size) {
  check(device->copy(there, here, size, NULL));
  check(device->stream.finish(NULL));
}

static inline void from_device(void *here, const void *there, size_t size) {
  to_device(here, there, size);
}

static inline lcomm_comm *make_driven(const char *policy, int nodes, lcomm_progress_mode mode) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.nodes = nodes;
  config.progress = mode;
  config.timeout_s = 60;
  return make_comm_if_possible(&config);
}

/* One without a policy that waits for silent peers for so long. */
static inline lcomm_comm *make_impatient(int nodes, double timeout_s) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.nodes = nodes;
  config.progress = LCOMM_PROGRESS_CALLS;
  config.timeout_s = timeout_s;
  return make_comm_if_possible(&config);
}

#endif
