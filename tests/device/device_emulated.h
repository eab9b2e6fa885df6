/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_DEVICE_EMULATED_H
#define LCOMM_TESTS_DEVICE_EMULATED_H

/* The emulated devices of one test. */

#include "tests/device/device_objects.h"
#include "tests/support/emulated/emulated_device.h"

static inline int begin_devices(const emulated_setup *setup) {
  device = emulated_begin(setup);
  return device->use(0);
}

/* Whatever a test has not given back fails it. */
static int end_devices(void **state) {
  (void)state;
  int left = emulated_end();
  if (left > 0) {
    print_error("%d objects were left\n", left);
  }
  return left;
}

#endif
