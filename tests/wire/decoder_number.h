/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_WIRE_DECODER_NUMBER_H
#define LCOMM_TESTS_WIRE_DECODER_NUMBER_H

/* Inside of the second decoder: what numbers mean, section 2.1 of
 * codecs/WIRE.md. All of them are exact in double precision.
 */

#include <math.h>
#include <stdint.h>

static inline uint64_t number(const uint8_t *bytes, int size) {
  uint64_t value = 0;
  while (size-- > 0) {
    value = value * 256 + bytes[size];
  }
  return value;
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0);
}

/* A floating-point code whose exponent field of all ones is like any other. */
static inline double plain_float(unsigned code, int e, int m) {
  int bias = (1 << (e - 1)) - 1;
  int exponent = (int)(code >> m) & ((1 << e) - 1);
  double mantissa = (double)(code & ((1u << m) - 1));
  double sign = code >> (e + m) ? -1 : 1;
  if (exponent == 0) {
    return sign * ldexp(mantissa, 1 - bias - m);
  }
  return sign * ldexp(mantissa + ldexp(1, m), exponent - bias - m);
}

static inline double ieee_float(unsigned code, int e, int m) {
  if ((code >> m & ((1u << e) - 1)) != (1u << e) - 1) {
    return plain_float(code, e, m);
  }
  if ((code & ((1u << m) - 1)) != 0) {
    return NAN;
  }
  return code >> (e + m) ? -INFINITY : INFINITY;
}

static inline double f32_at(const uint8_t *bytes) {
  return ieee_float((unsigned)number(bytes, 4), 8, 23);
}

static inline double two_complement(unsigned code, unsigned bits) {
  return code < 1u << (bits - 1) ? code : (double)code - (double)(1u << bits);
}

#endif
