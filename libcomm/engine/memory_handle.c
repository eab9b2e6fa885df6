/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/memory_handle.h"

#include <string.h>

bool lcomm_memory_handle_fits(const lcomm_memory_handle *handle, uint64_t size) {
  const lcomm_device_ipc *memory = &handle->memory;
  return handle->size == size && memory->offset <= memory->size &&
         size <= memory->size - memory->offset;
}

static bool has_same_handle(const lcomm_device_ipc *a, const lcomm_device_ipc *b) {
  return memcmp(a->handle, b->handle, sizeof(a->handle)) == 0;
}

bool lcomm_device_ipc_is_same(const lcomm_device_ipc *a, const lcomm_device_ipc *b) {
  return a->allocation == b->allocation && a->size == b->size && has_same_handle(a, b);
}

bool lcomm_device_ipc_is_gone(const lcomm_device_ipc *older, const lcomm_device_ipc *memory) {
  bool overlap = older->base - memory->base < memory->size ||
                 memory->base - older->base < older->size; /* whichever begins later */
  return older->allocation != memory->allocation && (overlap || has_same_handle(older, memory));
}
