/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DEVICE_MEMORY_LOCATION_H
#define LCOMM_DEVICE_MEMORY_LOCATION_H

/* Where a buffer of the caller is: 0 is the host, n + 1 is device n. */

#include <stddef.h>
#include <stdint.h>

enum { LCOMM_MEMORY_LOCATION_NAME_MAX = 32 };

/* The place of an address; the host for no bytes at all. */
int lcomm_memory_location_of(const void *buffer, uint64_t size);

/* For people: "in host memory", "on device 1". Returns text. */
const char *lcomm_memory_location_name(int place, char text[LCOMM_MEMORY_LOCATION_NAME_MAX]);

#endif
