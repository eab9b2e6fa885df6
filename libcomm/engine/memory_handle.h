/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_MEMORY_HANDLE_H
#define LCOMM_ENGINE_MEMORY_HANDLE_H

/* What a memory handle (device_zcopy.h) says, and what may be believed of it: all of it came
 * from a peer. The memory that handles have opened. */

#include "libcomm/device/device.h"
#include "libcomm/include/libcomm.h"

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

/* An allocation of a peer, open here. */
typedef struct lcomm_device_map {
  int peer;
  int ordinal; /* the device that it was opened on */
  lcomm_device_ipc memory;
  void *base;
  void *stream; /* for copies to the host: no other stream has to wait for it, or it for them */
  struct lcomm_device_map *next;
} lcomm_device_map;

/* Open it on device `ordinal`, which is in use; it stays open. The number of a call that failed,
 * or 0. */
int lcomm_device_map_open(lcomm_comm *comm, int peer, int ordinal, const lcomm_device_ipc *memory,
                          lcomm_device_map **opened);

/* Close all of a communicator; part of lcomm_comm_free. */
void lcomm_device_maps_free(lcomm_comm *comm);

#endif
