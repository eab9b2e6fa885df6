/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_MEMORY_HANDLE_H
#define LCOMM_ENGINE_MEMORY_HANDLE_H

/* What a memory handle (device_zcopy.h) says, and what may be believed of it: all of it came
 * from a peer. */

#include "libcomm/device/device.h"

/* The beginning of a memory handle's bytes. */
typedef struct lcomm_memory_handle {
  lcomm_device_ipc memory;
  uint64_t size; /* of the payload */
} lcomm_memory_handle;

/* Is it about a payload of `size` bytes that lies in the memory it describes? */
bool lcomm_memory_handle_fits(const lcomm_memory_handle *handle, uint64_t size);

/* Two pieces of memory of one peer: do they have the same handle, number and size? */
bool lcomm_device_ipc_is_same(const lcomm_device_ipc *a, const lcomm_device_ipc *b);

/* Do two pieces with different numbers lie in one place at their peer? Then the
 * older one is gone there. */
bool lcomm_device_ipc_is_gone(const lcomm_device_ipc *older, const lcomm_device_ipc *memory);

#endif
