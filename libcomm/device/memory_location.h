/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DEVICE_MEMORY_LOCATION_H
#define LCOMM_DEVICE_MEMORY_LOCATION_H

/* Where memory is, and buffers: views of elements somewhere. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"

enum { LCOMM_MEMORY_LOCATION_NAME_MAX = 32 };

/* What lies behind an address. */
typedef enum lcomm_memory_kind {
  LCOMM_MEMORY_HOST,    /* of the host, or unknown */
  LCOMM_MEMORY_PINNED,  /* of the host, known to the device */
  LCOMM_MEMORY_DEVICE,  /* of a device */
  LCOMM_MEMORY_MANAGED, /* moves between them by itself */
  LCOMM_MEMORY_KIND_COUNT
} lcomm_memory_kind;

/* All zero: the host. */
typedef struct lcomm_memory_location {
  lcomm_memory_kind kind;
  int device; /* DEVICE, MANAGED: whose */
} lcomm_memory_location;

/* A view of `count` elements; owns nothing. */
typedef struct lcomm_buffer {
  void *data; /* may be NULL when count is 0 */
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_memory_location location;
} lcomm_buffer;

static inline bool lcomm_memory_is_on_device(lcomm_memory_location location) {
  return location.kind == LCOMM_MEMORY_DEVICE || location.kind == LCOMM_MEMORY_MANAGED;
}

/* Both on the host, or both on one device. */
static inline bool lcomm_memory_is_beside(lcomm_memory_location a, lcomm_memory_location b) {
  bool there = lcomm_memory_is_on_device(a);
  return there == lcomm_memory_is_on_device(b) && (!there || a.device == b.device);
}

/* Where computations on a buffer of the caller happen: HOST, or DEVICE, of managed memory, too.
 * HOST for no bytes at all. */
lcomm_memory_location lcomm_memory_location_of(const void *buffer, uint64_t size);
/* Likewise of two buffers: fills in their locations. Devices are looked for once. */
void lcomm_buffers_locate(lcomm_buffer *one, lcomm_buffer *other);

/* For people: "in host memory", "on device 1". Returns text. */
const char *lcomm_memory_location_name(lcomm_memory_location location,
                                       char text[LCOMM_MEMORY_LOCATION_NAME_MAX]);

#endif
