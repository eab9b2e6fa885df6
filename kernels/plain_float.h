/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_PLAIN_FLOAT_H
#define LCOMM_KERNELS_PLAIN_FLOAT_H

/* Plain floating-point numbers: sums, minima and maxima. The file that includes
 * this defines lcomm_value, lcomm_bits, the unsigned integer of its size, and
 * PLAIN_TABLE (plain_body.h).
 *
 * A minimum is computed in both orders of its operands, each of which is one
 * instruction of a plain processor. The two results differ only for zeros of both
 * signs: then OR of the bits gives -0, and AND gives +0. NaNs are selected
 * afterwards, the first one with precedence.
 */

#include <string.h>

static inline lcomm_bits bits_of(lcomm_value value) {
  lcomm_bits bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline lcomm_value from_bits(lcomm_bits bits) {
  lcomm_value value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline lcomm_value sum(lcomm_value a, lcomm_value b) {
  return a + b;
}

static inline lcomm_value least(lcomm_value a, lcomm_value b) {
  lcomm_value one = a < b ? a : b, other = b < a ? b : a;
  lcomm_value smaller = from_bits(bits_of(one) | bits_of(other));
  smaller = b != b ? b : smaller;
  return a != a ? a : smaller;
}

static inline lcomm_value greatest(lcomm_value a, lcomm_value b) {
  lcomm_value one = a > b ? a : b, other = b > a ? b : a;
  lcomm_value larger = from_bits(bits_of(one) & bits_of(other));
  larger = b != b ? b : larger;
  return a != a ? a : larger;
}

#include "kernels/plain_body.h"

#endif
