/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_STAND_IN_NCCL_SMALL_H
#define LCOMM_TESTS_STAND_IN_NCCL_SMALL_H

/* A small NCCL for emulated devices: its ranks are processes or threads of one host, its calls end
 * before they return, or before their group does. */

#include <stdatomic.h>

#include "libcomm/device/device.h"

/* Its data, for dlsym(): "stand_in_small". */
typedef struct stand_in_small_data {
  const lcomm_device_table *device; /* set before the first call */
  atomic_int sums, moves;           /* calls that it has made */
  atomic_int made, ended;           /* communicators */
} stand_in_small_data;

extern stand_in_small_data stand_in_small;

#endif
