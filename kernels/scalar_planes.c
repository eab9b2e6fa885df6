/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels that split numbers into planes of bytes and join them. */

#include <string.h>

#include "kernels/scalar.h"

static inline uint16_t load2(const uint8_t *bytes) {
  uint16_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static inline uint32_t load4(const uint8_t *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

void lcomm_scalar_split2(const uint8_t *restrict source, uint8_t *const plane[2], size_t n) {
  uint8_t *restrict high = plane[0], *restrict low = plane[1];
  for (size_t i = 0; i < n; i++) {
    uint32_t value = load2(source + 2 * i);
    high[i] = (uint8_t)(value >> 7);
    low[i] = (uint8_t)(value << 1 | value >> 15);
  }
}

void lcomm_scalar_join2(const uint8_t *const plane[2], uint8_t *restrict destination, size_t n) {
  const uint8_t *restrict high = plane[0], *restrict low = plane[1];
  for (size_t i = 0; i < n; i++) {
    uint32_t value = (uint32_t)high[i] << 8 | low[i];
    uint16_t number = (uint16_t)(value >> 1 | value << 15);
    memcpy(destination + 2 * i, &number, sizeof number);
  }
}

void lcomm_scalar_split4(const uint8_t *restrict source, uint8_t *const plane[4], size_t n) {
  uint8_t *restrict a = plane[0], *restrict b = plane[1];
  uint8_t *restrict c = plane[2], *restrict d = plane[3];
  for (size_t i = 0; i < n; i++) {
    uint32_t value = load4(source + 4 * i);
    value = value << 1 | value >> 31;
    a[i] = (uint8_t)(value >> 24);
    b[i] = (uint8_t)(value >> 16);
    c[i] = (uint8_t)(value >> 8);
    d[i] = (uint8_t)value;
  }
}

void lcomm_scalar_join4(const uint8_t *const plane[4], uint8_t *restrict destination, size_t n) {
  const uint8_t *restrict a = plane[0], *restrict b = plane[1];
  const uint8_t *restrict c = plane[2], *restrict d = plane[3];
  for (size_t i = 0; i < n; i++) {
    uint32_t value =
        (uint32_t)a[i] << 24 | (uint32_t)b[i] << 16 | (uint32_t)c[i] << 8 | (uint32_t)d[i];
    value = value >> 1 | value << 31;
    memcpy(destination + 4 * i, &value, sizeof value);
  }
}
