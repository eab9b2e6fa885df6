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

/* fuzz_u8(in) and so on: the next number. */
#define FUZZ_NUMBER(name, type)                                                                    \
  static inline type name(fuzz_bytes *in) {                                                        \
    type value;                                                                                    \
    fuzz_take(in, &value, sizeof(value));                                                          \
    return value;                                                                                  \
  }
FUZZ_NUMBER(fuzz_u8, uint8_t)
FUZZ_NUMBER(fuzz_u16, uint16_t)
FUZZ_NUMBER(fuzz_u32, uint32_t)
FUZZ_NUMBER(fuzz_u64, uint64_t)

#endif
