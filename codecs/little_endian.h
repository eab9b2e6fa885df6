/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_LITTLE_ENDIAN_H
#define LCOMM_CODECS_LITTLE_ENDIAN_H

/* Little-endian integers of 1 to 8 bytes at any address, byte by byte, so that a format
 * does not depend on the machine. */

#include <stdint.h>

static inline void lcomm_le_put(uint8_t *bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++) {
    bytes[i] = (uint8_t)(value >> (8 * i));
  }
}

static inline uint64_t lcomm_le_get(const uint8_t *bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; i++) {
    value |= (uint64_t)bytes[i] << (8 * i);
  }
  return value;
}

#endif
