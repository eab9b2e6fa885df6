/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_FUZZ_BYTES_H
#define LCOMM_TESTS_SUPPORT_FUZZ_BYTES_H

/* An input that is read piece by piece; behind its end there are zeros. */

#include <stdint.h>
#include <string.h>

typedef struct fuzz_bytes {
  const uint8_t *at;
  size_t left;
} fuzz_bytes;

/* Copy up to `size` bytes, then zeros. Returns how many there were. */
static inline size_t fuzz_take(fuzz_bytes *in, void *bytes, size_t size) {
  size_t taken = size < in->left ? size : in->left;
  memset(bytes, 0, size);
  if (taken > 0) {
    memcpy(bytes, in->at, taken);
  }
  in->at += taken;
  in->left -= taken;
  return taken;
}

static inline uint8_t fuzz_u8(fuzz_bytes *in) {
  uint8_t value;
  fuzz_take(in, &value, sizeof(value));
  return value;
}

static inline uint16_t fuzz_u16(fuzz_bytes *in) {
  uint16_t value;
  fuzz_take(in, &value, sizeof(value));
  return value;
}

static inline uint32_t fuzz_u32(fuzz_bytes *in) {
  uint32_t value;
  fuzz_take(in, &value, sizeof(value));
  return value;
}

static inline uint64_t fuzz_u64(fuzz_bytes *in) {
  uint64_t value;
  fuzz_take(in, &value, sizeof(value));
  return value;
}

#endif
