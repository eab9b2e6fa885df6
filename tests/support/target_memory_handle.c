/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_memory_handle.h"

#include "libcomm/engine/memory_handle.h"
#include "tests/support/fuzz_bytes.h"
#include "tests/support/fuzz_promise.h"

/* Byte by byte: is any address of one in the other? Only short pieces are looked at. */
static bool overlap(const lcomm_device_ipc *a, const lcomm_device_ipc *b) {
  for (uint64_t i = 0; i < a->size; i++) {
    if (a->base + i - b->base < b->size) {
      return true;
    }
  }
  return false;
}

static void compare(const lcomm_device_ipc *a, const lcomm_device_ipc *b) {
  bool same = lcomm_device_ipc_is_same(a, b), gone = lcomm_device_ipc_is_gone(a, b);
  fuzz_require(lcomm_device_ipc_is_same(b, a) == same && lcomm_device_ipc_is_gone(b, a) == gone,
               "pieces compare alike from both sides");
  fuzz_require(!(same && gone), "a piece that is the same is not gone");
  if (a->size > 0 && a->size <= 256 && b->size > 0 && a->allocation != b->allocation &&
      memcmp(a->handle, b->handle, sizeof(a->handle)) != 0) {
    fuzz_require(gone == overlap(a, b), "pieces in one place are found");
  }
}

void lcomm_fuzz_memory_handle(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  uint64_t payload = fuzz_u64(&in);
  lcomm_memory_handle handle;
  lcomm_device_ipc other;
  fuzz_take(&in, &handle, sizeof(handle));
  fuzz_take(&in, &other, sizeof(other));
  if (lcomm_memory_handle_fits(&handle, payload)) {
    uint64_t end = handle.memory.offset + payload;
    fuzz_require(end >= payload && end <= handle.memory.size && handle.size == payload,
                 "a payload lies in the memory of its memory handle");
  }
  compare(&handle.memory, &other);
  compare(&handle.memory, &handle.memory);
}
